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

/*
 * Takes the stamp of the image. True if it is that of the last import, whose image is still there
 * and need not be looked at again; then that is the result.
 */
static bool is_unchanged(const struct store *s, const struct fetch_request *q, struct found *f)
{
	struct ref known;
	cleanup_fd int fd = open_stamped(&f->file);
	if (fd < 0 || ref_stamp(fd, clock_realtime_ns(), f->memo.stamp) < 0 || !*f->memo.stamp)
		return false;
	if (catalog_get_ref(s, f->memo.text, &known) != 0 ||
	    strcmp(known.stamp, f->memo.stamp) != 0 || !catalog_has_image(s, &known.image) ||
	    (known.unverified && !q->options.insecure_image) || q->signature)
		return false;
	f->image.id = known.image;
	str_copy(f->image.name, sizeof(f->image.name), known.name);
	return true;
}

int local_look(struct store *s, const struct reference *ref, const struct fetch_request *q,
	       struct found *ret, struct err *e)
{
	int r = make_key(ref, &ret->memo, e);
	if (r < 0)
		return r;
	ret->where = FOUND_FILE;
	ret->file = *ref;
	if (is_unchanged(s, q, ret))
		ret->where = FOUND_KNOWN;
	return 0;
}
