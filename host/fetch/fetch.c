/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: sources (local.h, remote.h, url.h) say what the store has of what was asked
 * for, and else get it; one importer (importer.h) brings what they found into the store. What an
 * appc image depends on is brought there in between, here and nowhere else, so that no source needs
 * another.
 */
#include "host/fetch/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/appc/discovery.h"
#include "host/fetch/importer.h"
#include "host/fetch/local.h"
#include "host/fetch/reference.h"
#include "host/fetch/remote.h"
#include "host/fetch/url.h"
#include "host/store/catalog.h"
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

/* One image on its way, and the one that it is a dependency of. */
struct job {
	struct store *store;
	const struct fetch_request *request;
	const char *url;         /* that it is being fetched from, or NULL */
	const struct job *above; /* NULL: the user asked for it */
};

/* The images below, the lowest first, none twice. */
struct below {
	struct digest ids[RECORD_BELOW_MAX];
	size_t n;
};

static int add_below(struct below *b, const struct digest *id, struct err *e)
{
	for (size_t i = 0; i < b->n; i++)
		if (digest_equal(&b->ids[i], id))
			return 0;
	if (b->n == RECORD_BELOW_MAX)
		return err_set(e, -E2BIG, "the image is on top of more than %zu others",
			       RECORD_BELOW_MAX);
	b->ids[b->n++] = *id;
	return 0;
}

/* Adds what the dependency @id is on top of, and itself. */
static int add_dependency(struct store *s, struct below *b, const struct digest *id, struct err *e)
{
	CLEANUP(record_deinit) struct record r;
	record_init(&r);
	int x = catalog_get(s, id, &r, e);
	if (x == STORE_MISSING)
		return err_set(e, -ENOENT, "it was removed from the store meanwhile (try again)");
	if (x == 0 && r.kind != IMAGE_ACI)
		return err_set(e, -EOPNOTSUPP, "it is not an appc image");
	for (size_t i = 0; x == 0 && i < r.n_below; i++)
		x = add_below(b, &r.below[i], e);
	return x < 0 ? x : add_below(b, id, e);
}

/* Writes the dependency's name with its labels. The text ends with a NUL. */
static int write_name(const struct aci_dependency *d, struct buf *out, struct err *e)
{
	int r = acname_format(&d->name, out);
	if (r == 0)
		r = buf_append(out, "", 1);
	return r < 0 ? err_sys(e, r, "cannot write its name") : 0;
}

static int fetch_appc(const struct job *above, struct store *s, const char *text,
		      const struct fetch_request *q, struct fetched *ret, struct err *e);

/* Fetches the dependency, which is not in the store. */
static int fetch_dependency(const struct job *j, const struct aci_dependency *d, struct digest *ret,
			    struct err *e)
{
	struct fetched fetched = { .name = "" };
	struct fetch_request below = *j->request;
	int depth = 0;
	cleanup_buf struct buf name;
	buf_init(&name, IMAGE_ARG_MAX);
	int r = write_name(d, &name, e);
	if (r < 0)
		return r;
	for (const struct job *above = j->above; above; above = above->above)
		depth++;
	if (depth >= FETCH_DEPTH_MAX)
		return err_set(e, -ELOOP, "images depend on each other more than %d deep",
			       FETCH_DEPTH_MAX);
	/* With a key, what the store has under this name is not the one that is wanted. */
	if (below.policy != PULL_NEVER)
		below.policy = d->key[0] ? PULL_UPDATE : PULL_NEW;
	below.signature = NULL;
	r = fetch_appc(j, j->store, buf_data(&name), &below, &fetched, e);
	if (r < 0)
		return r;
	if (!find_is_appc(j->store, &fetched.id, &d->name, d->key, !below.options.insecure_image))
		return err_set(
			e, -EBADMSG,
			"what was found under this name is another image: not \"%.300s\"%s%.16s",
			buf_data(&name), d->key[0] ? " with the ID sha512-" : "", d->key);
	*ret = fetched.id;
	return 0;
}

