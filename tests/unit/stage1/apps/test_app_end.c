/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/app_end.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

/* Notes the end of @m, and returns in @told what stderr says. */
static void note(void **state, const struct agent_app_exited *m, int status, int64_t memory_max,
		 char told[1024])
{
	cleanup_free char *text = NULL;
	size_t len;
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int file =
		openat(fixture_dir(state), "told", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(saved >= 0 && file >= 0);
	assert_true(dup2(file, STDERR_FILENO) >= 0);
	app_end_note(fixture_dir(state), m, status, memory_max);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	fd_close(saved);
	fd_close(file);
	assert_int_equal(file_read_at(fixture_dir(state), "told", 1023, &text, &len), 0);
	memcpy(told, text, len + 1);
}

static void expect_file(void **state, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len;
	cleanup_fd int dir = openat(fixture_dir(state), POD_DIR_STATUS, O_RDONLY | O_DIRECTORY);
	assert_int_equal(file_read_at(dir, name, 1024, &text, &len), 0);
	assert_string_equal(text, want);
}

static void test_recorded(void **state)
{
	struct agent_app_exited m = { .app = "a", .code = 7 };
	char told[1024];
	assert_int_equal(mkdirat(fixture_dir(state), POD_DIR_STATUS, 0750), 0);
	note(state, &m, 7, 0, told);
	assert_string_equal(told, "");
	expect_file(state, "a", "7\n");
	m = (struct agent_app_exited){ .app = "b", .signal = 9, .oom = true };
	note(state, &m, 9, 1 << 20, told);
	assert_string_equal(told, "stage1: app \"b\": killed: out of memory (limit 1048576 bytes; "
				  "raise its --memory)\n");
	expect_file(state, "b", "9\n");
	expect_file(state, "b" POD_STATUS_OOM_SUFFIX, "");
	expect_file(state, "b" POD_STATUS_REASON_SUFFIX, "9\n\n");
	note(state, &m, 9, 0, told);
	assert_non_null(strstr(told, "(give the pod more with --memory)"));
	m = (struct agent_app_exited){ .app = "c", .code = 203, .message = "no\nway" };
	note(state, &m, 203, 0, told);
	assert_non_null(strstr(told, "stage1: app \"c\": Error: no"));
	assert_ptr_equal(strchr(told, '\n'), strrchr(told, '\n')); /* one line */
	expect_file(state, "c", "203\n");
}

/* Who sees the status may look for the reason at once, so that it comes last. */
static void test_status_is_last(void **state)
{
	const struct agent_app_exited m = { .app = "a", .signal = 9, .oom = true };
	char told[1024], path[512], last[NAME_MAX + 1] = "";
	_Alignas(struct inotify_event) char events[4096];
	size_t n = 0;
	assert_int_equal(mkdirat(fixture_dir(state), POD_DIR_STATUS, 0750), 0);
	snprintf(path, sizeof(path), "%s/" POD_DIR_STATUS, fixture_path(state));
	cleanup_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	assert_true(inotify_add_watch(fd, path, IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE) >= 0);
	note(state, &m, 9, 0, told);
	ssize_t len = read(fd, events, sizeof(events));
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *ev = (const struct inotify_event *)(events + at);
		at += (ssize_t)(sizeof(*ev) + ev->len);
		if (ev->len == 0 || ev->name[0] == '.') /* a temporary file */
			continue;
		if (strcmp(last, "a") == 0) /* nothing else comes behind it */
			assert_string_equal(ev->name, "a");
		snprintf(last, sizeof(last), "%s", ev->name);
		n++;
	}
	assert_string_equal(last, "a");
	assert_true(n >= 3);
}

/* A status that is not on the disk is at least said, once. */
static void test_not_recorded(void **state)
{
	const struct agent_app_exited m = { .app = "a", .code = 7 };
	char told[1024];
	note(state, &m, 7, 0, told);
	assert_string_equal(told,
			    "stage1: pod directory: cannot record all of the end of app \"a\", "
			    "whose status is 7: No such file or directory\n");
}

/* Nor is what else there is to say of the end kept back, and a signal is not taken for a code. */
static void test_reason_not_recorded(void **state)
{
	struct agent_app_exited m = { .app = "a", .signal = 15 };
	char told[1024];
	assert_int_equal(mkdirat(fixture_dir(state), POD_DIR_STATUS, 0750), 0);
	assert_int_equal(
		mkdirat(fixture_dir(state), POD_DIR_STATUS "/a" POD_STATUS_REASON_SUFFIX, 0750), 0);
	note(state, &m, 15, 0, told);
	assert_non_null(
		strstr(told, "cannot record all of the end of app \"a\", whose status is 15: "));
	expect_file(state, "a", "143\n");
	note(state, &m, 0, 0, told); /* it was stopped */
	expect_file(state, "a", "0\n");
	m = (struct agent_app_exited){ .app = "a", .code = 15, .message = "m" };
	note(state, &m, 15, 0, told);
	expect_file(state, "a", "15\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_recorded),
		fixture_test(test_not_recorded),
		fixture_test(test_reason_not_recorded),
		fixture_test(test_status_is_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
