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

/* Whether AddressSanitizer is compiled in: it maps terabytes, so memory cannot be limited. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef HAS_ADDRESS_SANITIZER
#define HAS_ADDRESS_SANITIZER 0
#endif

/* Defines NAME_freep(), which CLEANUP() takes: it hands the pointer to NAME_free(). */
#define DEFINE_FREEP(name)                                \
	static inline void name##_freep(struct name **at) \
	{                                                 \
		name##_free(*at);                         \
	}                                                 \
	struct name

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

/*
 * Makes room for one more member behind the @n of the array @v, which GROW() alone allocates: its
 * size is a power of two. Yields false, and leaves @v alone, if memory is short.
 */
#define GROW(v, n)                                                                     \
	({                                                                             \
		size_t n_ = (n);                                                       \
		void *grown_ = (v);                                                    \
		if ((n_ & (n_ - 1)) == 0)                                              \
			grown_ = reallocarray((v), n_ > 0 ? 2 * n_ : 1, sizeof(*(v))); \
		if (grown_)                                                            \
			(v) = grown_;                                                  \
		grown_ != NULL;                                                        \
	})

static inline void cleanup_free_(void *p)
{
	free(*(void **)p);
}

/* Declares a pointer that is passed to free(3) at the end of its scope. */
#define cleanup_free CLEANUP(cleanup_free_)

#endif
