/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/when.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"

#define MINUTE INT64_C(60)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define WEEK   (7 * DAY)
#define MONTH  (30 * DAY)
#define YEAR   (12 * MONTH)
#define EPOCH  (37 * YEAR) /* beyond it nobody counts */

/* Below @limit seconds the distance is counted in @unit. */
static const struct {
	int64_t limit, unit;
	const char *name;
} scales[] = {
	{ MINUTE, 1, "second" }, { HOUR, MINUTE, "minute" }, { DAY, HOUR, "hour" },
	{ WEEK, DAY, "day" },    { MONTH, WEEK, "week" },    { YEAR, MONTH, "month" },
	{ EPOCH, YEAR, "year" },
};

void when_relative(int64_t then_ns, int64_t now_ns, char out[WHEN_TEXT_MAX])
{
	const char *direction = then_ns <= now_ns ? "ago" : "from now";
	int64_t s = (then_ns <= now_ns ? now_ns - then_ns : then_ns - now_ns) / NS_PER_SEC;
	if (s < 1) {
		snprintf(out, WHEN_TEXT_MAX, "now");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
		if (s >= scales[i].limit)
			continue;
		int64_t n = s / scales[i].unit;
		/* A year and a half is nearer to two. */
		if (scales[i].unit == YEAR && n == 1 && s >= 18 * MONTH)
			n = 2;
		snprintf(out, WHEN_TEXT_MAX, "%lld %s%s %s", (long long)n, scales[i].name,
			 n == 1 ? "" : "s", direction);
		return;
	}
	snprintf(out, WHEN_TEXT_MAX, "a long while %s", direction);
}

/* With up to @digits of the nine digits behind the second, without trailing zeros. */
static void format_time(int64_t then_ns, int digits, char out[WHEN_TEXT_MAX])
{
	time_t seconds = (time_t)(then_ns / NS_PER_SEC);
	int fraction = (int)(then_ns % NS_PER_SEC), shown = 9;
	struct tm tm;
	char date[32], zone[24];
	if (!localtime_r(&seconds, &tm) || strftime(date, sizeof(date), "%F %T", &tm) == 0 ||
	    strftime(zone, sizeof(zone), "%z %Z", &tm) == 0) {
		snprintf(out, WHEN_TEXT_MAX, "unknown");
		return;
	}
	for (; shown > 0 && (shown > digits || fraction % 10 == 0); shown--)
		fraction /= 10;
	if (shown > 0)
		snprintf(out, WHEN_TEXT_MAX, "%s.%0*d %s", date, shown, fraction, zone);
	else
		snprintf(out, WHEN_TEXT_MAX, "%s %s", date, zone);
}

void when_absolute(int64_t then_ns, char out[WHEN_TEXT_MAX])
{
	format_time(then_ns, 3, out);
}

void when_exact(int64_t then_ns, char out[WHEN_TEXT_MAX])
{
	format_time(then_ns, 9, out);
}

void when_rfc3339(int64_t then_ns, char out[WHEN_TEXT_MAX])
{
	time_t seconds = (time_t)(then_ns / NS_PER_SEC);
	char date[32];
	struct tm tm;
	if (then_ns < 0 || !gmtime_r(&seconds, &tm) ||
	    strftime(date, sizeof(date), "%FT%T", &tm) == 0) {
		snprintf(out, WHEN_TEXT_MAX, "1970-01-01T00:00:00.000000000Z");
		return;
	}
	snprintf(out, WHEN_TEXT_MAX, "%s.%09dZ", date, (int)(then_ns % NS_PER_SEC));
}
