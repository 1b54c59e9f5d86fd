/* SPDX-License-Identifier: Apache-2.0 */
#include "images/images.h"

#include <errno.h>

#include "images/fetch/fetch.h"
#include "images/known/known.h"

/* What is known need not be fetched, nor what fetches be loaded. */
static int find_or_fetch(struct store *s, const struct fetch_request *q, struct fetched *ret,
			 struct err *e)
{
	struct reference ref;
	int r = known_find(s, q, &ref, ret, e);
	return r == KNOWN_NOT ? fetch_to_store(s, q, ret, e) : r;
}

static int open_reference(struct store *s, const struct fetch_request *q, struct image **ret,
			  struct err *e)
{
	struct fetched found = { .name = "" };
	cleanup_image struct image *image = NULL;
	int r = find_or_fetch(s, q, &found, e);
	if (r == 0)
		r = q->fetch_only && !store_may_render(s)
			    ? image_open_documents(s, &found.id, &image, e)
			    : image_open(s, &found.id, &image, e);
	if (r == STORE_MISSING)
		return err_set(e, -ENOENT, "it was removed from the store meanwhile (try again)");
	if (r != 0)
		return r;
	image_set_name(image, found.name);
	image->rendered |= found.rendered;
	*ret = TAKE_PTR(image);
	return 0;
}

int fetch_image(struct store *s, const struct fetch_request *q, struct image **ret, struct err *e)
{
	return open_reference(s, q, ret, e) < 0 ? err_context(e, "image \"%s\"", q->reference) : 0;
}
