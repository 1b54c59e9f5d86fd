/* SPDX-License-Identifier: Apache-2.0 */
#include "host/fetch/appc.h"

#include <errno.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/fetch/discovery.h"
#include "host/fetch/resolve.h"
#include "host/fetch/url.h"
#include "host/image/aci.h"
#include "host/image/oci.h"
#include "host/store/catalog.h"
#include "host/store/find.h"
#include "host/trust/keystore.h"
#include "lib/base/hex.h"
#include "lib/os/fd.h"

#define READ_CHUNK ((size_t)256 * 1024) /* bytes read at a time */

/* What the image is called: its name, and its version if it has one. */
static void set_name(const struct aci_manifest *m, struct fetched *ret)
{
	const char *version = acname_get(&m->name, "version");
	int n = snprintf(ret->name, sizeof(ret->name), "%s%s%s", m->name.name, version ? ":" : "",
			 version ? version : "");
	if (n < 0 || (size_t)n >= sizeof(ret->name))
		str_copy(ret->name, sizeof(ret->name), m->name.name);
}

/* The key of an appc image: the SHA-512 of its tar. */
static int hash_tar(const struct span *tar, char ret[ACI_KEY_LEN + 1], struct err *e)
{
	struct sha512_ctx ctx;
	unsigned char digest[SHA512_DIGEST_SIZE];
	cleanup_free unsigned char *chunk = malloc(READ_CHUNK);
	if (!chunk)
		return err_set(e, -ENOMEM, "out of memory");
	sha512_init(&ctx);
	for (uint64_t at = 0; at < tar->size;) {
		size_t len = (size_t)MIN(tar->size - at, (uint64_t)READ_CHUNK);
		int r = span_read(tar, chunk, len, at);
		if (r < 0)
			return err_sys(e, r, "cannot read the archive");
		sha512_update(&ctx, len, chunk);
		at += len;
	}
	sha512_digest(&ctx, sizeof(digest), digest);
	hex_encode(digest, sizeof(digest), ret);
	return 0;
}

/* Tells whose signature was accepted. */
static void note_verdict(const struct fetch_options *o, const struct trust_verdict *v)
{
	fetch_note(o, "signature verified:");
	for (size_t i = 0; i < v->key.n_identities; i++)
		fetch_note(o, "  %s", v->key.identities[i]);
}

static int check_signature(struct store *s, const struct appc_archive *a, const char *name,
			   const struct fetch_options *o, struct err *e)
{
	cleanup_keystore struct keystore *keys = NULL;
	struct trust_verdict verdict;
	if (o->insecure_image)
		return 0;
	cleanup_fd int signature = a->signature(a->ctx, e);
	if (signature < 0)
		return signature;
	int r = o->keys ? o->keys(o->config_ctx, &keys, e) : keystore_open(NULL, NULL, &keys, e);
	if (r < 0)
		return r;
	char tmp[PATH_MAX + sizeof("/tmp")];
	snprintf(tmp, sizeof(tmp), "%s/tmp", store_path(s));
	r = keystore_verify(keys, name, a->file, signature, tmp, &verdict, e);
	if (r != 0)
		return r < 0 ? r : -EKEYREJECTED;
	note_verdict(o, &verdict);
	return 0;
}

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

/* Fetches the dependency, which is not in the store. */
static int fetch_dependency(struct store *s, const struct aci_dependency *d,
			    const struct fetch_request *q, struct digest *ret, struct err *e)
{
	struct fetched fetched = { .name = "" };
	cleanup_buf struct buf name;
	buf_init(&name, IMAGE_ARG_MAX);
	int r = write_name(d, &name, e);
	if (r < 0)
		return r;
	if (q->depth >= FETCH_DEPTH_MAX)
		return err_set(e, -ELOOP, "images depend on each other more than %d deep",
			       FETCH_DEPTH_MAX);
	struct fetch_request below = *q;
	below.depth++;
	/* With a key, what the store has under this name is not the one that is wanted. */
	below.policy = q->policy == PULL_NEVER ? PULL_NEVER : d->key[0] ? PULL_UPDATE : PULL_NEW;
	below.signature = NULL;
	below.expected = NULL;
	r = appc_fetch(s, buf_data(&name), &below, &fetched, e);
	if (r < 0)
		return r;
	if (!find_is_appc(s, &fetched.id, &d->name, d->key, !q->options.insecure_image))
		return err_set(
			e, -EBADMSG,
			"what was found under this name is another image: not \"%.300s\"%s%.16s",
			buf_data(&name), d->key[0] ? " with the ID sha512-" : "", d->key);
	*ret = fetched.id;
	return 0;
}

/* Finds the dependency in the store, or fetches it. */
static int find_dependency(struct store *s, const struct aci_dependency *d,
			   const struct fetch_request *q, struct digest *ret, struct err *e)
{
	if (find_appc(s, &d->name, d->key, !q->options.insecure_image, ret, NULL) == 0) {
		cleanup_buf struct buf name;
		buf_init(&name, IMAGE_ARG_MAX);
		if (write_name(d, &name, NULL) == 0)
			fetch_note(&q->options, "using image from local store for image name %s",
				   buf_data(&name));
		return 0;
	}
	return fetch_dependency(s, d, q, ret, e) < 0 ? err_context(e, "dependency %s", d->name.name)
						     : 0;
}

