/* SPDX-License-Identifier: Apache-2.0 */
#include "host/fetch/appc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/appc/trust/keystore.h"
#include "host/image/oci.h"
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

/* Tells whose signature was accepted. */
static void note_verdict(const struct fetch_options *o, const struct trust_verdict *v)
{
	fetch_note(o, "signature verified:");
	for (size_t i = 0; i < v->key.n_identities; i++)
		fetch_note(o, "  %s", v->key.identities[i]);
}

/* The signature: where the user says, else where the source has it, else beside the file. */
static int open_signature(const struct found *f, const struct fetch_request *q, struct err *e)
{
	char beside[PATH_MAX + sizeof(".asc")];
	const char *path = q->signature;
	if (!path && f->signature)
		return f->signature(f->ctx, e);
	if (!path) {
		snprintf(beside, sizeof(beside), "%s.asc", f->file.path);
		path = beside;
	}
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return err_sys(e, -errno,
		       "error opening signature file \"%s\" (give another with --signature, or "
		       "do without: --insecure-options=image)",
		       path);
}

static int check_signature(const struct store *s, int fd, const char *name, const struct found *f,
			   const struct fetch_request *q, struct err *e)
{
	const struct fetch_options *o = &q->options;
	cleanup_keystore struct keystore *keys = NULL;
	struct trust_verdict verdict;
	if (o->insecure_image)
		return 0;
	cleanup_fd int signature = open_signature(f, q, e);
	if (signature < 0)
		return signature;
	int r = o->keys ? o->keys(o->config_ctx, &keys, e) : keystore_open(NULL, NULL, &keys, e);
	if (r < 0)
		return r;
	char tmp[PATH_MAX + sizeof("/tmp")];
	snprintf(tmp, sizeof(tmp), "%s/tmp", store_path(s));
	r = keystore_verify(keys, name, fd, signature, tmp, &verdict, e);
	if (r != 0)
		return r < 0 ? r : -EKEYREJECTED;
	note_verdict(o, &verdict);
	return 0;
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

int appc_check(struct store *s, const struct aci_manifest *m, int fd, struct found *f,
	       const struct fetch_request *q, struct err *e)
{
	/* Who does not care who signed it does not care what it says of itself, as in rkt. */
	int r = q->options.insecure_image ? 0 : check_name(&m->name, q->expected, e);
	if (r < 0)
		return r;
	set_name(m, &f->image);
	return check_signature(s, fd, m->name.name, f, q, e);
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

int appc_make_blobs(struct import *im, const struct appc_archive *a, const struct fetch_options *o,
		    const char *what, char ret_key[ACI_KEY_LEN + 1], struct digest *ret_id,
		    struct err *e)
{
	struct fetch_meter meter;
	const struct import_progress progress = { fetch_meter_tell, &meter };
	struct oci_descriptor layer = { .media_type = OCI_TYPE_ACI, .size = a->tar.size };
	struct oci_manifest m = { .layers = &layer, .n_layers = 1 };
	m.config = (struct oci_descriptor){ .media_type = OCI_TYPE_APPC, .size = a->manifest_len };
	int r = hash_tar(&a->tar, ret_key, e);
	fetch_meter_begin(&meter, o, what, a->tar.size);
	if (r == 0)
		r = import_copy(im, &a->tar, NULL, &progress, &layer.digest, e);
	if (r == 0)
		r = import_text(im, a->manifest, a->manifest_len, &m.config.digest, e);
	if (r < 0)
		return r;
	fetch_meter_end(&meter);
	return import_manifest(im, &m, ret_id, e);
}
