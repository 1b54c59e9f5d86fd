/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a tree to a tar archive: POSIX.1-2017 pax as libarchive writes it, with extended headers
 * only where something does not fit into ustar.
 *
 * Entries come in byte order of their names, a directory before its content, and nothing depends on
 * the time, the machine or the user, so equal trees give equal bytes. Holes of at least
 * ARCHIVE_HOLE_MIN bytes stay holes (GNU sparse format 1.0). Sockets are left out: they mean
 * nothing without the process that listens.
 */
#ifndef IMAGES_EXPORT_ARCHIVE_H
#define IMAGES_EXPORT_ARCHIVE_H

#include "images/export/content.h"
#include "images/export/sink.h"
#include "images/render/tree.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

/* A hole costs a line in the header and an odd format: not for less than a squashfs block. */
#define ARCHIVE_HOLE_MIN ((uint64_t)128 * 1024)

/*
 * Bytes of all files of a tree together, holes included: as many as an image may have
 * (images/store). A guest makes sparse files of any size for nothing, and the archive writer has to
 * count through them.
 */
#define ARCHIVE_BYTES_MAX (UINT64_C(64) << 30)

struct archive_out;

/* Starts an archive that goes to @sink, which is borrowed. 0 or -errno with @e. */
int archive_out_new(struct sink *sink, struct archive_out **ret, struct err *e);

/* Accepts NULL. */
void archive_out_free(struct archive_out *a);
DEFINE_FREEP(archive_out);

/* Adds a regular file of @len bytes, owner 0:0, mode 0644, mtime 0. 0 or -errno with @e. */
int archive_out_file(struct archive_out *a, const char *name, const void *data, size_t len,
		     struct err *e);

/*
 * Adds all of @t below @prefix, which is "" or ends in a slash; the root itself is then "./" or
 * @prefix. readers[i] has the contents of inodes of the layer i (enum content_layer). A name, with
 * prefix, has at most LAYER_PATH_MAX - 1 bytes. 0 or -errno with @e.
 */
int archive_out_tree(struct archive_out *a, const struct tree *t, const char *prefix,
		     const struct content_reader readers[CONTENT_COUNT_], struct err *e);

/* Ends the archive. 0 or -errno with @e. */
int archive_out_finish(struct archive_out *a, struct err *e);

#endif
