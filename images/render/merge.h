/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers put on top of each other, as if they were unpacked one after the other into one directory.
 * No file system is involved, so names can do nothing but name.
 *
 * OCI image-spec, layer.md "Applying Changesets". Where that is silent, husk does what umoci(1)
 * does when it unpacks:
 *
 * - A path is cleaned as text first: "." and empty components vanish, ".." removes the component
 *   before it and is nothing at the top. So "../x", "/x" and "a/../../x" are "x".
 * - Symbolic links among the parents of a path are followed inside the image, absolute ones from
 *   its root; the last component is never followed. Missing parents become directories, mode 0755,
 *   owner 0:0, mtime 0.
 * - A directory over a directory keeps the content and takes all attributes of the new one. Any
 *   other entry removes what was there, with everything below it, and is a new inode: other names
 *   of the old one keep the old content.
 * - A hard link names an existing inode that is not a directory; symbolic links are not followed by
 *   its last component. The link entry's own attributes and content count for nothing.
 * - ".wh.NAME" removes NAME, and ".wh..wh..opq" everything in its directory, as far as it comes
 *   from lower layers; what the same layer puts there stays, whatever the order. Other names that
 *   begin with ".wh..wh." are bookkeeping of aufs and are ignored with everything below them.
 */
#ifndef IMAGES_RENDER_MERGE_H
#define IMAGES_RENDER_MERGE_H

#include "images/render/layer.h"
#include "images/render/tree.h"
#include "lib/base/err.h"

#define MERGE_SYMLINKS_MAX 40              /* followed in one path, as in Linux */
#define MERGE_PATHS_MAX    ((size_t)65536) /* of a whitelist; a manifest has no room for more */

struct merge;

/* Changes @t, which is borrowed. 0 or -ENOMEM. */
int merge_new(struct tree *t, struct merge **ret);

/* Accepts NULL. */
void merge_free(struct merge *m);

/*
 * Starts the next layer, bottom first. Without @whiteouts, names that begin with ".wh." are
 * ordinary.
 */
void merge_begin_layer(struct merge *m, bool whiteouts);

/*
 * Applies one entry of the layer. *ret is the inode of a new regular file, whose content follows,
 * else NULL. 0 or -errno with @e.
 */
int merge_apply(struct merge *m, const struct layer_entry *entry, struct tree_inode **ret,
		struct err *e);

/*
 * After the last layer: leaves only what the @n absolute paths name, and the directories above that
 * (appc specification, image manifest, "pathWhitelist"). A directory that is named keeps nothing
 * that is not named, too. Links are not followed; a path that does not exist is ignored. 0 or
 * -errno with @e: -E2BIG for more than MERGE_PATHS_MAX, -EBADMSG for a path that is relative or too
 * long.
 */
int merge_keep_only(struct merge *m, const char *const *paths, size_t n, struct err *e);

#endif