static int find_below(struct store *s, const struct aci_manifest *m, const struct fetch_request *q,
		      struct below *ret, struct err *e)
{
	for (size_t i = 0; i < m->n_dependencies; i++) {
		struct digest id;
		int r = find_dependency(s, &m->dependencies[i], q, &id, e);
		if (r == 0)
			r = add_dependency(s, ret, &id, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Layer, configuration and manifest. *ret_id is the digest of the last. */
static int make_blobs(struct import *im, const struct appc_archive *a,
		      const struct fetch_options *o, const char *name, struct digest *ret_id,
		      struct err *e)
{
	struct fetch_meter meter;
	const struct import_progress progress = { fetch_meter_tell, &meter };
	struct oci_descriptor layer = { .media_type = OCI_TYPE_ACI, .size = a->tar.size };
	struct oci_manifest m = { .layers = &layer, .n_layers = 1 };
	m.config = (struct oci_descriptor){ .media_type = OCI_TYPE_APPC, .size = a->manifest_len };
	fetch_meter_begin(&meter, o, name, a->tar.size);
	int r = import_copy(im, &a->tar, NULL, &progress, &layer.digest, e);
	if (r == 0)
		r = import_text(im, a->manifest, a->manifest_len, &m.config.digest, e);
	if (r < 0)
		return r;
	fetch_meter_end(&meter);
	return import_manifest(im, &m, ret_id, e);
}

static int import_archive(struct store *s, struct import *im, const struct appc_archive *a,
			  const struct aci_manifest *m, const struct fetch_request *q,
			  struct fetched *ret, struct err *e)
{
	char key[ACI_KEY_LEN + 1];
	struct below below = { .n = 0 };
	int r = find_below(s, m, q, &below, e);
	if (r == 0)
		r = hash_tar(&a->tar, key, e);
	if (r == 0)
		r = make_blobs(im, a, &q->options, ret->name, &ret->id, e);
	if (r < 0)
		return r;
	const struct import_image image = {
		.id = ret->id,
		.is_appc = true,
		.name = ret->name,
		.key = key,
		.below = below.ids,
		.n_below = below.n,
		.unverified = q->options.insecure_image,
	};
	return import_publish(im, &image, &ret->rendered, e);
}

/* Checks that the image is what was asked for: an old or another one may be signed as well. */
static int check_name(const struct acname *have, const struct acname *want, struct err *e)
{
	if (!want)
		return 0;
	if (strcmp(have->name, want->name) != 0)
		return err_set(e, -EBADMSG,
			       "error when reading the app name: \"%s\" expected but \"%s\" found",
			       want->name, have->name);
	const struct acname_label *l = acname_missing(have, want);
	if (!l)
		return 0;
	const char *value = acname_get(have, l->name);
	if (!value)
		return err_set(e, -EBADMSG,
			       "requested label \"%s\" not provided by the image manifest",
			       l->name);
	return err_set(e, -EBADMSG,
		       "requested value for label \"%s\": \"%s\" differs from fetched aci label "
		       "value: \"%s\"",
		       l->name, l->value, value);
}

int appc_import(struct store *s, struct import *im, const struct appc_archive *a,
		const struct fetch_request *q, struct fetched *ret, struct err *e)
{
	CLEANUP(aci_manifest_deinit) struct aci_manifest m;
	aci_manifest_init(&m);
	int r = aci_manifest_parse(a->manifest, a->manifest_len, &m, e);
	if (r < 0)
		return r;
	/* Who does not care who signed it does not care what it says of itself, as in rkt. */
	if (!q->options.insecure_image)
		r = check_name(&m.name, q->expected, e);
	if (r < 0)
		return r;
	set_name(&m, ret);
	r = check_signature(s, a, m.name.name, &q->options, e);
	return r < 0 ? r : import_archive(s, im, a, &m, q, ret, e);
}

bool appc_is_remote(const char *text)
{
	struct acname n;
	if (acname_parse(text, &n, NULL) < 0)
		return false;
	size_t host = strcspn(n.name, "/");
	return memchr(n.name, '.', host) || strncmp(n.name, "localhost/", host + 1) == 0;
}

/* Tries what discovery found, in its order; the error is the first one's. */
static int fetch_discovered(struct store *s, const struct discovery *d,
			    const struct fetch_request *q, struct fetched *ret, struct err *e)
{
	int first = -ENOENT;
	for (size_t i = 0; i < d->images.n; i++) {
		struct err why = ERR_INIT;
		int r = url_fetch(s, d->images.v[i], d->signatures.v[i], q, ret, &why);
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

int appc_fetch(struct store *s, const char *text, const struct fetch_request *q,
	       struct fetched *ret, struct err *e)
{
	CLEANUP(discovery_deinit) struct discovery d;
	struct acname name;
	int r = acname_parse(text, &name, e);
	if (r < 0)
		return r;
	if (q->policy != PULL_UPDATE &&
	    find_appc(s, &name, "", !q->options.insecure_image, &ret->id, NULL) == 0) {
		fetch_note(&q->options, "using image from local store for image name %s", text);
		return 0;
	}
	if (q->policy == PULL_NEVER)
		return find_appc(s, &name, "", !q->options.insecure_image, &ret->id, e);
	fetch_note(&q->options, "searching for app image %s", text);
	discovery_init(&d);
	struct fetch_request request = *q;
	request.expected = &name;
	r = fetch_load_credentials(&request.options, e);
	if (r == 0)
		r = discovery_find(&name, DISCOVERY_IMAGES, &request.options, &d, e);
	return r < 0 ? r : fetch_discovered(s, &d, &request, ret, e);
}
