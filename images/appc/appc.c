/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/appc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "images/appc/trust/keystore.h"
#include "lib/os/fd.h"

void appc_name(const struct aci_manifest *m, char out[IMAGE_NAME_MAX + 1])
{
	const char *version = acname_get(&m->name, "version");
	int n = snprintf(out, IMAGE_NAME_MAX + 1, "%s%s%s", m->name.name, version ? ":" : "",
			 version ? version : "");
	if (n < 0 || (size_t)n > IMAGE_NAME_MAX)
		str_copy(out, IMAGE_NAME_MAX + 1, m->name.name);
}

/* Tells whose signature was accepted. */
static void note_verdict(const struct fetch_options *o, const struct trust_verdict *v)
{
	fetch_note(o, "signature verified:");
	for (size_t i = 0; i < v->key.n_identities; i++)
		fetch_note(o, "  %s", v->key.identities[i]);
}

/* The signature: where the user says, else where the source has it, else beside the file. */
static int open_signature(const struct appc_image *i, const struct fetch_request *q, struct err *e)
{
	char beside[PATH_MAX + sizeof(".asc")];
	const char *path = q->signature;
	if (!path && i->signature)
		return i->signature(i->ctx, e);
	if (!path) {
		snprintf(beside, sizeof(beside), "%s.asc", i->path);
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

static int check_signature(const struct appc_image *i, const struct fetch_request *q,
			   const char *tmp_dir, struct err *e)
{
	const struct fetch_options *o = &q->options;
	struct trust_verdict verdict;
	if (o->insecure_image)
		return 0;
	cleanup_fd int signature = open_signature(i, q, e);
	if (signature < 0)
		return signature;
	int r = keystore_verify(&o->keys, i->manifest->name.name, i->file, signature, tmp_dir,
				&verdict, e);
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

int appc_check(const struct appc_image *i, const struct fetch_request *q, const char *tmp_dir,
	       struct err *e)
{
	/* Who does not care who signed it does not care what it says of itself, as in rkt. */
	int r = q->options.insecure_image ? 0 : check_name(&i->manifest->name, q->expected, e);
	return r < 0 ? r : check_signature(i, q, tmp_dir, e);
}
