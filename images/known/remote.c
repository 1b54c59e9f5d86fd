/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/remote.h"

#include <errno.h>
#include <stdio.h>

#include "images/store/catalog.h"
#include "lib/base/str.h"

bool remote_is_known(struct remote *r, struct digest *ret)
{
	struct ref known;
	if (catalog_get_ref(r->store, r->found.memo.text, &known) != 0 ||
	    !catalog_has_image(r->store, &known.image) ||
	    (known.unverified && !r->request->options.insecure_image))
		return false;
	r->found.memo.unverified = known.unverified;
	*ret = known.image;
	return true;
}

static int make_key(struct remote *r, const char *text, struct err *e)
{
	struct fetched *image = &r->found.image;
	char name[REGISTRY_TEXT_MAX + 1], key[sizeof("docker://") + REGISTRY_TEXT_MAX];
	int x = registry_name_parse(text, &r->name, e);
	if (x < 0)
		return x;
	registry_name_text(&r->name, name);
	if (str_copy(image->name, sizeof(image->name), name) < 0)
		return err_set(e, -ENAMETOOLONG,
			       "the whole name, \"%.80s...\", has more than %zu "
			       "bytes",
			       name, IMAGE_NAME_MAX);
	snprintf(key, sizeof(key), "docker://%s", name);
	return ref_init(&r->found.memo, key);
}

int remote_look(struct remote *r, struct store *s, const char *text, const struct fetch_request *q,
		struct err *e)
{
	*r = (struct remote){ .store = s, .request = q };
	int x = make_key(r, text, e);
	if (x == 0 && remote_is_known(r, &r->found.image.id))
		r->found.where = FOUND_KNOWN;
	return x;
}
