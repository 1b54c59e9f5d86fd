/* SPDX-License-Identifier: Apache-2.0 */
/* Small macros used everywhere: array sizes, scope-bound cleanup, transfer of ownership. */
#ifndef LIB_BASE_MACROS_H
#define LIB_BASE_MACROS_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)     ((a) < (b) ? (a) : (b))
#define MAX(a, b)     ((a) > (b) ? (a) : (b))

/* Runs @fn(&variable) when the variable leaves its scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

#define PRINTF_FORMAT(fmt, args) __attribute__((format(printf, fmt, args)))

/* Gives up ownership of a pointer: yields its value and leaves NULL behind. */
#define TAKE_PTR(p)                            \
	({                                     \
		__typeof__(p) *take_ = &(p);   \
		__typeof__(p) taken_ = *take_; \
		*take_ = NULL;                 \
		taken_;                        \
	})

/* Gives up ownership of a file descriptor: yields its value and leaves -EBADF behind. */
#define TAKE_FD(fd)                  \
	({                           \
		int *take_ = &(fd);  \
		int taken_ = *take_; \
		*take_ = -EBADF;     \
		taken_;              \
	})

static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}

/* Declares a pointer that is passed to free(3) at the end of its scope. */
#define cleanup_free CLEANUP(cleanup_free_)

#endif
