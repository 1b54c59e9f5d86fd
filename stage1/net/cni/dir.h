/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the networks of configuration directories. */
#ifndef STAGE1_NET_CNI_DIR_H
#define STAGE1_NET_CNI_DIR_H

#include "lib/base/str.h"
#include "stage1/net/cni/networks.h"

#define CNI_DIRS_MAX  8 /* directories, and layers: those of the system, the admin, the user */
#define CNI_FILES_MAX CNI_NETWORKS_MAX /* of one directory */

/*
 * Fills *ret, which the caller frees, with those that are built in and all of the files *.conf,
 * *.conflist and *.json of @dirs, absolute paths; what is in a later one replaces what is in
 * earlier ones. Directories that are not there are passed over. Files name programs that are
 * executed: nobody but us and root may be able to change them (lib/os/trusted.h). A file that
 * cannot be used is among the networks, as broken; a directory that cannot is an error. 0, -errno
 * and @e.
 */
int cni_dir_load(const struct strv *dirs, struct cni_networks *ret, struct err *e);

#endif
