/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/image_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/cli/format/show.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define NOW      (INT64_C(1700000000) * NS_PER_SEC)
#define HOUR     (INT64_C(3600) * NS_PER_SEC)
#define MIB      ((uint64_t)1024 * 1024)
#define ALL      "id,name,size,importtime,lastused"
#define N_SAMPLE 3
#define N_NAMES  64 /* as many as an image may have */

/* An image whose hash begins with @hex; @names ends with NULL. */
static int make_row(struct listed_image *row, const char *hex, const char *const *names,
		    uint64_t size, int64_t imported_ns, int64_t last_use_ns)
{
	strv_init(&row->names, N_NAMES);
	memset(row->id, '0', IMAGE_ID_LEN);
	row->id[IMAGE_ID_LEN] = '\0';
	memcpy(row->id, "sha256-", strlen("sha256-"));
	memcpy(row->id + strlen("sha256-"), hex, strlen(hex));
	row->imported_ns = imported_ns;
	row->size = size;
	row->last_use_ns = last_use_ns;
	int r = 0;
	for (size_t i = 0; r == 0 && names[i]; i++)
		r = strv_add(&row->names, names[i]);
	return r;
}

static void make_sample(struct listed_image rows[N_SAMPLE])
{
	static const char *const names[][3] = {
		{ "docker.io/library/debian:12", "debian:bookworm", NULL },
		{ "alpine", NULL },
		{ "busybox", NULL },
	};
	assert_int_equal(
		make_row(&rows[0], "abc", names[0], 120 * MIB, NOW - 48 * HOUR, NOW - 2 * HOUR), 0);
	assert_int_equal(make_row(&rows[1], "123", names[1], 9 * MIB + MIB / 2, NOW - HOUR, NOW),
			 0);
	assert_int_equal(make_row(&rows[2], "123456789abcdef", names[2], 700, NOW - 48 * HOUR,
				  NOW - 3 * HOUR),
			 0);
}

static void rows_deinit(struct listed_image *rows)
{
	for (size_t i = 0; i < N_SAMPLE; i++)
		strv_deinit(&rows[i].names);
}

/* The table of the sample; the caller frees it. */
static char *format(const struct listed_image *rows, const char *fields, bool full)
{
	CLEANUP(table_deinit) struct table t;
	struct image_columns columns;
	struct err e = ERR_INIT;
	struct buf out;
	assert_int_equal(image_columns_parse(fields, &columns, &e), 0);
	table_init(&t, columns.n);
	buf_init(&out, 65536);
	assert_int_equal(image_rows_header(&t, &columns), 0);
	for (size_t i = 0; i < N_SAMPLE; i++)
		assert_int_equal(image_rows_add(&t, &columns, &rows[i], full, NOW), 0);
	assert_int_equal(table_format(&t, &out), 0);
	return buf_take_string(&out);
}

static void test_table(void **state)
{
	struct listed_image rows[N_SAMPLE];
	(void)state;
	make_sample(rows);
	cleanup_free char *text = format(rows, ALL, false);
	assert_string_equal(
		text,
		"ID\t\t\tNAME\t\t\t\tSIZE\tIMPORT TIME\tLAST USED\n"
		"sha256-abc000000000\tdebian:bookworm\t\t\t120MiB\t2 days ago\t2 hours ago\n"
		"sha256-abc000000000\tdocker.io/library/debian:12\t120MiB\t2 days ago\t2 hours ago\n"
		"sha256-123000000000\talpine\t\t\t\t9.5MiB\t1 hour ago\tnow\n"
		"sha256-123456789abc\tbusybox\t\t\t\t700B\t2 days ago\t3 hours ago\n");
	cleanup_free char *some = format(rows, "lastused,name", false);
	assert_string_equal(some, "LAST USED\tNAME\n"
				  "2 hours ago\tdebian:bookworm\n"
				  "2 hours ago\tdocker.io/library/debian:12\n"
				  "now\t\talpine\n"
				  "3 hours ago\tbusybox\n");
	rows_deinit(rows);
}

