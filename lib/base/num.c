/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/num.h"

#include <errno.h>
#include <string.h>

/* Parses the leading digits of @s; *ret_end points behind them. */
static int parse_digits(const char *s, uint64_t max, uint64_t *ret, const char **ret_end)
{
	uint64_t n = 0;
	const char *p = s;
	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
			return -ERANGE;
	}
	if (p == s)
		return -EINVAL;
	if (n > max)
		return -ERANGE;
	*ret = n;
	*ret_end = p;
	return 0;
}

int num_parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t n;
	const char *end;
	int r = parse_digits(s, max, &n, &end);
	if (r < 0)
		return r;
	if (*end)
		return -EINVAL;
	*ret = n;
	return 0;
}
