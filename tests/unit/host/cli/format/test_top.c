/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/top.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"

#define A "aaaaaaaa-0000-4000-8000-000000000000"
#define B "bbbbbbbb-0000-4000-8000-000000000000"
#define C "cccccccc-0000-4000-8000-000000000000"

static struct top_row count(const char *text)
{
	struct top_row row = { .uuid = A };
	cleanup_json struct json_object *doc = NULL;
	if (text)
		assert_int_equal(json_parse(text, strlen(text), &doc), 0);
	top_count(&row, doc);
	return row;
}

static void expect_counts(const char *text, int64_t cpu, int64_t memory, int64_t pids)
{
	struct top_row row = count(text);
	assert_int_equal(row.cpu_usec, cpu);
	assert_int_equal(row.memory, memory);
	assert_int_equal(row.pids, pids);
	assert_int_equal(row.busy_permille, -1);
}

/* Of the group if there is one, else of the processes of a VM; else nothing is known. */
static void test_count(void **state)
{
	(void)state;
	struct top_row row = count("{\"total\":{\"cpu_usec\":1,\"memory_bytes\":2,\"pids\":3,"
				   "\"cpu_limit_millis\":4,\"memory_limit\":5},"
				   "\"vmm\":{\"pid\":1,\"cpu_usec\":9,\"rss_bytes\":9}}");
	assert_int_equal(row.cpu_usec, 1);
	assert_int_equal(row.cpu_millis, 4);
	assert_int_equal(row.memory_limit, 5);
	expect_counts("{\"vmm\":{\"pid\":1,\"cpu_usec\":10,\"rss_bytes\":7,\"pss_bytes\":6},"
		      "\"supervisor\":{\"pid\":2,\"cpu_usec\":1,\"rss_bytes\":2},"
		      "\"guest\":{\"cpus\":1},\"scratch_bytes\":99}",
		      11, 8, -1);
	expect_counts("{\"supervisor\":{\"pid\":2,\"cpu_usec\":1,\"rss_bytes\":2}}", -1, -1, -1);
	expect_counts("{\"vmm\":{\"pid\":1,\"cpu_usec\":9223372036854775806,\"rss_bytes\":1},"
		      "\"vsock\":{\"pid\":1,\"cpu_usec\":2,\"rss_bytes\":9223372036854775807}}",
		      INT64_MAX - 1, 1, -1);
	expect_counts("{\"total\":7}", -1, -1, -1);
	expect_counts(NULL, -1, -1, -1);
}

static void test_compare(void **state)
{
	(void)state;
	const struct top_row before[] = {
		{ .uuid = A, .at_ns = 0, .cpu_usec = 100 },
		{ .uuid = C, .at_ns = 0, .cpu_usec = 7 },
	};
	struct top_row now[] = {
		{ .uuid = A, .at_ns = 2 * NS_PER_SEC, .cpu_usec = 1000100, .busy_permille = -1 },
		{ .uuid = B, .at_ns = 2 * NS_PER_SEC, .cpu_usec = 5, .busy_permille = -1 },
		{ .uuid = C, .at_ns = 2 * NS_PER_SEC, .cpu_usec = 6, .busy_permille = -1 },
	};
	top_compare(now, 3, before, 2);
	assert_int_equal(now[0].busy_permille, 500);
	assert_int_equal(now[1].busy_permille, -1); /* it was not there */
	assert_int_equal(now[2].busy_permille, -1); /* another run of it */
	now[0].busy_permille = -1;
	now[0].at_ns = 0;
	top_compare(now, 1, before, 2); /* no time has passed */
	assert_int_equal(now[0].busy_permille, -1);
	now[0].at_ns = 1;
	now[0].cpu_usec = INT64_MAX;
	top_compare(now, 1, before, 2);
	assert_int_equal(now[0].busy_permille, -1);
	top_compare(now, 3, NULL, 0);
	top_compare(NULL, 0, before, 2);
}

static void expect_order(enum top_order by, const char *uuids)
{
	struct top_row rows[] = {
		{ .uuid = B, .name = "x", .busy_permille = 5, .memory = 1, .pids = -1 },
		{ .uuid = A, .name = "y", .busy_permille = 5, .memory = 3, .pids = 0 },
		{ .uuid = C, .name = "", .busy_permille = 9, .memory = 2, .pids = 7 },
	};
	char text[4] = "";
	top_sort(rows, 3, by);
	for (size_t i = 0; i < 3; i++)
		text[i] = rows[i].uuid[0];
	assert_string_equal(text, uuids);
}

static void test_sort(void **state)
{
	(void)state;
	static const char *const names[] = { "cpu", "memory", "pids", "name", "uuid" };
	enum top_order by;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(top_order_find(names[i], &by), 0);
		assert_int_equal(by, i);
	}
	assert_int_equal(top_order_find("", &by), -EINVAL);
	assert_int_equal(top_order_find("CPU", &by), -EINVAL);
	expect_order(TOP_BY_CPU, "cab");
	expect_order(TOP_BY_MEMORY, "acb");
	expect_order(TOP_BY_PIDS, "cab");
	expect_order(TOP_BY_NAME, "cba");
	expect_order(TOP_BY_UUID, "abc");
	top_sort(NULL, 0, TOP_BY_CPU);
}

static void test_format(void **state)
{
	(void)state;
	const struct top_row rows[] = {
		{ .uuid = A,
		  .name = "web",
		  .apps = "front,back",
		  .busy_permille = 1234,
		  .cpu_millis = 1500,
		  .memory = 1024,
		  .memory_limit = 1048576,
		  .pids = 3 },
		{ .uuid = B,
		  .busy_permille = -1,
		  .cpu_millis = -1,
		  .memory = -1,
		  .memory_limit = -1,
		  .pids = -1 },
	};
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, TOP_COLUMNS);
	buf_init(&out, 4096);
	assert_int_equal(top_format(rows, 2, &t), 0);
	assert_int_equal(table_format_width(&t, 80, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out),
			    "UUID      CPU%   CPUS  MEMORY  LIMIT   PIDS  NAME  APPS\n"
			    "aaaaaaaa  123.4  1.5   1.0KiB  1.0MiB  3     web   front,back\n"
			    "bbbbbbbb  -      -     -       -       -\n");
}

/* As many names as fit, then a sign that there are more. */
static void test_apps(void **state)
{
	(void)state;
	struct top_row row = { 0 };
	top_add_app(&row, "a");
	top_add_app(&row, "b");
	assert_string_equal(row.apps, "a,b");
	for (size_t i = strlen(row.apps); i + 2 < TOP_TEXT_MAX; i += 2)
		top_add_app(&row, "c");
	assert_int_equal(strlen(row.apps), TOP_TEXT_MAX - 1);
	assert_null(strchr(row.apps, '~'));
	top_add_app(&row, "d");
	top_add_app(&row, "e");
	assert_int_equal(strlen(row.apps), TOP_TEXT_MAX - 1);
	assert_string_equal(row.apps + TOP_TEXT_MAX - 4, "c,~");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count), cmocka_unit_test(test_compare),
		cmocka_unit_test(test_sort),  cmocka_unit_test(test_format),
		cmocka_unit_test(test_apps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
