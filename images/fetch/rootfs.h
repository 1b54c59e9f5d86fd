/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Root file systems that are no image: a directory, or a tar of one. They become an image of one
 * layer that asks for nothing.
 */
#ifndef IMAGES_FETCH_ROOTFS_H
#define IMAGES_FETCH_ROOTFS_H

#include <stdint.h>

#include "images/fetch/common/options.h"
#include "images/spec/digest.h"
#include "images/store/import.h"
#include "lib/base/err.h"

/*
 * Makes blobs of a layer, a configuration and a manifest in @im; *ret_id is the manifest's digest.
 * Equal trees and equal tars give equal images. @path is a directory, packed as it is, without what
 * is mounted below it; or a tar, plain or compressed (gzip, zstd, xz, bzip2). The files of the one,
 * and the decompressed bytes of the other, are at most @bytes_max. 0 or -errno with @e.
 */
int rootfs_import(struct import *im, const char *path, uint64_t bytes_max,
		  const struct fetch_options *o, struct digest *ret_id, struct err *e);

#endif
