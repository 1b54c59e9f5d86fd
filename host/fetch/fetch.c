/* SPDX-License-Identifier: Apache-2.0 */
#include "host/fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/fetch/appc.h"
#include "host/fetch/local.h"
#include "host/fetch/reference.h"
#include "host/fetch/remote.h"
#include "host/fetch/url.h"
#include "host/store/find.h"

static const char *const policies[PULL_POLICIES] = {
	[PULL_NEVER] = "never",
	[PULL_NEW] = "new",
	[PULL_UPDATE] = "update",
};

int pull_policy_parse(const char *text, enum pull_policy *ret, struct err *e)
{
	for (enum pull_policy p = 0; p < PULL_POLICIES; p++) {
		if (strcmp(policies[p], text) == 0) {
			*ret = p;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "invalid pull policy \"%s\" (never, new or update)", text);
}

static bool path_exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

static bool no_path(const char *path)
{
	(void)path;
	return false;
}

/* A name: what was fetched as that from a registry, what is called that in the store, or an appc name. */
static int fetch_name(struct store *s, const struct fetch_request *q, const char *text,
		      struct fetched *ret, struct err *e)
{
	struct err why = ERR_INIT;
	bool ask = appc_is_remote(text) && q->policy != PULL_NEVER;
	int r = find_name(s, text, &ret->id, &why);
	if (r != -EEXIST && remote_is_known(s, text))
		return remote_fetch(s, text, q, ret, e);
	if (r != -EEXIST && ask && (r < 0 || q->policy == PULL_UPDATE))
		return appc_fetch(s, text, q, ret, e);
	if (r == 0)
		fetch_note(&q->options, "using image from local store for image name %s", text);
	else if (e)
		*e = why;
	return r;
}

/* Finds or fetches. */
static int fetch(struct store *s, const struct fetch_request *q, const struct reference *ref,
		 struct fetched *ret, struct err *e)
{
	if (q->signature && (ref->type == REFERENCE_REGISTRY || ref->type == REFERENCE_ID))
		return err_set(
			e, -EINVAL,
			"there is nothing that the signature \"%s\" could be checked against "
			"(leave --signature away)",
			q->signature);
	switch (ref->type) {
	case REFERENCE_REGISTRY:
		return remote_fetch(s, ref->text, q, ret, e);
	case REFERENCE_URL:
		return url_fetch(s, ref->text, NULL, q, ret, e);
	case REFERENCE_ID:
		return find_id(s, ref->text, &ret->id, e);
	case REFERENCE_NAME:
		return fetch_name(s, q, ref->text, ret, e);
	case REFERENCE_ANY:
	case REFERENCE_OCI_DIR:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_ROOTFS:
	default:
		return local_fetch(s, ref, q, ret, e);
	}
}

static int open_reference(struct store *s, const struct fetch_request *q, struct image **ret,
			  struct err *e)
{
	struct reference ref;
	struct fetched found = { .name = "" };
	cleanup_image struct image *image = NULL;
	int r = reference_parse(q->reference, q->is_name ? no_path : path_exists, &ref, e);
	if (r == 0)
		r = fetch(s, q, &ref, &found, e);
	if (r == 0)
		r = q->fetch_only && !store_may_render(s)
			    ? image_open_documents(s, &found.id, &image, e)
			    : image_open(s, &found.id, &image, e);
	if (r == STORE_MISSING)
		return err_set(e, -ENOENT, "it was removed from the store meanwhile (try again)");
	if (r < 0)
		return r;
	image_set_name(image, found.name);
	if (found.rendered)
		image_set_rendered(image);
	*ret = TAKE_PTR(image);
	return 0;
}

int fetch_image(struct store *s, const struct fetch_request *q, struct image **ret, struct err *e)
{
	return open_reference(s, q, ret, e) < 0 ? err_context(e, "image \"%s\"", q->reference) : 0;
}
