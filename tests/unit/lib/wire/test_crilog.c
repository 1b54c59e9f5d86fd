/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/crilog.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"

#define WHEN INT64_C(1475712429669794202)
#define TIME "2016-10-06T00:07:09.669794202Z"

static char got[8 * CRILOG_RECORD_MAX];
static size_t n_records;
static int emit_result;

static int emit(void *ctx, const char *record, size_t len)
{
	struct crilog_record parsed;
	(void)ctx;
	assert_true(len <= CRILOG_RECORD_MAX);
	assert_int_equal(record[len - 1], '\n');
	assert_int_equal(crilog_parse(record, len - 1, &parsed), 0);
	assert_int_equal(parsed.content - record, CRILOG_PREFIX_LEN);
	strncat(got, record, len);
	n_records++;
	return emit_result;
}

static void begin(struct crilog *c, enum crilog_stream stream)
{
	got[0] = '\0';
	n_records = 0;
	emit_result = 0;
	crilog_init(c, stream);
}

static int feed(struct crilog *c, const char *text)
{
	return crilog_feed(c, WHEN, text, strlen(text), emit, NULL);
}

static int emit_plain(void *ctx, const char *record, size_t len)
{
	(void)ctx;
	assert_true(len <= CRILOG_RECORD_MAX);
	strncat(got, record, len);
	return 0;
}

/* As rkt has them. */
static void test_plain(void **state)
{
	(void)state;
	CLEANUP(crilog_deinit) struct crilog c;
	begin(&c, CRILOG_STDERR);
	c.plain = true;
	assert_int_equal(crilog_feed(&c, WHEN, "one\n\ntwo", 8, emit_plain, NULL), 0);
	assert_int_equal(crilog_end(&c, WHEN, emit_plain, NULL), 0);
	assert_string_equal(got, TIME " stderr one\n" TIME " stderr \n" TIME " stderr two\n");
}

static void test_lines(void **state)
{
	(void)state;
	CLEANUP(crilog_deinit) struct crilog c;
	begin(&c, CRILOG_STDERR);
	assert_int_equal(feed(&c, "one\n\ntw"), 0);
	assert_string_equal(got, TIME " stderr F one\n" TIME " stderr F \n");
	got[0] = '\0';
	assert_int_equal(feed(&c, "o"), 0);
	assert_string_equal(got, "");
	assert_int_equal(feed(&c, "\nrest"), 0);
	assert_int_equal(crilog_end(&c, WHEN, emit, NULL), 0);
	assert_string_equal(got, TIME " stderr F two\n" TIME " stderr P rest\n");
	assert_int_equal(crilog_end(&c, WHEN, emit, NULL), 0);
	assert_int_equal(n_records, 4);
}

/*
 * What records of one moment have in common is not taken for another moment, nor partial for full.
 */
static void test_moments(void **state)
{
	(void)state;
	CLEANUP(crilog_deinit) struct crilog c;
	begin(&c, CRILOG_STDOUT);
	assert_int_equal(crilog_feed(&c, 0, "a\nb\n", 4, emit, NULL), 0);
	assert_int_equal(crilog_feed(&c, 1, "c\nd", 3, emit, NULL), 0);
	assert_int_equal(crilog_end(&c, 1, emit, NULL), 0);
	assert_int_equal(crilog_feed(&c, 0, "e\n", 2, emit, NULL), 0);
	assert_string_equal(got, "1970-01-01T00:00:00.000000000Z stdout F a\n"
				 "1970-01-01T00:00:00.000000000Z stdout F b\n"
				 "1970-01-01T00:00:00.000000001Z stdout F c\n"
				 "1970-01-01T00:00:00.000000001Z stdout P d\n"
				 "1970-01-01T00:00:00.000000000Z stdout F e\n");
}

/* A line of exactly the maximum is one record, a longer one goes on in the next. */
static void test_long_lines(void **state)
{
	static char text[2 * CRILOG_CONTENT_MAX + 2];
	(void)state;
	CLEANUP(crilog_deinit) struct crilog c;
	memset(text, 'x', sizeof(text));
	begin(&c, CRILOG_STDOUT);
	text[CRILOG_CONTENT_MAX] = '\n';
	assert_int_equal(crilog_feed(&c, 0, text, CRILOG_CONTENT_MAX + 1, emit, NULL), 0);
	assert_int_equal(n_records, 1);
	assert_non_null(strstr(got, " stdout F x"));
	text[CRILOG_CONTENT_MAX] = 'x';
	crilog_deinit(&c);
	begin(&c, CRILOG_STDOUT);
	assert_int_equal(crilog_feed(&c, 0, text, CRILOG_CONTENT_MAX, emit, NULL), 0);
	assert_int_equal(n_records, 0);
	assert_int_equal(crilog_feed(&c, 0, "x", 1, emit, NULL), 0);
	assert_int_equal(n_records, 1);
	assert_non_null(strstr(got, " stdout P x"));
	assert_int_equal(crilog_feed(&c, 0, "\n", 1, emit, NULL), 0);
	assert_int_equal(n_records, 2);
	crilog_deinit(&c);
	begin(&c, CRILOG_STDOUT);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(crilog_feed(&c, 0, text, sizeof(text), emit, NULL), 0);
	assert_int_equal(n_records, 3);
}

