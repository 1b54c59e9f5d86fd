/* SPDX-License-Identifier: Apache-2.0 */
/* Who could have a hand in a program that somebody else told us to execute. */
#ifndef HOST_LAUNCH_TRUSTED_H
#define HOST_LAUNCH_TRUSTED_H

#include <sys/types.h>

#include "host/launch/stage1.h"
#include "lib/base/err.h"

/* trusted_path() of the manifest and all entrypoints of @s. Its errors. */
int trusted_stage1(const struct stage1 *s, uid_t user, struct err *e);

#endif
