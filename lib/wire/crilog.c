/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/crilog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_SEC      INT64_C(1000000000)
#define MINUTES_PER_DAY INT64_C(1440)
#define DAY             INT64_C(86400)
#define TIME_LEN        30 /* "2016-10-06T00:17:09.669794202Z" */

/* The last year whose every nanosecond is an int64_t, and the end of it. */
#define LAST_YEAR 2261
#define LAST_TIME (INT64_C(9214646400) * NS_PER_SEC - 1)

static const char *const stream_names[CRILOG_STREAM_COUNT_] = { "stdout", "stderr" };

const char *crilog_stream_name(enum crilog_stream stream)
{
	return stream_names[stream];
}

void crilog_init(struct crilog *c, enum crilog_stream stream)
{
	c->stream = stream;
	c->plain = false;
	c->head[0] = '\0';
	buf_init(&c->line, CRILOG_CONTENT_MAX);
}

void crilog_deinit(struct crilog *c)
{
	buf_deinit(&c->line);
}

/* The Gregorian calendar, for years from 1970 on. */
static bool is_leap(int year)
{
	return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int year, int month)
{
	static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Days from 1970-01-01 to the first day of @year. */
static int64_t days_before(int year)
{
	int last = year - 1;
	int64_t leaps = last / 4 - last / 100 + last / 400;
	const int64_t leaps_before_1970 = 1969 / 4 - 1969 / 100 + 1969 / 400;
	return INT64_C(365) * (year - 1970) + leaps - leaps_before_1970;
}

static void date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int year = 1970 + (int)(days / 366), month = 1;
	while (days_before(year + 1) <= days)
		year++;
	days -= days_before(year);
	while (days >= days_in(year, month))
		days -= days_in(year, month++);
	*ret_year = year;
	*ret_month = month;
	*ret_day = (int)days + 1;
}

/* The head of a record of a line that is complete, with the blank behind it. */
static void format_head(struct crilog *c, int64_t now_ns)
{
	int year, month, day;
	int64_t ns =
		now_ns < 0 || now_ns > LAST_TIME ? 0 : now_ns; /* a clock that is wrong by ages */
	int64_t seconds = ns / NS_PER_SEC;
	date_of(seconds / DAY, &year, &month, &day);
	int rest = (int)(seconds % DAY);
	snprintf(c->head, sizeof(c->head), "%04d-%02d-%02dT%02d:%02d:%02d.%09dZ %s F ", year, month,
		 day, rest / 3600, rest / 60 % 60, rest % 60, (int)(ns % NS_PER_SEC),
		 stream_names[c->stream]);
	c->head_ns = now_ns;
}

/* One record of what waits and of @len more bytes, which fit into it together. */
static int emit_record(struct crilog *c, int64_t now_ns, bool partial, const char *data, size_t len,
		       crilog_emit_fn emit, void *ctx)
{
	char record[CRILOG_RECORD_MAX];
	size_t n = CRILOG_PREFIX_LEN - (c->plain ? strlen("F ") : 0), waits = buf_len(&c->line);
	if (!c->head[0] || c->head_ns != now_ns)
		format_head(c, now_ns);
	memcpy(record, c->head, n);
	if (partial && !c->plain)
		record[n - 2] = 'P';
	if (waits > 0)
		memcpy(record + n, buf_data(&c->line), waits);
	memcpy(record + n + waits, data, len);
	n += waits + len;
	record[n++] = '\n';
	buf_consume(&c->line, waits);
	return emit(ctx, record, n);
}

int crilog_feed(struct crilog *c, int64_t now_ns, const char *data, size_t len, crilog_emit_fn emit,
		void *ctx)
{
	while (len > 0) {
		size_t room = CRILOG_CONTENT_MAX - buf_len(&c->line);
		const char *newline = memchr(data, '\n', MIN(len, room + 1));
		size_t n = newline ? (size_t)(newline - data) : MIN(len, room);
		int r;
		if (newline)
			r = emit_record(c, now_ns, false, data, n, emit, ctx);
		else if (n == room && len > n)
			r = emit_record(c, now_ns, true, data, n, emit, ctx);
		else
			r = buf_append(&c->line, data, n);
		if (r < 0)
			return r;
		n += newline ? 1 : 0;
		data += n;
		len -= n;
	}
	return 0;
}

int crilog_end(struct crilog *c, int64_t now_ns, crilog_emit_fn emit, void *ctx)
{
	return buf_len(&c->line) > 0 ? emit_record(c, now_ns, true, "", 0, emit, ctx) : 0;
}

/* A number of exactly @digits digits at *@at, with @end behind it, which is passed. */
static int take_number(const char **at, size_t digits, char end, int *ret)
{
	int n = 0;
	for (size_t i = 0; i < digits; i++) {
		char c = (*at)[i];
		if (c < '0' || c > '9')
			return -EBADMSG;
		n = n * 10 + (c - '0');
	}
	if ((*at)[digits] != end)
		return -EBADMSG;
	*at += digits + 1;
	*ret = n;
	return 0;
}

static int parse_time(const char *at, int64_t *ret)
{
	int year, month, day, hour, minute, second, ns;
	if (take_number(&at, 4, '-', &year) < 0 || take_number(&at, 2, '-', &month) < 0 ||
	    take_number(&at, 2, 'T', &day) < 0 || take_number(&at, 2, ':', &hour) < 0 ||
	    take_number(&at, 2, ':', &minute) < 0 || take_number(&at, 2, '.', &second) < 0 ||
	    take_number(&at, 9, 'Z', &ns) < 0)
		return -EBADMSG;
	if (year < 1970 || year > LAST_YEAR || month < 1 || month > 12 || day < 1 ||
	    day > days_in(year, month) || hour > 23 || minute > 59 || second > 59)
		return -EBADMSG;
	int64_t days = days_before(year) + day - 1;
	for (int m = 1; m < month; m++)
		days += days_in(year, m);
	int64_t minutes = days * MINUTES_PER_DAY + INT64_C(60) * hour + minute;
	*ret = (minutes * 60 + second) * NS_PER_SEC + ns;
	return 0;
}

int crilog_parse(const char *line, size_t len, struct crilog_record *ret)
{
	const char *rest = line + TIME_LEN;
	if (len < TIME_LEN + strlen(" stdout F ") || len > CRILOG_RECORD_MAX ||
	    parse_time(line, &ret->time_ns) < 0)
		return -EBADMSG;
	if (memcmp(rest, " stdout ", 8) == 0)
		ret->stream = CRILOG_STDOUT;
	else if (memcmp(rest, " stderr ", 8) == 0)
		ret->stream = CRILOG_STDERR;
	else
		return -EBADMSG;
	if ((rest[8] != 'F' && rest[8] != 'P') || rest[9] != ' ')
		return -EBADMSG;
	ret->partial = rest[8] == 'P';
	ret->content = rest + 10;
	ret->len = len - TIME_LEN - 10;
	return 0;
}