/* Finds the dependency in the store, or fetches it. */
static int find_dependency(const struct job *j, const struct aci_dependency *d, struct digest *ret,
			   struct err *e)
{
	const struct fetch_options *o = &j->request->options;
	if (find_appc(j->store, &d->name, d->key, !o->insecure_image, ret, NULL) == 0) {
		cleanup_buf struct buf name;
		buf_init(&name, IMAGE_ARG_MAX);
		if (write_name(d, &name, NULL) == 0)
			fetch_note(o, "using image from local store for image name %s",
				   buf_data(&name));
		return 0;
	}
	return fetch_dependency(j, d, ret, e) < 0 ? err_context(e, "dependency %s", d->name.name)
						  : 0;
}

/* Brings what was found into the store, and what it depends on before. */
static int bring(const struct job *j, struct found *f, struct fetched *ret, struct err *e)
{
	CLEANUP(importer_deinit) struct importer i;
	struct below below = { .n = 0 };
	int r = importer_open(&i, j->store, f, j->request, e);
	for (size_t k = 0; r == 0 && k < i.aci.n_dependencies; k++) {
		struct digest id;
		r = find_dependency(j, &i.aci.dependencies[k], &id, e);
		if (r == 0)
			r = add_dependency(j->store, &below, &id, e);
	}
	if (r == 0)
		r = importer_finish(&i, below.ids, below.n, e);
	if (r == 0)
		*ret = f->image;
	return r;
}

static int check_policy(const struct fetch_request *q, struct err *e)
{
	if (q->policy != PULL_NEVER)
		return 0;
	return err_set(e, -ENOENT,
		       "it is not in the local store (husk fetch, or another --pull-policy than "
		       "never, brings it there)");
}

static int fetch_local(const struct job *j, const struct reference *ref, struct fetched *ret,
		       struct err *e)
{
	CLEANUP(found_deinit) struct found f = { .where = FOUND_NOWHERE };
	int r = local_look(j->store, ref, j->request, &f, e);
	return r < 0 ? r : bring(j, &f, ret, e);
}

static void cleanup_remote(struct remote *r)
{
	found_deinit(&r->found);
}

static int fetch_remote(const struct job *j, const char *text, struct fetched *ret, struct err *e)
{
	const struct fetch_request *q = j->request;
	CLEANUP(cleanup_remote) struct remote remote;
	int r = remote_look(&remote, j->store, text, q, e);
	if (r == 0 && remote.found.where == FOUND_KNOWN && q->policy != PULL_UPDATE) {
		*ret = remote.found.image;
		fetch_note(&q->options, "using image from local store for image name %s",
			   ret->name);
		return 0;
	}
	if (r == 0)
		r = check_policy(q, e);
	if (r == 0)
		r = remote_get(&remote, e);
	return r < 0 ? r : bring(j, &remote.found, ret, e);
}

/* True if @text is the name of an image of a registry that the store has. */
static bool is_remote(struct store *s, const char *text)
{
	const struct fetch_request any = { .options = { .insecure_image = true } };
	CLEANUP(cleanup_remote) struct remote remote;
	return remote_look(&remote, s, text, &any, NULL) == 0 && remote.found.where == FOUND_KNOWN;
}

/* The import of one of these is ours, and begun: we would wait for ourselves. */
static int check_loop(const struct job *j, const char *url, struct err *e)
{
	for (const struct job *above = j->above; above; above = above->above)
		if (above->url && strcmp(above->url, url) == 0)
			return err_set(e, -ELOOP, "the image depends on itself");
	return 0;
}

