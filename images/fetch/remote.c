/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what the registry says the name stands for is compared with what it stood
 * for when the image was fetched (struct ref). Only if that is another image, or it is not in the
 * store any more, the import of the name begins: blobs that the store has are linked into its
 * layout, and skopeo brings the rest, after it has asked the host's policy. What is complete stays
 * there if the connection breaks, for the next try.
 */
#include "images/fetch/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "images/fetch/registry.h"
#include "images/spec/oci.h"
#include "images/store/catalog.h"
#include "lib/base/str.h"

/* Takes from the store what it has of the image. */
static int reuse_blobs(struct import *im, const struct registry_manifest *m, struct err *e)
{
	CLEANUP(oci_manifest_deinit) struct oci_manifest parsed = OCI_MANIFEST_INIT;
	int r = oci_manifest_parse(m->text, m->len, &parsed, e);
	if (r < 0)
		return r;
	import_reuse(im, &parsed.config.digest, parsed.config.size);
	for (size_t i = 0; i < parsed.n_layers; i++)
		import_reuse(im, &parsed.layers[i].digest, parsed.layers[i].size);
	return 0;
}

/* True for failures after which what has come so far is worth keeping. */
static bool can_go_on(int r)
{
	return r != -ENOSPC && r != -EDQUOT && r != -EFBIG && r != -EBADMSG && r != -ENOMEM;
}

/*
 * True if the name stood for this image before, which the host's policy accepted then under this
 * name.
 */
static bool is_current(struct remote *r)
{
	struct digest known;
	if (!remote_is_known(r, &known) || !digest_equal(&known, &r->found.image.id))
		return false;
	r->found.where = FOUND_STORED;
	return true;
}

/*
 * Copies the image, from the store what that has. If it has everything this still asks the host's
 * policy whether the image is acceptable under this name: it may have come under another, or from a
 * file.
 */
static int copy_image(struct remote *r, const struct registry_manifest *m,
		      const struct fetch_options *o, struct err *e)
{
	struct found *f = &r->found;
	int x = import_begin(r->store, f->memo.text, &f->import, e);
	if (x < 0 || is_current(r)) /* somebody else did it meanwhile */
		return x;
	fetch_note(o, "fetching image from docker://%s", f->image.name);
	x = reuse_blobs(f->import, m, e);
	if (x == 0)
		x = registry_copy(&r->name, m, import_dirfd(f->import), o,
				  store_bytes_max(r->store), e);
	if (x < 0) {
		if (can_go_on(x))
			import_keep(f->import);
		return x;
	}
	f->memo.unverified = o->insecure_image; /* then skopeo does not ask the policy */
	f->where = FOUND_BLOBS;
	return 0;
}

int remote_get(struct remote *r, struct err *e)
{
	CLEANUP(registry_manifest_deinit) struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	struct fetch_options options = r->request->options;
	int x = fetch_load_credentials(&options, e);
	if (x == 0)
		x = registry_look(&r->name, &options, &m, e);
	if (x < 0)
		return x;
	r->found.image.id = m.manifest;
	r->found.memo.source = m.source;
	return is_current(r) ? 0 : copy_image(r, &m, &options, e);
}
