/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits of an app as text: "NAME=SOFT:HARD", or "NAME=N" for both. */
#ifndef LIB_WIRE_RLIMIT_H
#define LIB_WIRE_RLIMIT_H

#include <stdint.h>

#define RLIMIT_UNLIMITED UINT64_MAX /* RLIM64_INFINITY of prlimit(2) */

struct rlimit_spec {
	int resource; /* RLIMIT_... of setrlimit(2), as Linux numbers them */
	uint64_t soft, hard;
};

/*
 * Reads one limit. NAME is that of setrlimit(2) in lower case without "RLIMIT_"; SOFT, HARD and N
 * are decimal numbers or "unlimited", in the unit that setrlimit(2) has for NAME. -EINVAL if @text
 * is anything else, -ERANGE if a number is too large or SOFT is above HARD.
 */
int rlimit_parse(const char *text, struct rlimit_spec *ret);

/* The name of the resource, or NULL if there is none of that number. */
const char *rlimit_name(int resource);

#endif