static int fetch_url(struct job *j, const char *url, const char *signature_url, struct fetched *ret,
		     struct err *e)
{
	CLEANUP(url_deinit) struct url u = URL_INIT;
	int r = url_look(&u, j->store, url, signature_url, j->request, e);
	if (r == 0 && u.found.where == FOUND_NOWHERE) {
		r = check_policy(j->request, e);
		if (r == 0)
			r = check_loop(j, url, e);
		if (r == 0)
			r = url_get(&u, j->above != NULL, e);
	}
	j->url = url;
	return r < 0 ? r : bring(j, &u.found, ret, e);
}

/* Tries what discovery found, in its order; the error is the first one's. */
static int fetch_discovered(struct job *j, const struct discovery *d, struct fetched *ret,
			    struct err *e)
{
	int first = -ENOENT;
	for (size_t i = 0; i < d->images.n; i++) {
		struct err why = ERR_INIT;
		int r = fetch_url(j, d->images.v[i], d->signatures.v[i], ret, &why);
		if (r == 0)
			return 0;
		if (i > 0)
			continue;
		first = r;
		if (e)
			*e = why;
	}
	return first;
}

/*
 * The image that is called @text, an appc name: from the store as q->policy says, else from where
 * discovery finds it.
 */
static int fetch_appc(const struct job *above, struct store *s, const char *text,
		      const struct fetch_request *q, struct fetched *ret, struct err *e)
{
	CLEANUP(discovery_deinit) struct discovery d;
	struct acname name;
	bool verified = !q->options.insecure_image;
	discovery_init(&d);
	int r = acname_parse(text, &name, e);
	if (r < 0)
		return r;
	if (q->policy != PULL_UPDATE && find_appc(s, &name, "", verified, &ret->id, NULL) == 0) {
		fetch_note(&q->options, "using image from local store for image name %s", text);
		return 0;
	}
	if (q->policy == PULL_NEVER)
		return find_appc(s, &name, "", verified, &ret->id, e);
	fetch_note(&q->options, "searching for app image %s", text);
	struct fetch_request request = *q;
	struct job j = { s, &request, NULL, above };
	request.expected = &name;
	r = fetch_load_credentials(&request.options, e);
	if (r == 0)
		r = discovery_find(&name, DISCOVERY_IMAGES, &request.options, &d, e);
	return r < 0 ? r : fetch_discovered(&j, &d, ret, e);
}

/*
 * A name: what was fetched as that from a registry, what is called that in the store, or an appc
 * name.
 */
static int fetch_name(const struct job *j, const char *text, struct fetched *ret, struct err *e)
{
	const struct fetch_request *q = j->request;
	struct err why = ERR_INIT;
	bool ask = discovery_can_find(text) && q->policy != PULL_NEVER;
	int r = find_name(j->store, text, &ret->id, &why);
	if (r != -EEXIST && is_remote(j->store, text))
		return fetch_remote(j, text, ret, e);
	if (r != -EEXIST && ask && (r < 0 || q->policy == PULL_UPDATE))
		return fetch_appc(j->above, j->store, text, q, ret, e);
	if (r == 0)
		fetch_note(&q->options, "using image from local store for image name %s", text);
	else if (e)
		*e = why;
	return r;
}

int fetch_to_store(struct store *s, const struct fetch_request *q, struct fetched *ret,
		   struct err *e)
{
	struct reference ref;
	struct job j = { .store = s, .request = q };
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
		return fetch_remote(&j, ref.text, ret, e);
	case REFERENCE_URL:
		return fetch_url(&j, ref.text, NULL, ret, e);
	case REFERENCE_ID:
		return find_id(s, ref.text, &ret->id, e);
	case REFERENCE_NAME:
		return fetch_name(&j, ref.text, ret, e);
	case REFERENCE_ANY:
	case REFERENCE_OCI_DIR:
	case REFERENCE_OCI_ARCHIVE:
	case REFERENCE_DOCKER_ARCHIVE:
	case REFERENCE_ROOTFS:
	default:
		return fetch_local(&j, &ref, ret, e);
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
