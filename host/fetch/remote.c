/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: what the registry says the name stands for is compared with what it stood for when
 * the image was fetched (struct ref). Only if that is another image, or it is not in the store any more, the
 * import of the name begins: blobs that the store has are linked into its layout, and skopeo brings the rest,
 * after it has asked the host's policy. What is complete stays there if the connection breaks, for the next try.
 */
#include "host/fetch/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/fetch/registry.h"
#include "host/image/oci.h"
#include "host/image/registry_name.h"
#include "host/store/catalog.h"
#include "host/store/import.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"

/* One call of remote_fetch(). */
struct remote {
	struct store *store;
	const struct fetch_request *request;
	struct fetch_options options; /* with credentials */
	struct registry_name name;
	struct ref memo; /* what the name stands for */
	struct fetched *ret;
};

/* True if the store has what the name stood for last, and the host's policy was asked about it, if it counts. */
static bool is_known(struct remote *r)
{
	struct ref known;
	if (catalog_get_ref(r->store, r->memo.text, &known) != 0 ||
	    !catalog_has_image(r->store, &known.image) ||
	    (known.unverified && !r->options.insecure_image))
		return false;
	r->memo.unverified = known.unverified;
	r->ret->id = known.image;
	return true;
}

static int make_key(struct remote *r, const char *text, struct err *e)
{
	char name[REGISTRY_TEXT_MAX + 1], key[sizeof("docker://") + REGISTRY_TEXT_MAX];
	int x = registry_name_parse(text, &r->name, e);
	if (x < 0)
		return x;
	registry_name_text(&r->name, name);
	if (str_copy(r->ret->name, sizeof(r->ret->name), name) < 0)
		return err_set(e, -ENAMETOOLONG,
			       "the whole name, \"%.80s...\", has more than %zu "
			       "bytes",
			       name, IMAGE_NAME_MAX);
	snprintf(key, sizeof(key), "docker://%s", name);
	return ref_init(&r->memo, key);
}

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

/* Notes what the name stands for now. */
static int remember(struct remote *r, const struct registry_manifest *m, struct err *e)
{
	r->memo.image = r->ret->id;
	r->memo.source = m->source;
	r->memo.fetched_ns = clock_realtime_ns();
	return catalog_refer(r->store, &r->memo, e);
}

/* True if the name stood for this image before, which the host's policy accepted then under this name. */
static bool is_current(struct remote *r, const struct registry_manifest *m)
{
	return is_known(r) && digest_equal(&r->ret->id, &m->manifest);
}

static int add_name(struct remote *r, const struct registry_manifest *m, struct err *e)
{
	r->ret->id = m->manifest;
	return catalog_add_name(r->store, &m->manifest, r->ret->name, e);
}

/* Verifies what has been copied, and puts it into the store. */
static int publish(struct remote *r, const struct registry_manifest *m, struct import *im,
		   struct err *e)
{
	const struct import_image image = {
		.id = m->manifest,
		.name = r->ret->name,
	};
	r->ret->id = m->manifest;
	return import_publish(im, &image, &r->ret->rendered, e);
}

/*
 * Copies the image, from the store what that has. If it has everything this still asks the host's policy
 * whether the image is acceptable under this name: it may have come under another, or from a file.
 */
static int copy_image(struct remote *r, const struct registry_manifest *m, struct err *e)
{
	cleanup_import struct import *im = NULL;
	int x = import_begin(r->store, r->memo.text, &im, e);
	if (x < 0)
		return x;
	if (is_current(r, m)) /* somebody else did it meanwhile */
		return add_name(r, m, e);
	fetch_note(&r->options, "fetching image from docker://%s", r->ret->name);
	x = reuse_blobs(im, m, e);
	if (x == 0)
		x = registry_copy(&r->name, m, import_dirfd(im), &r->options,
				  store_bytes_max(r->store), e);
	if (x < 0) {
		if (can_go_on(x))
			import_keep(im);
		return x;
	}
	x = catalog_has_image(r->store, &m->manifest) ? add_name(r, m, e) : publish(r, m, im, e);
	r->memo.unverified = r->options.insecure_image; /* then skopeo does not ask the policy */
	/* While we have the lock: who waits for it looks there. */
	return x != 0 ? x : remember(r, m, e);
}

/* Asks the registry, and copies what it says if the store has it not. */
static int update(struct remote *r, struct err *e)
{
	CLEANUP(registry_manifest_deinit) struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	int x = fetch_load_credentials(&r->options, e);
	if (x == 0)
		x = registry_look(&r->name, &r->options, &m, e);
	if (x < 0)
		return x;
	if (!is_current(r, &m))
		return copy_image(r, &m, e);
	x = add_name(r, &m, e);
	return x != 0 ? x : remember(r, &m, e);
}

int remote_fetch(struct store *s, const char *text, const struct fetch_request *q,
		 struct fetched *ret, struct err *e)
{
	struct remote r = { .store = s, .request = q, .options = q->options, .ret = ret };
	int x = make_key(&r, text, e);
	if (x < 0)
		return x;
	if (q->policy != PULL_UPDATE && is_known(&r)) {
		fetch_note(&q->options, "using image from local store for image name %s",
			   ret->name);
		return 0;
	}
	if (q->policy == PULL_NEVER)
		return err_set(e, -ENOENT,
			       "it is not in the local store (husk fetch, or another "
			       "--pull-policy than never, brings it there)");
	return update(&r, e);
}

bool remote_is_known(struct store *s, const char *text)
{
	struct fetched found;
	struct remote r = { .store = s, .options.insecure_image = true, .ret = &found };
	return make_key(&r, text, NULL) == 0 && is_known(&r);
}
