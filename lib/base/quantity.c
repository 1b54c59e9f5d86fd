/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/quantity.h"

#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"

#define QUANTITY_WHOLE_MAX ((uint64_t)(INT64_MAX / QUANTITY_UNIT)) /* what thousandths hold */

/* What a suffix multiplies with, in thousandths; 0 if it is none. */
static int64_t suffix_factor(const char *s)
{
	static const struct {
		const char *name;
		int64_t factor;
	} suffixes[] = {
		{ "", QUANTITY_UNIT },
		{ "m", 1 },
		{ "k", QUANTITY_UNIT * 1000 },
		{ "M", QUANTITY_UNIT * 1000 * 1000 },
		{ "G", QUANTITY_UNIT * 1000 * 1000 * 1000 },
		{ "T", QUANTITY_UNIT * 1000 * 1000 * 1000 * 1000 },
		{ "Ki", QUANTITY_UNIT << 10 },
		{ "Mi", QUANTITY_UNIT << 20 },
		{ "Gi", QUANTITY_UNIT << 30 },
		{ "Ti", QUANTITY_UNIT << 40 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (strcmp(suffixes[i].name, s) == 0)
			return suffixes[i].factor;
	return 0;
}

/* DIGITS[.DIGITS] at the start of *@s, which moves behind it; at most three behind the point. */
static int take_number(const char **s, int64_t *ret_whole, int64_t *ret_thousandths)
{
	static const char digits[] = "0123456789";
	char whole[20]; /* more digits than QUANTITY_WHOLE_MAX has */
	uint64_t n;
	while (**s == '0' && (*s)[1] && strchr(digits, (*s)[1])) /* however many there are */
		++*s;
	size_t len = strspn(*s, digits);
	if (len >= sizeof(whole))
		return -ERANGE;
	memcpy(whole, *s, len);
	whole[len] = '\0';
	int r = num_parse_u64(whole, QUANTITY_WHOLE_MAX, &n);
	if (r < 0)
		return r;
	*s += len;
	*ret_whole = (int64_t)n;
	*ret_thousandths = 0;
	if (**s != '.')
		return 0;
	len = strspn(++*s, digits);
	if (len == 0 || len > 3)
		return -EINVAL;
	for (size_t i = 0; i < 3; i++)
		*ret_thousandths = *ret_thousandths * 10 + (i < len ? (*s)[i] - '0' : 0);
	*s += len;
	return 0;
}

int quantity_parse(const char *text, int64_t *ret)
{
	int64_t whole, thousandths, a, b;
	int r = take_number(&text, &whole, &thousandths);
	int64_t factor = r < 0 ? 0 : suffix_factor(text);
	if (r < 0 || factor == 0)
		return r < 0 ? r : -EINVAL;
	if (__builtin_mul_overflow(whole, factor, &a) ||
	    __builtin_mul_overflow(thousandths, factor, &b) ||
	    __builtin_add_overflow(a, (b + QUANTITY_UNIT - 1) / QUANTITY_UNIT, ret))
		return -ERANGE;
	return 0;
}

int size_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	int64_t n = 0;
	int r = quantity_parse(text, &n);
	if (r < 0)
		return r;
	uint64_t bytes = (uint64_t)n / QUANTITY_UNIT + (n % QUANTITY_UNIT > 0);
	if (bytes < min || bytes > max)
		return -ERANGE;
	*ret = bytes;
	return 0;
}
