/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/store/catalog.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

/*
 * What a tree is called wherever it is. Raise the number with each change of what is packed of a
 * tree, or of how (images/fetch/pack.h): what was packed before is read again then.
 */
#define TREE_KEY "tree:1:%s"

/* The one text for this path, type and name. */
static int make_key(const struct reference *ref, struct ref *memo, struct err *e)
{
	static const char *const types[] = {
		[REFERENCE_ANY] = "any",
		[REFERENCE_OCI_DIR] = "oci",
		[REFERENCE_OCI_ARCHIVE] = "oci-archive",
		[REFERENCE_DOCKER_ARCHIVE] = "docker-archive",
		[REFERENCE_ROOTFS] = "rootfs",
	};
	char path[PATH_MAX], text[REF_TEXT_MAX + 1];
	if (!realpath(ref->path, path))
		return err_sys(e, -errno, "cannot open");
	snprintf(text, sizeof(text), "file:%s:%s:%s", types[ref->type], path, ref->name);
	return ref_init(memo, text);
}

/*
 * Opens what changes with the image: the file itself, or the index of an OCI layout, whose blobs
 * are named by their digests. -1 if there is none, as for a root file system.
 */
static int open_stamped(const struct reference *ref)
{
	struct stat st;
	cleanup_fd int fd = open(ref->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISDIR(st.st_mode) && ref->type != REFERENCE_ROOTFS &&
	    faccessat(fd, "oci-layout", F_OK, 0) == 0) {
		int index = openat(fd, "index.json", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		close(fd);
		fd = index;
	}
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return TAKE_FD(fd);
}

/* What tells that the image has not changed, if there is something. */
static int take_stamp(struct found *f)
{
	cleanup_fd int fd = open_stamped(&f->file);
	return fd < 0 ? fd : ref_stamp(fd, clock_realtime_ns(), f->memo.stamp);
}

/*
 * Takes the stamp of the image. True if it is that of the last import, whose image is still there
 * and need not be looked at again; then that is the result.
 */
static bool is_unchanged(const struct store *s, const struct fetch_request *q, struct found *f)
{
	return take_stamp(f) == 0 && *f->memo.stamp && local_is_known(s, q, f);
}

bool local_is_known(const struct store *s, const struct fetch_request *q, struct found *f)
{
	struct ref known;
	if (catalog_get_ref(s, f->memo.text, &known) != 0 ||
	    strcmp(known.stamp, f->memo.stamp) != 0 || !catalog_has_image(s, &known.image) ||
	    (known.unverified && !q->options.insecure_image) || q->signature)
		return false;
	f->image.id = known.image;
	str_copy(f->image.name, sizeof(f->image.name), known.name);
	return true;
}

bool local_identify(const struct store *s, const struct fetch_request *q,
		    char ret[REF_STAMP_MAX + 1])
{
	return q->identify && !store_is_shared(s) && q->identify(q->identity_ctx, ret);
}

/* Of a tree that has an identity that is the stamp, and makes the key. */
static bool make_tree_key(const struct store *s, const struct fetch_request *q, struct ref *memo)
{
	char identity[REF_STAMP_MAX + 1], text[sizeof(TREE_KEY) + REF_STAMP_MAX];
	if (!local_identify(s, q, identity))
		return false;
	snprintf(text, sizeof(text), TREE_KEY, identity);
	return ref_init(memo, text) == 0 &&
	       str_copy(memo->stamp, sizeof(memo->stamp), identity) == 0;
}

int local_look(struct store *s, const struct reference *ref, const struct fetch_request *q,
	       struct found *ret, struct err *e)
{
	bool is_tree = make_tree_key(s, q, &ret->memo);
	int r = is_tree ? 0 : make_key(ref, &ret->memo, e);
	if (r < 0)
		return r;
	ret->where = FOUND_FILE;
	ret->file = *ref;
	if (is_tree ? local_is_known(s, q, ret) : is_unchanged(s, q, ret))
		ret->where = FOUND_KNOWN;
	return 0;
}
