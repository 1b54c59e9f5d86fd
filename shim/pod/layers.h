/* SPDX-License-Identifier: Apache-2.0 */
/* Of which layers a root file system is, by what containerd would have it mounted from. */
#ifndef SHIM_POD_LAYERS_H
#define SHIM_POD_LAYERS_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/pod/mount_options.h"

#define LAYERS_MAX      ((size_t)500) /* overlayfs takes that many directories below */
#define LAYERS_TEXT_LEN ((size_t)64)  /* hexadecimal digits */

/*
 * Yields in @ret what is the same for root file systems of the same layers in which nothing is
 * written yet, and different for all others: for one overlayfs that is mounted from directories of
 * a single file system, which remembers when it made each of them. That containerd never changes a
 * layer is believed: of each only the top directory is looked at. False if it cannot be told.
 */
bool layers_identify(const struct husk_mount *mounts, size_t n, char ret[LAYERS_TEXT_LEN + 1]);

#endif
