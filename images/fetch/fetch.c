/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: sources (local.h, remote.h, url.h, discovered.h) say what the store has of
 * what was asked for, and else get it; one importer (importer.h) brings what they found into the
 * store, with what an appc image depends on (dependencies.h).
 */
#include "images/fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "images/appc/discovery.h"
#include "images/fetch/dependencies.h"
#include "images/fetch/discovered.h"
#include "images/fetch/importer.h"
#include "images/fetch/local.h"
#include "images/fetch/reference.h"
#include "images/fetch/remote.h"
#include "images/fetch/url.h"
#include "images/store/catalog.h"
#include "images/store/find.h"

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

/* Brings what was found, at @url or NULL, into the store, and what it depends on. */
static int bring(struct store *s, const struct fetch_request *q, struct found *f, const char *url,
		 struct fetched *ret, struct err *e)
{
	CLEANUP(importer_deinit) struct importer i;
	int r = importer_open(&i, s, f, q, e);
	if (r == 0)
		r = dependencies_bring(&i, url, e);
	if (r == 0)
		*ret = f->image;
	return r;
}

static void note_stored(const struct fetch_request *q, const char *name)
{
	fetch_note(&q->options, "using image from local store for image name %s", name);
}

static int check_policy(const struct fetch_request *q, struct err *e)
{
	if (q->policy != PULL_NEVER)
		return 0;
	return err_set(e, -ENOENT,
		       "it is not in the local store (husk fetch, or another --pull-policy than "
		       "never, brings it there)");
}

static int fetch_local(struct store *s, const struct reference *ref, const struct fetch_request *q,
		       struct fetched *ret, struct err *e)
{
	CLEANUP(found_deinit) struct found f = { .where = FOUND_NOWHERE };
	int r = local_look(s, ref, q, &f, e);
	return r < 0 ? r : bring(s, q, &f, NULL, ret, e);
}

static void cleanup_remote(struct remote *r)
{
	found_deinit(&r->found);
}

static int fetch_remote(struct store *s, const char *text, const struct fetch_request *q,
			struct fetched *ret, struct err *e)
{
	CLEANUP(cleanup_remote) struct remote remote;
	int r = remote_look(&remote, s, text, q, e);
	if (r == 0 && remote.found.where == FOUND_KNOWN && q->policy != PULL_UPDATE) {
		*ret = remote.found.image;
		note_stored(q, ret->name);
		return 0;
	}
	if (r == 0)
		r = check_policy(q, e);
	if (r == 0)
		r = remote_get(&remote, e);
	return r < 0 ? r : bring(s, q, &remote.found, NULL, ret, e);
}

/* True if @text is the name of an image of a registry that the store has. */
static bool is_remote(struct store *s, const char *text)
{
	const struct fetch_request any = { .options = { .insecure_image = true } };
	CLEANUP(cleanup_remote) struct remote remote;
	return remote_look(&remote, s, text, &any, NULL) == 0 && remote.found.where == FOUND_KNOWN;
}

static int fetch_url(struct store *s, const char *url, const struct fetch_request *q,
		     struct fetched *ret, struct err *e)
{
	CLEANUP(url_deinit) struct url u = URL_INIT;
	int r = url_look(&u, s, url, NULL, q, e);
	if (r == 0 && u.found.where == FOUND_NOWHERE) {
		r = check_policy(q, e);
		if (r == 0)
			r = url_get(&u, false, e);
	}
	return r < 0 ? r : bring(s, q, &u.found, url, ret, e);
}

/*
 * The image that is called @text, an appc name: from the store as q->policy says, else from where
 * discovery finds it.
 */
static int fetch_appc(struct store *s, const char *text, const struct fetch_request *q,
		      struct fetched *ret, struct err *e)
{
	struct acname name;
	bool verified = !q->options.insecure_image;
	int r = acname_parse(text, &name, e);
	if (r < 0)
		return r;
	if (q->policy != PULL_UPDATE && find_appc(s, &name, "", verified, &ret->id, NULL) == 0) {
		note_stored(q, text);
		return 0;
	}
	if (q->policy == PULL_NEVER)
		return find_appc(s, &name, "", verified, &ret->id, e);
	fetch_note(&q->options, "searching for app image %s", text);
	struct fetch_request request = *q;
	CLEANUP(discovered_deinit) struct discovered found;
	request.expected = &name;
	r = discovered_open(&found, s, &request, false, e);
	if (r == 0)
		r = dependencies_bring(&found.importer, found.url.url, e);
	if (r == 0)
		*ret = found.url.found.image;
	return r;
}

/*
 * A name: what was fetched as that from a registry, what is called that in the store, or an appc
 * name.
 */
static int fetch_name(struct store *s, const char *text, const struct fetch_request *q,
		      struct fetched *ret, struct err *e)
{
	struct err why = ERR_INIT;
	bool ask = discovery_can_find(text) && q->policy != PULL_NEVER;
	int r = find_name(s, text, &ret->id, &why);
	if (r != -EEXIST && is_remote(s, text))
		return fetch_remote(s, text, q, ret, e);
	if (r != -EEXIST && ask && (r < 0 || q->policy == PULL_UPDATE))
		return fetch_appc(s, text, q, ret, e);
	if (r == 0)
		note_stored(q, text);
	else if (e)
		*e = why;
	return r;
}

static int fetch_id(struct store *s, const char *text, const struct fetch_request *q,
		    struct fetched *ret, struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	char id[RECORD_ID_LEN + 1];
	record_init(&record);
	int r = find_id(s, text, &ret->id, e);
	if (r == 0)
		r = catalog_get(s, &ret->id, &record, e);
	if (r != 0)
		return r;
	record_id_text(&record, id);
	fetch_note(&q->options, "using image from the store with hash %s", id);
	return 0;
}

int fetch_to_store(struct store *s, const struct fetch_request *q, struct fetched *ret,
		   struct err *e)
{
	struct reference ref;
	int r = reference_parse(q->reference, q->is_name ? no_path : path_exists, &ref, e);
	if (r < 0)
		return r;
	if (q->signature && (ref.type == REFERENCE_REGISTRY || ref.type == REFERENCE_ID))
		return err_set(
			e, -EINVAL,
			"there is nothing that the signature \"%s\" could be checked against "
			"(leave --signature away)",
			q->signature);
	switch (ref.type) {
	case REFERENCE_REGISTRY:
		return fetch_remote(s, ref.text, q, ret, e);
	case REFERENCE_URL:
		return fetch_url(s, ref.text, q, ret, e);
	case REFERENCE_ID:
		return fetch_id(s, ref.text, q, ret, e);
	case REFERENCE_NAME:
		return fetch_name(s, ref.text, q, ret, e);
	case REFERENCE_ANY:
	case REFERENCE_OCI_DIR:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_ROOTFS:
	default:
		return fetch_local(s, &ref, q, ret, e);
	}
}

static int open_reference(struct store *s, const struct fetch_request *q, struct image **ret,
			  struct err *e)
{
	struct fetched found = { .name = "" };
	cleanup_image struct image *image = NULL;
	int r = fetch_to_store(s, q, &found, e);
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
