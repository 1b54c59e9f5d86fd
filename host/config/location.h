/* SPDX-License-Identifier: Apache-2.0 */
/* Where a stage1 is: an absolute path, or a URL of scheme file, http, https or docker. Pure. */
#ifndef HOST_CONFIG_LOCATION_H
#define HOST_CONFIG_LOCATION_H

#include <limits.h>

#include "lib/base/err.h"

/* Checks that @location has one of these forms. 0, or -EINVAL and @e with cause and remedy. */
int location_check(const char *location, struct err *e);

/* LOCATION_E_REMOTE: it is on no path of this host. */
enum {
	LOCATION_E_REMOTE = 1,
};

/*
 * The path that @location, for which location_check() holds, names on this host. 0 or
 * LOCATION_E_REMOTE.
 */
int location_path(const char *location, char out[PATH_MAX]);

#endif
