/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/duration.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"

#define NS_PER_US INT64_C(1000)

/* The unit at *@text, behind which it is moved. 0 if there is none. */
static int64_t take_unit(const char **text)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{ "ns", 1 },         { "us", NS_PER_US },      { "ms", NS_PER_MS },
		{ "s", NS_PER_SEC }, { "m", 60 * NS_PER_SEC }, { "h", 3600 * NS_PER_SEC },
	};
	size_t len = strcspn(*text, "0123456789.");
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == len && strncmp(*text, units[i].name, len) == 0) {
			*text += len;
			return units[i].ns;
		}
	return 0;
}

/*
 * The digits at *@text as a number; *ret_scale (may be NULL) is ten to the power of how many they
 * are.
 */
static int take_digits(const char **text, int64_t *ret, int64_t *ret_scale)
{
	int64_t n = 0, scale = 1;
	for (; **text >= '0' && **text <= '9'; (*text)++) {
		if (__builtin_mul_overflow(n, INT64_C(10), &n) ||
		    __builtin_add_overflow(n, **text - '0', &n))
			return -ERANGE;
		if (ret_scale && __builtin_mul_overflow(scale, INT64_C(10), &scale))
			return -ERANGE;
	}
	*ret = n;
	if (ret_scale)
		*ret_scale = scale;
	return 0;
}

/* One NUMBER[.FRACTION]UNIT, added to *@sum. */
static int take_part(const char **text, int64_t *sum)
{
	int64_t whole, fraction = 0, scale = 1, ns;
	const char *start = *text;
	int r = take_digits(text, &whole, NULL);
	bool any = *text > start;
	if (r == 0 && **text == '.') {
		start = ++*text;
		r = take_digits(text, &fraction, &scale);
		any = any || *text > start;
	}
	int64_t unit = r == 0 && any ? take_unit(text) : 0;
	if (r < 0 || unit == 0)
		return r < 0 ? r : -EINVAL;
	/* Fractions of an hour have up to 13 useful digits: no product of both fits 64 bits. */
	if (__builtin_mul_overflow(whole, unit, &ns) ||
	    __builtin_add_overflow(ns, (int64_t)((__int128)fraction * unit / scale), &ns) ||
	    __builtin_add_overflow(*sum, ns, sum))
		return -ERANGE;
	return 0;
}

int duration_parse(const char *text, int64_t *ret_ns)
{
	int64_t sum = 0;
	bool negative = *text == '-';
	if (negative || *text == '+')
		text++;
	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	do {
		int r = take_part(&text, &sum);
		if (r < 0)
			return r;
	} while (*text);
	*ret_ns = negative ? -sum : sum;
	return 0;
}

/* @ns in units of 10^@digits nanoseconds, with a fraction that has no trailing zeros. */
static void format_fraction(int64_t ns, int digits, const char *name, char *out, size_t size)
{
	char fraction[10] = "";
	int len = 0;
	for (int i = digits - 1; i >= 0; i--, ns /= 10) {
		fraction[i] = (char)('0' + ns % 10);
		if (len == 0 && fraction[i] != '0')
			len = i + 1;
	}
	snprintf(out, size, "%" PRId64 "%s%.*s%s", ns, len > 0 ? "." : "", len, fraction, name);
}

void duration_format(int64_t ns, char out[DURATION_TEXT_MAX])
{
	char seconds[DURATION_TEXT_MAX];
	int64_t minutes = ns / (60 * NS_PER_SEC);
	if (ns == 0 || ns >= NS_PER_SEC)
		format_fraction(ns % (60 * NS_PER_SEC), 9, "s", seconds, sizeof(seconds));
	else if (ns >= NS_PER_MS)
		format_fraction(ns, 6, "ms", seconds, sizeof(seconds));
	else if (ns >= NS_PER_US)
		format_fraction(ns, 3, "us", seconds, sizeof(seconds));
	else
		snprintf(seconds, sizeof(seconds), "%" PRId64 "ns", ns);
	if (minutes >= 60)
		snprintf(out, DURATION_TEXT_MAX, "%" PRId64 "h%" PRId64 "m%.*s", minutes / 60,
			 minutes % 60, 14, seconds);
	else if (minutes > 0)
		snprintf(out, DURATION_TEXT_MAX, "%" PRId64 "m%.*s", minutes, 16, seconds);
	else
		snprintf(out, DURATION_TEXT_MAX, "%s", seconds);
}

int duration_set(void *opts, const struct flag *f, const char *value, const char *examples,
		 struct err *e)
{
	int64_t *slot = (int64_t *)(void *)((char *)opts + f->offset);
	int r = duration_parse(value, slot);
	if (r == 0 && *slot < 0)
		r = -EINVAL;
	return r < 0 ? err_set(e, r, "--%s: \"%.80s\" is not a duration%s", f->name, value,
			       examples)
		     : 0;
}
