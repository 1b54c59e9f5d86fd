/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/stats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/agent.h"
#include "tests/support/fixture.h"

static struct json_object *parse(const char *text)
{
	struct json_object *doc = NULL;
	struct err e = ERR_INIT;
	int r = stats_parse(text, strlen(text), &doc, &e);
	assert_int_equal(r < 0, doc == NULL);
	if (r < 0)
		assert_string_equal(e.text, "stage1 printed no statistics");
	return doc;
}

static void expect_table(struct json_object *doc, bool host, const char *text)
{
	cleanup_buf struct buf out;
	buf_init(&out, 4096);
	assert_int_equal(stats_format(doc, host, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_string_equal(buf_data(&out), text);
}

static void test_table(void **state)
{
	(void)state;
	cleanup_json struct json_object *doc =
		parse("{\"total\":{\"cpu_usec\":70000000,\"memory_bytes\":104857600,"
		      "\"memory_limit\":209715200,\"cpu_limit_millis\":1500,\"pids\":9},"
		      "\"guest\":{\"memory_total_bytes\":134217728,\"memory_available_bytes\":"
		      "67108864,\"cpus\":2},"
		      "\"vmm\":{\"pid\":1,\"cpu_usec\":60000000,\"rss_bytes\":2,\"pss_bytes\":1},"
		      "\"supervisor\":{\"pid\":2,\"cpu_usec\":0,\"rss_bytes\":1024},"
		      "\"apps\":[{\"name\":\"web\",\"cpu_usec\":1259999,\"memory_bytes\":9961472,"
		      "\"memory_limit\":67108864,\"pids\":3,\"io_read_bytes\":10240,"
		      "\"io_write_bytes\":0,\"cpu_limit_millis\":250},"
		      "{\"name\":\"db\",\"error\":\"it is off\"}]}");
	assert_int_equal(stats_n_apps(doc), 2);
	assert_null(stats_app_error(doc, 0));
	assert_string_equal(stats_app_error(doc, 1), "it is off");
	expect_table(doc, false,
		     "NAME\tCPU\tCPUS\tMEMORY\tLIMIT\tPIDS\tREAD\tWRITE\n"
		     "web\t1.25s\t0.25\t9.5MiB\t64MiB\t3\t10KiB\t0B\n"
		     "db\t-\t-\t-\t-\t-\t-\t-\n");
	expect_table(doc, true,
		     "NAME\t\tCPU\tCPUS\tMEMORY\tLIMIT\tPIDS\tREAD\tWRITE\n"
		     "web\t\t1.25s\t0.25\t9.5MiB\t64MiB\t3\t10KiB\t0B\n"
		     "db\t\t-\t-\t-\t-\t-\t-\t-\n"
		     "[guest]\t\t-\t2\t64MiB\t128MiB\t-\t-\t-\n"
		     "[pod]\t\t70.00s\t1.5\t100MiB\t200MiB\t9\t-\t-\n"
		     "[vmm]\t\t60.00s\t-\t1B\t-\t-\t-\t-\n"
		     "[supervisor]\t0.00s\t-\t1.0KiB\t-\t-\t-\t-\n");
}

/* A guest can say what it likes of itself. */
static void test_hostile_guest(void **state)
{
	(void)state;
	static const char *const samples[][2] = {
		{ "{\"memory_total_bytes\":1,\"memory_available_bytes\":2,\"cpus\":65537}",
		  "-\t-\t1B" },
		{ "{\"memory_total_bytes\":-1,\"memory_available_bytes\":0,\"cpus\":65536}",
		  "65536\t-\t-" },
		{ "{}", "-\t-\t-" },
		{ "7", "-\t-\t-" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		char text[256], want[256];
		snprintf(text, sizeof(text), "{\"guest\":%s,\"apps\":[]}", samples[i][0]);
		snprintf(want, sizeof(want),
			 "NAME\tCPU\tCPUS\tMEMORY\tLIMIT\tPIDS\tREAD\tWRITE\n"
			 "[guest]\t-\t%s\t-\t-\t-\n",
			 samples[i][1]);
		cleanup_json struct json_object *doc = parse(text);
		expect_table(doc, true, want);
	}
}

static void test_refused(void **state)
{
	(void)state;
	static const char *const samples[] = {
		"",
		"{}",
		"{\"apps\":1}",
		"{\"apps\":[1]}",
		"{\"apps\":[{}]}",
		"{\"apps\":[{\"name\":1}]}",
		"{\"apps\":[{\"name\":\"0123456789012345678901234567890123456789012345678901234567890123\"}]}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_null(parse(samples[i]));
}

static void test_apps_limit(void **state)
{
	(void)state;
	for (size_t n = AGENT_APPS_MAX; n <= AGENT_APPS_MAX + 1; n++) {
		char text[2048] = "{\"apps\":[{\"name\":\"a\"}";
		for (size_t i = 1; i < n; i++)
			strcat(text, ",{\"name\":\"a\"}");
		strcat(text, "]}");
		cleanup_json struct json_object *doc = parse(text);
		assert_int_equal(doc != NULL, n == AGENT_APPS_MAX);
	}
}

static void test_units(void **state)
{
	(void)state;
	static const struct {
		int64_t n;
		const char *size, *seconds;
	} samples[] = {
		{ -1, "-", "-" },
		{ 0, "0B", "0.00s" },
		{ 1023, "1023B", "0.00s" },
		{ 1024, "1.0KiB", "0.00s" },
		{ 10239, "9.9KiB", "0.01s" },
		{ 10240, "10KiB", "0.01s" },
		{ 1048575, "1023KiB", "1.04s" },
		{ 1048576, "1.0MiB", "1.04s" },
		{ INT64_MAX, "7.9EiB", "9223372036854.77s" },
	};
	char text[STATS_CELL_MAX];
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		stats_size(samples[i].n, text);
		assert_string_equal(text, samples[i].size);
		stats_seconds(samples[i].n, text);
		assert_string_equal(text, samples[i].seconds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_table),   fixture_test(test_hostile_guest),
		fixture_test(test_refused), fixture_test(test_apps_limit),
		fixture_test(test_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