/* An image whose names have moved to others has a row all the same. */
static void test_without_name(void **state)
{
	static const char *const none[] = { NULL };
	struct listed_image rows[N_SAMPLE];
	(void)state;
	for (size_t i = 0; i < N_SAMPLE; i++)
		assert_int_equal(make_row(&rows[i], "abc", none, MIB, NOW, NOW), 0);
	cleanup_free char *text = format(rows, "name,size", false);
	assert_string_equal(text, "NAME\tSIZE\n"
				  "\t1.0MiB\n"
				  "\t1.0MiB\n"
				  "\t1.0MiB\n");
	rows_deinit(rows);
}

static void test_full(void **state)
{
	struct listed_image rows[N_SAMPLE];
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	make_sample(rows);
	cleanup_free char *text = format(rows, "id,size,importtime,lastused", true);
	const char *second = strchr(text, '\n') + 1;
	assert_true(strncmp(second,
			    "sha256-abc0000000000000000000000000000000000000000000000000000000000"
			    "000\t125829120\t2023-11-12 22:13:20 +0000 UTC\t2023-11-14 20:13:20 "
			    "+0000 UTC\n",
			    strcspn(second, "\n") + 1) == 0);
	rows_deinit(rows);
}

static void test_json(void **state)
{
	struct listed_image rows[N_SAMPLE];
	cleanup_buf struct buf out;
	(void)state;
	make_sample(rows);
	cleanup_json struct json_object *o = image_row_json(&rows[0]);
	buf_init(&out, 65536);
	assert_non_null(o);
	assert_int_equal(show_json(o, SHOW_JSON, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(
		buf_data(&out),
		"{\"id\":\"sha256-abc0000000000000000000000000000000000000000000000000000000000000\","
		"\"name\":\"debian:bookworm\","
		"\"names\":[\"docker.io/library/debian:12\",\"debian:bookworm\"],"
		"\"import_time\":1699827200000000000,\"last_used_time\":1699992800000000000,"
		"\"size\":125829120}\n");
	rows_deinit(rows);
}

static void test_columns(void **state)
{
	static const struct {
		const char *text, *want;
	} wrong[] = {
		{ "", "--fields: unknown field \"\" (id, name, size, importtime, lastused)" },
		{ "color", "--fields: unknown field \"color\" (" },
		{ "id,", "--fields: unknown field \"\" (" },
		{ ",id", "--fields: unknown field \"\" (" },
		{ "i", "--fields: unknown field \"i\" (" },
		{ "ids", "--fields: unknown field \"ids\" (" },
		{ "ID", "--fields: unknown field \"ID\" (" },
		{ "id,name,id", "--fields: \"id\" is named twice" },
		{ ALL ",size", "--fields: \"size\" is named twice" },
	};
	struct image_columns columns;
	struct err e = ERR_INIT;
	char huge[1000];
	(void)state;
	assert_int_equal(image_columns_parse(ALL, &columns, &e), 0);
	assert_int_equal(columns.n, IMAGE_FIELDS);
	for (enum image_field f = 0; f < IMAGE_FIELDS; f++)
		assert_int_equal(columns.v[f], f);
	assert_int_equal(image_columns_parse("lastused", &columns, &e), 0);
	assert_int_equal(columns.n, 1);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		e = ERR_INIT;
		assert_int_equal(image_columns_parse(wrong[i].text, &columns, &e), -EINVAL);
		if (!strstr(e.text, wrong[i].want))
			fail_msg("\"%s\" is not in \"%s\"", wrong[i].want, e.text);
	}
	/* A long one is cut in the message. */
	memset(huge, 'x', sizeof(huge));
	huge[sizeof(huge) - 1] = '\0';
	assert_int_equal(image_columns_parse(huge, &columns, &e), -EINVAL);
	assert_true(strlen(e.text) < 200);
	e = ERR_INIT;
	assert_int_equal(image_sort_parse("id", &columns, &e), -EINVAL);
	assert_string_equal(e.text,
			    "--sort: unknown field \"id\" (name, size, importtime, lastused)");
}

/* The order of the sample's images by @by, as the first letters of their newest names. */
static void check_order(struct listed_image rows[N_SAMPLE], const char *by, bool descending,
			const char *want)
{
	struct image_columns columns;
	char got[N_SAMPLE + 1] = "";
	assert_int_equal(image_sort_parse(by, &columns, NULL), 0);
	image_rows_sort(rows, N_SAMPLE, &columns, descending);
	for (size_t i = 0; i < N_SAMPLE; i++)
		got[i] = rows[i].names.v[rows[i].names.n - 1][0];
	if (strcmp(got, want) != 0)
		fail_msg("%s: %s instead of %s", by, got, want);
}

static void test_sort(void **state)
{
	struct listed_image rows[N_SAMPLE];
	(void)state;
	make_sample(rows);
	check_order(rows, "name", false, "abd");
	check_order(rows, "name", true, "dba");
	check_order(rows, "size", false, "bad");
	check_order(rows, "lastused", false, "bda");
	check_order(rows, "lastused", true, "adb");
	/* Two at one time: the second field, else the ID decides, also in reverse. */
	check_order(rows, "importtime,size", false, "bda");
	check_order(rows, "importtime,name", true, "adb");
	check_order(rows, "importtime", false, "bda");
	check_order(rows, "importtime", true, "adb");
	image_rows_sort(NULL, 0, &(struct image_columns){ .n = 0 }, false);
	rows_deinit(rows);
}

static void test_sizes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} cases[] = {
		{ 0, "0B" },
		{ 9, "9B" },
		{ 1023, "1023B" },
		{ 1024, "1.0KiB" },
		{ 10188, "9.9KiB" }, /* 9.949 */
		{ 10189, "10KiB" },  /* 9.9502 */
		{ 10 * 1024, "10KiB" },
		{ 126 * 1024, "126KiB" },
		{ 9 * MIB + MIB / 2, "9.5MiB" },
		{ 1024 * MIB, "1.0GiB" },
		{ (uint64_t)1 << 50, "1.0PiB" },
		{ UINT64_MAX, "16EiB" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char got[SIZE_TEXT_MAX];
		image_size_text(cases[i].bytes, got);
		assert_string_equal(got, cases[i].want);
	}
}