static void test_failures(void **state)
{
	(void)state;
	CLEANUP(crilog_deinit) struct crilog c;
	begin(&c, CRILOG_STDOUT);
	emit_result = -ENOSPC;
	assert_int_equal(feed(&c, "a\nb\n"), -ENOSPC);
	assert_int_equal(n_records, 1);
}

/* Clocks of any kind give records that can be read. */
static void test_odd_times(void **state)
{
	const int64_t times[] = { 0, -1, INT64_MIN, INT64_MAX, 1 };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		CLEANUP(crilog_deinit) struct crilog c;
		begin(&c, CRILOG_STDOUT);
		assert_int_equal(crilog_feed(&c, times[i], "x\n", 2, emit, NULL), 0);
		assert_int_equal(n_records, 1);
	}
}

/* Every day of three hundred years is written as it is read, and follows the one before. */
static void test_calendar(void **state)
{
	(void)state;
	const int64_t day = INT64_C(86400) * 1000000000;
	struct crilog_record r;
	for (int64_t t = 0; t < day * 106000; t += day) {
		CLEANUP(crilog_deinit) struct crilog c;
		begin(&c, CRILOG_STDOUT);
		assert_int_equal(crilog_feed(&c, t + day - 1, "x\n", 2, emit, NULL), 0);
		assert_int_equal(crilog_parse(got, strlen(got) - 1, &r), 0);
		assert_true(r.time_ns == t + day - 1);
		assert_memory_equal(got + 10, "T23:59:59.999999999Z", 20);
	}
	static const struct {
		int64_t seconds;
		const char *date;
	} days[] = {
		{ 0, "1970-01-01" },          { 68169600, "1972-02-29" },
		{ 951782400, "2000-02-29" },  { 951868800, "2000-03-01" },
		{ 4107542400, "2100-03-01" }, { 9214560000, "2261-12-31" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(days); i++) {
		CLEANUP(crilog_deinit) struct crilog c;
		begin(&c, CRILOG_STDOUT);
		crilog_feed(&c, days[i].seconds * 1000000000, "x\n", 2, emit, NULL);
		assert_memory_equal(got, days[i].date, 10);
	}
}

static void test_parse(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		TIME,
		TIME " stdout F",
		TIME " stdlog F x",
		TIME " stdout X x",
		TIME " stdout Fx ",
		"2016-10-06T00:07:09.669794202+ stdout F x",
		"2016-10-06 00:07:09.669794202Z stdout F x",
		"2016-1-006T00:07:09.669794202Z stdout F x",
		"9999-10-06T00:07:09.669794202Z stdout F x",
		"1969-12-31T00:07:09.669794202Z stdout F x",
		"2016-00-06T00:07:09.669794202Z stdout F x",
		"2016-13-06T00:07:09.669794202Z stdout F x",
		"2015-02-29T00:07:09.669794202Z stdout F x",
		"2016-10-06T24:07:09.669794202Z stdout F x",
		"2016-10-06T00:07:60.669794202Z stdout F x",
	};
	struct crilog_record r;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(crilog_parse(bad[i], strlen(bad[i]), &r), -EBADMSG);
	const char *good = TIME " stderr P a b";
	assert_int_equal(crilog_parse(good, strlen(good), &r), 0);
	assert_true(r.time_ns == WHEN && r.stream == CRILOG_STDERR && r.partial && r.len == 3);
	assert_memory_equal(r.content, "a b", 3);
	good = TIME " stdout F ";
	assert_int_equal(crilog_parse(good, strlen(good), &r), 0);
	assert_int_equal(r.len, 0);
	assert_string_equal(crilog_stream_name(CRILOG_STDERR), "stderr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_plain),      fixture_test(test_lines),
		fixture_test(test_long_lines), fixture_test(test_failures),
		fixture_test(test_odd_times),  fixture_test(test_parse),
		fixture_test(test_calendar),   fixture_test(test_moments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
