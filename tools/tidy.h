/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included in front of every unit that clang-tidy looks at, and nowhere else: tells the analyzer
 * what it cannot know from one unit alone.
 *
 * errno is positive after a failed call, and the functions of lib/base/err.h return what is
 * negative. Without this every function that ends with "return -errno" or "return err_set(...)" is
 * taken to succeed without having written its results.
 */
#ifndef TOOLS_TIDY_H
#define TOOLS_TIDY_H

#include <errno.h>

#include "lib/base/err.h"

static inline int *tidy_errno(void)
{
	int *p = __errno_location();
	if (*p <= 0)
		__builtin_unreachable();
	return p;
}

#undef errno
#define errno (*tidy_errno())

static inline int tidy_negative(int r)
{
	if (r >= 0)
		__builtin_unreachable();
	return r;
}

#ifndef TIDY_ERR_C /* where they are defined */
#define err_set(...)     tidy_negative(err_set(__VA_ARGS__))
#define err_sys(...)     tidy_negative(err_sys(__VA_ARGS__))
#define err_context(...) tidy_negative(err_context(__VA_ARGS__))
#endif

#endif
