/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of this machine as a tar. */
#ifndef IMAGES_FETCH_PACK_H
#define IMAGES_FETCH_PACK_H

#include <stdint.h>

#include "images/fetch/common/options.h"
#include "images/spec/digest.h"
#include "lib/base/err.h"

/*
 * Writes the directory @path as a pax archive to @fd, from its offset on: owners, modes, times,
 * links, devices, extended attributes and holes as they are, sorted by name, so that equal trees
 * give equal bytes. File systems mounted below @path and sockets are left out; @path itself may be
 * a symbolic link. *ret is the digest of all of it. 0, or -errno with @e that names the file:
 * -EFBIG if all regular files, holes included, have more than @bytes_max bytes.
 */
int pack_directory(const char *path, int fd, uint64_t bytes_max, struct fetch_meter *meter,
		   struct digest *ret, struct err *e);

#endif
