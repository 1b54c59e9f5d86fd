/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `husk export`: what an app of an ended pod sees as its root file system, as an image archive; and
 * `husk image export`: the same of an image alone.
 *
 * The image below (squashfs) and the app's changes (an ext4 that a guest wrote, or a directory of
 * the host) are read, merged and packed in a confined child; nothing is mounted, nothing is
 * unpacked.
 */
#ifndef IMAGES_EXPORT_EXPORT_H
#define IMAGES_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

enum export_format {
	EXPORT_ACI,       /* gzip of a tar with "manifest" and "rootfs/" */
	EXPORT_ACI_PLAIN, /* the same, not compressed */
	EXPORT_OCI,       /* tar of an OCI layout with one image of one gzip layer */
	EXPORT_FORMAT_COUNT_,
};

/* What to export. All is borrowed. */
struct export_job {
	const struct pod_app *app;
	enum export_format format;
	int image; /* the app's rendered image, read-only */
	/* The app's changes: the pod's scratch disk, read-only, a directory, or (-EBADF) none. */
	int disk, upper;
	bool marks_are_user; /* overlayfs has marked directories with user.overlay.* there */
	int out;             /* an empty file, read-write */
};

/* What a person should know about the result. */
struct export_report {
	bool unclean; /* the virtual machine did not complete the disk */
	size_t lost;  /* names that were left out because their inodes were never written */
};

/* Exports in this process. 0 or -errno with @e; what @job->out then holds is of no use. */
int export_here(const struct export_job *job, struct export_report *ret, struct err *e);

/*
 * Exports in a confined child (images/render/confine.h); of others than root, what is in a
 * directory with the ids of their user namespaces (lib/os/userns.h). 0 or -errno with @e.
 */
int export_confined(const struct export_job *job, struct export_report *ret, struct err *e);

#endif
