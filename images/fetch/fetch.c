/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what the store has is known (images/known); else the source that the form of
 * the reference says (local.h, remote.h, url.h, discovered.h) gets it, and one importer
 * (importer.h) brings what that found into the store, with what an appc image depends on
 * (dependencies.h).
 */
#include "images/fetch/fetch.h"

#include "images/fetch/dependencies.h"
#include "images/fetch/discovered.h"
#include "images/fetch/importer.h"
#include "images/fetch/remote.h"
#include "images/fetch/url.h"
#include "images/known/known.h"
#include "images/known/local.h"

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

static int fetch_local(struct store *s, const struct reference *ref, const struct fetch_request *q,
		       struct fetched *ret, struct err *e)
{
	CLEANUP(found_deinit) struct found f = { .where = FOUND_NOWHERE };
	int r = local_look(s, ref, q, &f, e);
	if (r < 0)
		return r;
	fetch_note(&q->options, "using image from file %s", ref->path);
	return bring(s, q, &f, NULL, ret, e);
}

static int fetch_remote(struct store *s, const char *text, const struct fetch_request *q,
			struct fetched *ret, struct err *e)
{
	CLEANUP(remote_deinit) struct remote remote;
	int r = remote_look(&remote, s, text, q, e);
	if (r == 0)
		r = remote_get(&remote, e);
	return r < 0 ? r : bring(s, q, &remote.found, NULL, ret, e);
}

static int fetch_url(struct store *s, const char *url, const struct fetch_request *q,
		     struct fetched *ret, struct err *e)
{
	CLEANUP(url_deinit) struct url u = URL_INIT;
	int r = url_look(&u, s, url, NULL, q, e);
	if (r == 0 && u.found.where == FOUND_NOWHERE)
		r = url_get(&u, false, e);
	return r < 0 ? r : bring(s, q, &u.found, url, ret, e);
}

/* The image that is called @text, an appc name, from where discovery finds it. */
static int fetch_appc(struct store *s, const char *text, const struct fetch_request *q,
		      struct fetched *ret, struct err *e)
{
	struct acname name;
	struct fetch_request request = *q;
	CLEANUP(discovered_deinit) struct discovered found;
	int r = acname_parse(text, &name, e);
	if (r < 0)
		return r;
	fetch_note(&q->options, "searching for app image %s", text);
	request.expected = &name;
	r = discovered_open(&found, s, &request, false, e);
	if (r == 0)
		r = dependencies_bring(&found.importer, found.url.url, e);
	if (r == 0)
		*ret = found.url.found.image;
	return r;
}

int fetch_to_store(struct store *s, const struct fetch_request *q, struct fetched *ret,
		   struct err *e)
{
	struct reference ref;
	int r = known_find(s, q, &ref, ret, e);
	if (r != KNOWN_NOT)
		return r;
	switch (ref.type) {
	case REFERENCE_REGISTRY:
		return fetch_remote(s, ref.text, q, ret, e);
	case REFERENCE_URL:
		return fetch_url(s, ref.text, q, ret, e);
	case REFERENCE_NAME:
		return fetch_appc(s, ref.text, q, ret, e);
	case REFERENCE_ID:
	case REFERENCE_ANY:
	case REFERENCE_OCI_DIR:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_ROOTFS:
	default:
		return fetch_local(s, &ref, q, ret, e);
	}
}