/* As many names as a record may have, each as long as it may be. */
static void test_longest(void **state)
{
	struct listed_image row;
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	struct image_columns columns;
	const char *const none[] = { NULL };
	char name[IMAGE_NAME_MAX + 1];
	(void)state;
	assert_int_equal(make_row(&row, "1", none, UINT64_MAX, INT64_MAX, INT64_MAX), 0);
	memset(name, 'n', IMAGE_NAME_MAX);
	name[IMAGE_NAME_MAX] = '\0';
	for (size_t i = 0; i < N_NAMES; i++) {
		name[0] = (char)('!' + i);
		assert_int_equal(strv_add(&row.names, name), 0);
	}
	assert_int_equal(image_columns_parse(ALL, &columns, NULL), 0);
	table_init(&t, columns.n);
	buf_init(&out, 65536);
	assert_int_equal(image_rows_add(&t, &columns, &row, true, 0), 0);
	assert_int_equal(table_format(&t, &out), 0);
	assert_non_null(memmem(buf_data(&out), buf_len(&out), name, IMAGE_NAME_MAX));
	strv_deinit(&row.names);
}

static void row_deinit(struct listed_image *row)
{
	strv_deinit(&row->names);
}

static int make_all(void *ctx)
{
	static const char *const names[] = { "one", "two", NULL };
	CLEANUP(table_deinit) struct table t;
	CLEANUP(row_deinit) struct listed_image row;
	struct image_columns columns;
	(void)ctx;
	table_init(&t, IMAGE_FIELDS);
	int r = make_row(&row, "1", names, 1, 1, 1);
	if (r == 0)
		r = image_columns_parse(ALL, &columns, NULL);
	if (r == 0)
		r = image_rows_header(&t, &columns);
	if (r == 0)
		r = image_rows_add(&t, &columns, &row, false, 0);
	if (r < 0)
		return r;
	cleanup_json struct json_object *o = image_row_json(&row);
	return o ? 0 : -ENOMEM;
}

static void test_allocations(void **state)
{
	(void)state;
	for_each_failing_alloc(make_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_table),        fixture_test(test_full),
		fixture_test(test_without_name), fixture_test(test_json),
		fixture_test(test_sort),         fixture_test(test_columns),
		fixture_test(test_sizes),        fixture_test(test_longest),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
