/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/applog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static off_t size_of(void **state, const char *name)
{
	struct stat st;
	return fstatat(fixture_dir(state), name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : -1;
}

static void test_streams(void **state)
{
	CLEANUP(applog_deinit) struct applog l;
	cleanup_free char *text = NULL;
	size_t len;
	applog_init(&l);
	assert_int_equal(applog_open(&l, fixture_dir(state), "app"), 0);
	applog_feed(&l, CRILOG_STDOUT, "a\nb", 3);
	applog_feed(&l, CRILOG_STDERR, "c\n", 2);
	applog_end(&l, CRILOG_STDOUT);
	applog_end(&l, CRILOG_STDERR);
	cleanup_fd int dir = openat(fixture_dir(state), POD_DIR_LOGS, O_RDONLY | O_DIRECTORY);
	assert_int_equal(file_read_at(dir, "app", 1024, &text, &len), 0);
	assert_non_null(strstr(text, " stdout F a\n"));
	assert_non_null(strstr(text, " stderr F c\n"));
	assert_non_null(strstr(text, " stdout P b\n"));
	assert_int_equal(l.lost, 0);
}

/* However much an app writes, the host keeps two files of limited size, of whole records. */
static void test_bounded(void **state)
{
	static char block[16384];
	CLEANUP(applog_deinit) struct applog l;
	memset(block, 'x', sizeof(block));
	block[sizeof(block) - 1] = '\n';
	applog_init(&l);
	assert_int_equal(applog_open(&l, fixture_dir(state), "app"), 0);
	for (uint64_t n = 0; n < 5 * APPLOG_FILE_MAX; n += sizeof(block)) {
		applog_feed(&l, CRILOG_STDOUT, block, sizeof(block));
		assert_true(size_of(state, POD_DIR_LOGS "/app") <= (off_t)APPLOG_FILE_MAX);
	}
	off_t old = size_of(state, POD_DIR_LOGS "/app" POD_LOG_OLD_SUFFIX);
	assert_true(old <= (off_t)APPLOG_FILE_MAX && old > (off_t)(APPLOG_FILE_MAX / 2));
	assert_int_equal(old % (off_t)(sizeof(block) + CRILOG_PREFIX_LEN), 0);
	assert_int_equal(l.lost, 0);
}

/* A supervisor of before has left a log: it goes on. */
static void test_goes_on(void **state)
{
	for (int i = 0; i < 2; i++) {
		CLEANUP(applog_deinit) struct applog l;
		applog_init(&l);
		assert_int_equal(applog_open(&l, fixture_dir(state), "app"), 0);
		applog_feed(&l, CRILOG_STDOUT, "x\n", 2);
		assert_int_equal(l.size, (uint64_t)(i + 1) * (CRILOG_PREFIX_LEN + 2));
	}
}

/* What cannot be written is lost, and counted; nothing else happens. */
static void test_full_disk(void **state)
{
	CLEANUP(applog_deinit) struct applog l;
	applog_init(&l);
	assert_int_equal(applog_open(&l, fixture_dir(state), "app"), 0);
	applog_feed(&l, CRILOG_STDOUT, "x\n", 2);
	int log_fd = l.fd;
	l.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	applog_feed(&l, CRILOG_STDOUT, "y\n", 2);
	assert_int_equal(l.lost, 1);
	close(log_fd);
	applog_feed(&l, CRILOG_STDOUT, "z\n", 2);
	assert_int_equal(l.lost, 2);
}

/*
 * As much of a record as there is room for is written, and must not stay: the next one would begin
 * in it.
 */
static void test_partial_record(void **state)
{
	static const char line[] = "a line that does not fit\n";
	CLEANUP(applog_deinit) struct applog l;
	struct rlimit limit, old;
	cleanup_free char *text = NULL;
	size_t len;
	applog_init(&l);
	assert_int_equal(applog_open(&l, fixture_dir(state), "app"), 0);
	applog_feed(&l, CRILOG_STDOUT, "x\n", 2);
	off_t whole = size_of(state, POD_DIR_LOGS "/app");
	/* A write beyond the limit is short up to it, as on a full disk, and the next one fails. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){ .rlim_cur = (rlim_t)whole + 10, .rlim_max = old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	applog_feed(&l, CRILOG_STDOUT, line, strlen(line));
	assert_int_equal(size_of(state, POD_DIR_LOGS "/app"), whole);
	assert_int_equal(l.lost, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	applog_feed(&l, CRILOG_STDOUT, "y\n", 2);
	assert_int_equal(size_of(state, POD_DIR_LOGS "/app"), 2 * whole);
	assert_int_equal(l.size, (uint64_t)(2 * whole));
	cleanup_fd int dir = openat(fixture_dir(state), POD_DIR_LOGS, O_RDONLY | O_DIRECTORY);
	assert_int_equal(file_read_at(dir, "app", 1024, &text, &len), 0);
	assert_non_null(strstr(text, " stdout F x\n"));
	assert_non_null(strstr(text, " stdout F y\n"));
	assert_null(strstr(text, "a line"));
}

static void test_tricks(void **state)
{
	CLEANUP(applog_deinit) struct applog l;
	int dir = fixture_dir(state);
	applog_init(&l);
	assert_int_equal(symlinkat("/tmp", dir, POD_DIR_LOGS), 0);
	assert_true(applog_open(&l, dir, "app") < 0);
	applog_deinit(&l);
	assert_int_equal(unlinkat(dir, POD_DIR_LOGS, 0), 0);
	assert_int_equal(mkdirat(dir, POD_DIR_LOGS, 0700), 0);
	assert_int_equal(symlinkat("/tmp/elsewhere", dir, POD_DIR_LOGS "/app"), 0);
	applog_init(&l);
	assert_int_equal(applog_open(&l, dir, "app"), -ELOOP);
	applog_deinit(&l);
	assert_int_equal(mkfifoat(dir, POD_DIR_LOGS "/fifo", 0600), 0);
	applog_init(&l);
	assert_true(applog_open(&l, dir, "fifo") < 0);
}

static int open_at(void **state, struct applog *l, const char *below, const char *path)
{
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s%s", fixture_path(state), below);
	applog_init(l);
	return applog_open_at(l, &(struct pod_log_place){ dir, path });
}

/* Where the user gathers logs: as rkt writes them, and never anywhere else. */
static void test_place(void **state)
{
	cleanup_free char *text = NULL;
	size_t len;
	int top = fixture_dir(state);
	fixture_write(state, "outside", "x", 1);
	assert_int_equal(mkdirat(top, "logs", 0700), 0);
	assert_int_equal(mkdirat(top, "logs/a", 0700), 0);
	assert_int_equal(symlinkat("..", top, "logs/up"), 0);
	assert_int_equal(symlinkat("../outside", top, "logs/out"), 0);
	static const struct {
		const char *path;
		int error;
	} bad[] = {
		{ "../outside", -EXDEV }, { "up/outside", -EXDEV }, { "/etc/x", -EXDEV },
		{ "a/../../x", -EXDEV },  { "out", -ELOOP },        { "", -EINVAL },
		{ "a/", -EINVAL },        { "a/..", -EINVAL },      { ".", -EINVAL },
		{ "a", -EISDIR },         { "none/x", -ENOENT },    { "x/y", -ENOENT },
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CLEANUP(applog_deinit) struct applog l;
		assert_int_equal(open_at(state, &l, "/logs", bad[i].path), bad[i].error);
	}
	CLEANUP(applog_deinit) struct applog l;
	assert_int_equal(open_at(state, &l, "/logs", "a/hello_0.log"), 0);
	applog_feed(&l, CRILOG_STDOUT, "a\nb", 3);
	applog_end(&l, CRILOG_STDOUT);
	assert_int_equal(file_read_at(top, "logs/a/hello_0.log", 1024, &text, &len), 0);
	assert_non_null(strstr(text, "Z stdout a\n"));
	assert_non_null(strstr(text, "Z stdout b\n"));
	assert_int_equal(size_of(state, "outside"), 1);
	struct err e = ERR_INIT;
	CLEANUP(applog_deinit) struct applog other;
	applog_init(&other);
	const struct pod_log_place relative = { "logs", "x" };
	assert_int_equal(applog_begin(&other, top, "app", &relative, false, &e), -EINVAL);
	assert_string_equal(e.text, "app \"app\": cannot open its log \"x\" in \"logs\" (see the "
				    "annotations): Invalid argument");
}

static const struct pod_log_place no_place;

/* A log that cannot be opened ends only what has nothing else. */
static void test_begin(void **state)
{
	CLEANUP(applog_deinit) struct applog l;
	struct err e = ERR_INIT;
	applog_init(&l);
	assert_false(applog_is_open(&l));
	fixture_write(state, POD_DIR_LOGS, "", 0); /* no directory */
	assert_int_equal(applog_begin(&l, fixture_dir(state), "app", &no_place, true, &e),
			 -ENOTDIR);
	assert_string_equal(e.text,
			    "pod directory: cannot open the log of app \"app\": Not a directory");
	assert_false(applog_is_open(&l));
	e = ERR_INIT;
	assert_int_equal(applog_begin(&l, fixture_dir(state), "app", &no_place, false, &e), 0);
	assert_int_equal(e.code, 0);
	assert_false(applog_is_open(&l));
	assert_int_equal(unlinkat(fixture_dir(state), POD_DIR_LOGS, 0), 0);
	assert_int_equal(applog_begin(&l, fixture_dir(state), "app", &no_place, false, &e), 0);
	assert_true(applog_is_open(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_streams),        fixture_test(test_bounded),
		fixture_test(test_goes_on),        fixture_test(test_full_disk),
		fixture_test(test_place),          fixture_test(test_tricks),
		fixture_test(test_partial_record), fixture_test(test_begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
