/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the data directory can hold what the apps of pods change. */
#ifndef STAGE1_NS_BACKEND_DATA_DIR_H
#define STAGE1_NS_BACKEND_DATA_DIR_H

#include "lib/base/err.h"

/*
 * Does in the working directory what a pod does in its own, and asks the kernel that way: an
 * overlay whose upper directory is there and, for root, a mount that shows other ids. Leaves
 * nothing behind. 0, or -errno and @e.
 */
int data_dir_check(struct err *e);

#endif
