/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/known.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "images/known/local.h"
#include "images/known/remote.h"
#include "images/known/url.h"
#include "images/store/catalog.h"
#include "images/store/find.h"

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

static void note_stored(const struct fetch_request *q, const char *name)
{
	fetch_note(&q->options, "using image from local store for image name %s", name);
}

/* KNOWN_NOT if it may be fetched. */
static int check_policy(const struct fetch_request *q, struct err *e)
{
	if (q->policy != PULL_NEVER)
		return KNOWN_NOT;
	return err_set(e, -ENOENT,
		       "it is not in the local store (husk fetch, or another --pull-policy than "
		       "never, brings it there)");
}

static int known_local(struct store *s, const struct reference *ref, const struct fetch_request *q,
		       struct fetched *ret, struct err *e)
{
	CLEANUP(found_deinit) struct found f = { .where = FOUND_NOWHERE };
	int r = local_look(s, ref, q, &f, e);
	if (r < 0)
		return r;
	if (f.where != FOUND_KNOWN)
		return KNOWN_NOT;
	fetch_note(&q->options, "using image from file %s", ref->path);
	fetch_note(&q->options, "%s has not changed since it was imported", ref->path);
	*ret = f.image;
	return 0;
}

static int known_remote(struct store *s, const char *text, const struct fetch_request *q,
			struct fetched *ret, struct err *e)
{
	CLEANUP(remote_deinit) struct remote remote;
	int r = remote_look(&remote, s, text, q, e);
	if (r < 0)
		return r;
	if (remote.found.where != FOUND_KNOWN || q->policy == PULL_UPDATE)
		return check_policy(q, e);
	*ret = remote.found.image;
	note_stored(q, ret->name);
	return 0;
}

/* True if @text is the name of an image of a registry that the store has. */
static bool is_remote(struct store *s, const char *text)
{
	const struct fetch_request any = { .options = { .insecure_image = true } };
	CLEANUP(remote_deinit) struct remote remote;
	return remote_look(&remote, s, text, &any, NULL) == 0 && remote.found.where == FOUND_KNOWN;
}

static int known_url(struct store *s, const char *url, const struct fetch_request *q,
		     struct fetched *ret, struct err *e)
{
	CLEANUP(url_deinit) struct url u = URL_INIT;
	int r = url_look(&u, s, url, NULL, q, e);
	if (r < 0)
		return r;
	if (u.found.where != FOUND_KNOWN)
		return check_policy(q, e);
	*ret = u.found.image;
	return 0;
}

/* The image that is called @text, an appc name that could be discovered. */
static int known_appc(struct store *s, const char *text, const struct fetch_request *q,
		      struct fetched *ret, struct err *e)
{
	struct acname name;
	bool verified = !q->options.insecure_image;
	int r = acname_parse(text, &name, e);
	if (r < 0)
		return r;
	if (q->policy == PULL_UPDATE || find_appc(s, &name, "", verified, &ret->id, NULL) < 0)
		return KNOWN_NOT;
	note_stored(q, text);
	return 0;
}

/*
 * A name: what was fetched as that from a registry, what is called that in the store, or an appc
 * name.
 */
static int known_name(struct store *s, struct reference *ref, const struct fetch_request *q,
		      struct fetched *ret, struct err *e)
{
	struct err why = ERR_INIT;
	const char *text = ref->text;
	bool ask = acname_has_host(text) && q->policy != PULL_NEVER;
	int r = find_name(s, text, &ret->id, &why);
	if (r != -EEXIST && is_remote(s, text)) {
		ref->type = REFERENCE_REGISTRY;
		return known_remote(s, text, q, ret, e);
	}
	if (r != -EEXIST && ask && (r < 0 || q->policy == PULL_UPDATE))
		return known_appc(s, text, q, ret, e);
	if (r == 0)
		note_stored(q, text);
	else if (e)
		*e = why;
	return r;
}

static int known_id(struct store *s, const char *text, const struct fetch_request *q,
		    struct fetched *ret, struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	char id[IMAGE_ID_LEN + 1];
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

int known_find(struct store *s, const struct fetch_request *q, struct reference *ref,
	       struct fetched *ret, struct err *e)
{
	int r = reference_parse(q->reference, q->is_name ? no_path : path_exists, ref, e);
	if (r < 0)
		return r;
	if (q->signature && (ref->type == REFERENCE_REGISTRY || ref->type == REFERENCE_ID))
		return err_set(
			e, -EINVAL,
			"there is nothing that the signature \"%s\" could be checked against "
			"(leave --signature away)",
			q->signature);
	switch (ref->type) {
	case REFERENCE_REGISTRY:
		return known_remote(s, ref->text, q, ret, e);
	case REFERENCE_URL:
		return known_url(s, ref->text, q, ret, e);
	case REFERENCE_ID:
		return known_id(s, ref->text, q, ret, e);
	case REFERENCE_NAME:
		return known_name(s, ref, q, ret, e);
	case REFERENCE_ANY:
	case REFERENCE_OCI_DIR:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_ROOTFS:
	default:
		return known_local(s, ref, q, ret, e);
	}
}
