/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/signame.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/num.h"

#define LAST     64 /* _NSIG of Linux on x86_64 */
#define RTMIN    34 /* the kernel's 32 and 33 are the C library's own */
#define RT_COUNT (LAST - RTMIN)

/* "RTMIN", "RTMIN+N", "RTMAX", "RTMAX-N". */
static int parse_realtime(const char *name)
{
	bool is_max = strncasecmp(name, "RTMAX", 5) == 0;
	uint64_t n = 0;
	if (!is_max && strncasecmp(name, "RTMIN", 5) != 0)
		return -EINVAL;
	if (name[5] &&
	    (name[5] != (is_max ? '-' : '+') || num_parse_u64(name + 6, RT_COUNT, &n) < 0))
		return -EINVAL;
	return is_max ? LAST - (int)n : RTMIN + (int)n;
}

int signame_parse(const char *text)
{
	uint64_t n;
	if (num_parse_u64(text, LAST, &n) == 0)
		return n > 0 ? (int)n : -EINVAL;
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	for (int i = 1; i < RTMIN; i++) {
		const char *known = sigabbrev_np(i);
		if (known && strcasecmp(known, name) == 0)
			return i;
	}
	return parse_realtime(name);
}

const char *signame_format(int number, char ret[SIGNAME_MAX + 1])
{
	const char *known = sigabbrev_np(number);
	if (known)
		snprintf(ret, SIGNAME_MAX + 1, "SIG%s", known);
	else if (number >= RTMIN)
		snprintf(ret, SIGNAME_MAX + 1, number > RTMIN ? "SIGRTMIN+%d" : "SIGRTMIN",
			 number - RTMIN);
	else
		snprintf(ret, SIGNAME_MAX + 1, "%d", number);
	return ret;
}
