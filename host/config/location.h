/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a stage1 is: an absolute path, or a URL of scheme file, http, https or docker. Pure. husk
 * uses paths and file URLs, which name the directory of a stage1; the others are known so that rkt's
 * files can be read.
 */
#ifndef HOST_CONFIG_LOCATION_H
#define HOST_CONFIG_LOCATION_H

#include <limits.h>

#include "lib/base/err.h"

/* Checks that @location has one of these forms. 0, or -EINVAL and @e with cause and remedy. */
int location_check(const char *location, struct err *e);

/*
 * The path that @location, for which location_check() holds, names on this host. 0, or -EINVAL and
 * @e for a URL that would have to be fetched.
 */
int location_path(const char *location, char out[PATH_MAX], struct err *e);

#endif
