#include "host/pod/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

#define AT(second, text) "2020-01-01T00:00:0" second ".000000000Z stdout F " text "\n"
#define SECOND           INT64_C(1000000000)
#define START            (INT64_C(1577836800) * SECOND) /* 2020-01-01 */

static char got[4096];

static int take(void *ctx, const struct crilog_record *r)
{
	(void)ctx;
	strncat(got, r->content, r->len);
	strcat(got, r->partial ? "+" : " ");
	return 0;
}

static void put(void **state, const char *name, const char *text)
{
	char path[64];
	mkdirat(fixture_dir(state), POD_DIR_LOGS, 0700);
	snprintf(path, sizeof(path), POD_DIR_LOGS "/%s", name);
	fixture_write(state, path, text, strlen(text));
}

static int read_logs(void **state, const struct logs_request *q)
{
	struct pod p = { .phase = POD_EXITED_GARBAGE, .fd = fixture_dir(state) };
	struct err e = ERR_INIT;
	got[0] = '\0';
	return pod_logs(NULL, &p, q, take, NULL, &e);
}

static const struct logs_request all = { .app = "a", .tail = -1 };

static void test_parts(void **state)
{
	assert_int_equal(read_logs(state, &all), -ENOENT);
	put(state, "a", AT("3", "three") AT("4", "four"));
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "three four ");
	put(state, "a" POD_LOG_OLD_SUFFIX, AT("1", "one") AT("2", "two"));
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "one two three four ");
	struct logs_request q = all;
	q.follow = true; /* of a pod that is over */
	assert_int_equal(read_logs(state, &q), 0);
	assert_string_equal(got, "one two three four ");
	assert_int_equal(unlinkat(fixture_dir(state), POD_DIR_LOGS "/a", 0), 0);
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "one two ");
}

static void test_choice(void **state)
{
	put(state, "a" POD_LOG_OLD_SUFFIX, AT("1", "one") AT("2", "two"));
	put(state, "a", AT("3", "three") AT("4", "four"));
	struct logs_request q = all;
	const struct {
		int64_t tail, since;
		const char *want;
	} cases[] = {
		{ 0, 0, "" },
		{ 1, 0, "four " },
		{ 3, 0, "two three four " },
		{ 9, 0, "one two three four " },
		{ -1, 2, "two three four " },
		{ 1, 2, "four " },
		{ 9, 4, "four " },
		{ -1, 5, "" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		q.tail = cases[i].tail;
		q.since_ns = cases[i].since ? START + cases[i].since * SECOND : 0;
		assert_int_equal(read_logs(state, &q), 0);
		assert_string_equal(got, cases[i].want);
	}
}

/* What is no record, as after a crash of the host, hides nothing else. */
static void test_damage(void **state)
{
	static char text[2 * CRILOG_RECORD_MAX];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s",
				    "garbage\n\n" AT("1", "one") "2020-01-01T00:00:09.0\n");
	memset(text + n, 'x', CRILOG_RECORD_MAX + 100);
	n += CRILOG_RECORD_MAX + 100;
	snprintf(text + n, sizeof(text) - n, "\n%s", AT("2", "two") "2020-01-01T00:00:03");
	put(state, "a", text);
	assert_int_equal(read_logs(state, &all), 0);
	assert_string_equal(got, "one two ");
}

static void test_tricks(void **state)
{
	mkdirat(fixture_dir(state), POD_DIR_LOGS, 0700);
	assert_int_equal(symlinkat("/etc/passwd", fixture_dir(state), POD_DIR_LOGS "/a"), 0);
	assert_true(read_logs(state, &all) < 0);
	assert_int_equal(unlinkat(fixture_dir(state), POD_DIR_LOGS "/a", 0), 0);
	assert_int_equal(mkfifoat(fixture_dir(state), POD_DIR_LOGS "/a", 0600), 0);
	assert_int_equal(read_logs(state, &all), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_parts),
		fixture_test(test_choice),
		fixture_test(test_damage),
		fixture_test(test_tricks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
