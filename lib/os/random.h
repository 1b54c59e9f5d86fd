/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes from the kernel. */
#ifndef LIB_OS_RANDOM_H
#define LIB_OS_RANDOM_H

#include <stddef.h>

/* Fills @mem with @len random bytes (at most 256). 0 or -errno. */
int random_bytes(void *mem, size_t len);

#endif
