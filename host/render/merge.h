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
 * - ".wh.NAME" removes NAME, and ".wh..wh..opq" everything in its directory, as far as it comes from
 *   lower layers; what the same layer puts there stays, whatever the order. Other names that begin
 *   with ".wh..wh." are bookkeeping of aufs and are ignored with everything below them.
 */
#ifndef HOST_RENDER_MERGE_H
#define HOST_RENDER_MERGE_H

#include "host/render/layer.h"
#include "host/render/tree.h"
#include "lib/base/err.h"

#define MERGE_SYMLINKS_MAX 40 /* followed in one path, as in Linux */

struct merge;

/* Changes @t, which is borrowed. 0 or -ENOMEM. */
int merge_new(struct tree *t, struct merge **ret);

/* Accepts NULL. */
void merge_free(struct merge *m);

/* Starts the next layer, bottom first. */
void merge_begin_layer(struct merge *m);

/*
 * Applies one entry of the layer. *ret is the inode of a new regular file, whose content follows,
 * else NULL. 0 or -errno with @e.
 */
int merge_apply(struct merge *m, const struct layer_entry *entry, struct tree_inode **ret,
		struct err *e);

#endif
