/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
 * Takes the stamp of a regular file. True if it is that of the last import, whose image is still
 * there and need not be looked at again; then that is the result.
 */
static bool is_unchanged(const struct store *s, const struct fetch_request *q, struct found *f)
{
	struct stat st;
	struct ref known;
	if (stat(f->file.path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	cleanup_fd int fd = open(f->file.path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
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
	fetch_note(&q->options, "using image from file %s", ref->path);
	if (is_unchanged(s, q, ret)) {
		fetch_note(&q->options, "%s has not changed since it was imported", ref->path);
		ret->where = FOUND_KNOWN;
	}
	return 0;
}
