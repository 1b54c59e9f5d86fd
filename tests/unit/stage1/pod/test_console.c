/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/console.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static void feed(struct console *c, const char *text)
{
	console_feed(c, text, strlen(text));
}

static off_t size_of(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, 0) == 0 ? st.st_size : -1;
}

static void test_lines(void **state)
{
	CLEANUP(console_deinit) struct console c;
	assert_int_equal(console_init(&c, fixture_dir(state)), 0);
	feed(&c, "[    0.0] Linux ver");
	assert_int_equal(c.n_lines, 0);
	feed(&c, "sion\r\n\n");
	assert_int_equal(c.n_lines, 2);
	assert_string_equal(c.last, "[    0.0] Linux version");
	feed(&c, "esc \x1b[31m and \xff\x01 bytes\n");
	assert_string_equal(c.last, "esc [31m and  bytes");
}

/* A line is logged in one piece, the last one at the latest with the end. */
static void test_pending(void **state)
{
	struct console c;
	int dir = fixture_dir(state);
	char text[CONSOLE_PENDING_MAX];
	memset(text, 'a', sizeof(text));
	assert_int_equal(console_init(&c, dir), 0);
	feed(&c, "a");
	feed(&c, "b");
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 0);
	feed(&c, "c\nd");
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 5);
	console_feed(&c, text, sizeof(text) - 1);
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 5);
	feed(&c, "e");
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 5 + (off_t)sizeof(text));
	feed(&c, "f");
	console_deinit(&c);
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 6 + (off_t)sizeof(text));
	console_deinit(&c);
}

static void test_panic(void **state)
{
	CLEANUP(console_deinit) struct console c;
	assert_int_equal(console_init(&c, fixture_dir(state)), 0);
	assert_string_equal(c.panic, "");
	feed(&c, "x\n[ 1.0] Kernel panic - not syncing: first\nKernel panic: second\n");
	assert_string_equal(c.panic, "[ 1.0] Kernel panic - not syncing: first");
}

static void test_long_line(void **state)
{
	CLEANUP(console_deinit) struct console c;
	assert_int_equal(console_init(&c, fixture_dir(state)), 0);
	char text[CONSOLE_LINE_MAX + 2];
	memset(text, 'a', sizeof(text));
	console_feed(&c, text, CONSOLE_LINE_MAX);
	feed(&c, "\n");
	assert_int_equal(strlen(c.last), CONSOLE_LINE_MAX);
	memset(text, 'b', sizeof(text));
	console_feed(&c, text, CONSOLE_LINE_MAX + 1);
	feed(&c, "\n");
	assert_int_equal(strlen(c.last), CONSOLE_LINE_MAX);
}

static void test_log_is_bounded(void **state)
{
	int dir = fixture_dir(state);
	CLEANUP(console_deinit) struct console c;
	assert_int_equal(console_init(&c, dir), 0);
	char block[1024];
	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < CONSOLE_LOG_MAX / sizeof(block) - 1; i++)
		console_feed(&c, block, sizeof(block));
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE ".old"), -1);
	console_feed(&c, block, sizeof(block)); /* exactly full */
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE ".old"), (off_t)CONSOLE_LOG_MAX);
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 0);
	for (size_t i = 0; i < 3 * CONSOLE_LOG_MAX / sizeof(block); i++)
		console_feed(&c, block, sizeof(block));
	console_feed(&c, "\n", 1);
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE ".old"), (off_t)CONSOLE_LOG_MAX);
	assert_int_equal(size_of(dir, POD_FILE_CONSOLE), 1);
}

/* A symbolic link in the pod directory is not written through. */
static void test_no_symlink(void **state)
{
	int dir = fixture_dir(state);
	struct console c;
	assert_int_equal(symlinkat("elsewhere", dir, POD_FILE_CONSOLE), 0);
	assert_int_equal(console_init(&c, dir), -ELOOP);
	console_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_pending),        fixture_test(test_lines),
		fixture_test(test_panic),          fixture_test(test_long_line),
		fixture_test(test_log_is_bounded), fixture_test(test_no_symlink),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
