/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes and where apps see them: from what the user and the images say to what the manifest has.
 * Pure, but for volumes_check_source().
 */
#ifndef HOST_MANIFEST_VOLUMES_H
#define HOST_MANIFEST_VOLUMES_H

#include "lib/base/err.h"
#include "lib/wire/pod_manifest.h"

/*
 * Adds "NAME,kind=KIND[,KEY=VALUE...]": of kind empty with keys medium, size, mode, uid, gid; host
 * with source, recursive, cache; block with source, format; all with readOnly. A value may have %XX
 * for a byte, as rkt reads it. 0; -EINVAL, -EOPNOTSUPP, -EEXIST, -E2BIG, -ENOMEM with @e.
 */
int volumes_add_text(struct volumes *list, const char *text, struct err *e);

/* Adds "volume=NAME,target=PATH[,readOnly=BOOL]". Errors as above. */
int volumes_add_mount(struct volume_mounts *list, const char *text, struct err *e);

/*
 * Both in one, for one app alone: "name=NAME,kind=KIND,target=PATH[,KEY=VALUE...]", of kind empty
 * or host.
 */
int volumes_add_both(struct volumes *list, struct volume_mounts *mounts, const char *text,
		     struct err *e);

/*
 * Whether what @v has on the host, if it has something there, can be used, now. Opens, and takes
 * nothing. 0, or -errno and @e.
 */
int volumes_check_source(const struct volume *v, bool read_only, struct err *e);

/*
 * Whether all of @mounts are of volumes of @pod, or of the app's own, @own. 0, or -ENOENT and @e.
 */
int volumes_check(const struct volumes *pod, const struct volumes *own,
		  const struct volume_mounts *mounts, struct err *e);

/*
 * Completes the mounts of @app, which is @m's or is to be: those of all apps, @common, where it has
 * none of its own; then the places where its image wants volumes: the volume of that name, or else
 * what the image has there. 0; -ENOENT for a volume that is not there, -E2BIG, -ENOMEM with @e.
 */
int volumes_resolve(const struct pod_manifest *m, const struct volume_mounts *common,
		    struct pod_app *app, struct err *e);

#endif
