/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes of the host on their way into a pod: from the manifest, as arguments of the helper
 * process that may mount, to mounts in the directory where the agent finds them.
 */
#ifndef STAGE1_VOLUMES_HOST_VOLUME_H
#define STAGE1_VOLUMES_HOST_VOLUME_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/pod_manifest.h"

#define HOST_VOLUME_NAME_MAX 3 /* digits of a slot */

struct host_volume {
	char name[HOST_VOLUME_NAME_MAX + 1]; /* its slot: the number of the volume */
	bool read_only, recursive;
	const char *path; /* borrowed */
};

/*
 * Appends an argument for each volume of the host that @m uses: @prefix and "SLOT:ro|rw:all|one:
 * PATH", without the space. 0, -E2BIG, -ENOMEM.
 */
int host_volumes_args(const struct pod_manifest *m, const char *prefix, struct strv *argv);

/*
 * Those that @app has brought with it, by their numbers among its own volumes, which they borrow.
 * How many.
 */
size_t host_volumes_of_app(const struct pod_app *app, struct host_volume ret[AGENT_VOLUME_SLOTS]);

/* Takes what is behind the prefix apart. 0 or -EINVAL. */
int host_volume_parse(const char *text, struct host_volume *ret);

/*
 * The volume as a mount, attached nowhere, which is the caller's, and in @ret_key, unless that is
 * NULL, what it is (volume_key.h): as many characters as that says. Or -errno and @e.
 */
int host_volume_mount(const struct host_volume *v, char *ret_key, struct err *e);

/*
 * Gives the files of @mount, of @v and new, the owners in the user namespace @userns that they have
 * on the host. 0; or -EOPNOTSUPP if a file system cannot do that, -errno, and @e, with @without,
 * the option of a pod that needs no such ones.
 */
int host_volume_map_ids(int mount, const struct host_volume *v, int userns, const char *without,
			struct err *e);

/* Makes @name in the directory @dir, on which @mount can be: a directory or a file. 0 or -errno. */
int host_volume_make_place(int mount, int dir, const char *name);

/* Attaches @mount to @name in the directory @dir. 0 or -errno. */
int host_volume_attach(int mount, int dir, const char *name);

#endif
