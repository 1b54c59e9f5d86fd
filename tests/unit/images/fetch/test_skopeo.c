/* SPDX-License-Identifier: Apache-2.0 */
/* The child is a shell: it behaves in every way that skopeo could. */
#include "images/fetch/skopeo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define OUT_MAX ((size_t)100000)

struct result {
	int r;
	struct err e;
	char *out, *log;
};

static void result_deinit(struct result *r)
{
	free(r->out);
	free(r->log);
}

static struct result run_with(struct skopeo_run *run, const char *script)
{
	struct result result = { .e = ERR_INIT };
	cleanup_strv struct strv args;
	cleanup_buf struct buf out, log;
	buf_init(&out, OUT_MAX);
	buf_init(&log, SKOPEO_LOG_MAX);
	strv_init(&args, 8);
	assert_int_equal(strv_add(&args, "sh") + strv_add(&args, "-c") + strv_add(&args, script),
			 0);
	run->args = &args;
	result.r = skopeo_run(run, &out, &log, &result.e);
	result.out = buf_take_string(&out);
	result.log = buf_take_string(&log);
	assert_non_null(result.out);
	assert_non_null(result.log);
	return result;
}

static struct result run(const char *script)
{
	struct skopeo_run plain = { .dir_fd = -EBADF };
	return run_with(&plain, script);
}

static void test_output(void **state)
{
	(void)state;
	CLEANUP(result_deinit) struct result r = run("echo out; echo err >&2");
	assert_int_equal(r.r, 0);
	assert_string_equal(r.out, "out\n");
	assert_string_equal(r.log, "err\n");
	CLEANUP(result_deinit) struct result failed = run("echo why >&2; exit 1");
	assert_int_equal(failed.r, SKOPEO_E_FAILED);
	assert_string_equal(failed.log, "why\n");
	CLEANUP(result_deinit) struct result killed = run("kill -SEGV $$");
	assert_int_equal(killed.r, -EIO);
	assert_string_equal(killed.e.text, "sh was killed by signal 11 (Segmentation fault)");
}

static void test_output_limit(void **state)
{
	(void)state;
	CLEANUP(result_deinit) struct result most = run("head -c 100000 /dev/zero | tr '\\0' x");
	assert_int_equal(most.r, 0);
	assert_int_equal(strlen(most.out), OUT_MAX);
	CLEANUP(result_deinit) struct result more = run("head -c 100001 /dev/zero | tr '\\0' x");
	assert_int_equal(more.r, -EFBIG);
	assert_string_equal(more.e.text, "sh prints more than the 100000 bytes allowed");
	CLEANUP(result_deinit) struct result endless = run("yes");
	assert_int_equal(endless.r, -EFBIG);
}

/* Of the error output, whose end says why, the end is kept. */
static void test_log_limit(void **state)
{
	(void)state;
	CLEANUP(result_deinit)
	struct result r = run("{ head -c 300000 /dev/zero | tr '\\0' x; echo end; } >&2");
	assert_int_equal(r.r, 0);
	assert_int_equal(strlen(r.log), SKOPEO_LOG_MAX);
	assert_string_equal(r.log + SKOPEO_LOG_MAX - 5, "xend\n");
}

static int count(void *ctx, uint64_t *ret_progress, struct err *e)
{
	int *n = ctx;
	if (*n >= 0)
		*ret_progress = (uint64_t)++ * n;
	return *n == 3 ? err_set(e, -EFBIG, "enough") : 0;
}

static void test_tick(void **state)
{
	(void)state;
	int n = -1, many = 0;
	struct skopeo_run stalled = { .dir_fd = -EBADF, .stall_ms = 300, .tick = count, .ctx = &n };
	CLEANUP(result_deinit) struct result r = run_with(&stalled, "exec tail -f /dev/null");
	assert_int_equal(r.r, SKOPEO_E_STALLED);
	/* Who makes progress is not stalled, but the owner may have enough. */
	struct skopeo_run moving = {
		.dir_fd = -EBADF, .stall_ms = 300, .tick = count, .ctx = &many
	};
	CLEANUP(result_deinit) struct result s = run_with(&moving, "exec tail -f /dev/null");
	assert_int_equal(s.r, -EFBIG);
	assert_string_equal(s.e.text, "enough");
	/* There is a look at the end of the shortest run, too. */
	many = 1;
	CLEANUP(result_deinit) struct result last = run_with(&moving, "true");
	assert_int_equal(last.r, -EFBIG);
}

/*
 * A helper that keeps the pipes open is not waited for, and does not outlive the run. (tail would
 * end by itself when nobody reads its output any more.)
 */
static void test_helper(void **state)
{
	(void)state;
	CLEANUP(result_deinit)
	struct result r = run("tail -f /dev/null 8>&1 >/dev/null & printf %s $!; exit 0");
	uint64_t pid;
	assert_int_equal(r.r, 0);
	assert_int_equal(num_parse_u64(r.out, INT_MAX, &pid), 0);
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	assert_true(pidfd >= 0 ? poll(&ended, 1, 120000) == 1 : errno == ESRCH);
}

/* When husk is killed nobody is left who downloads. */
static void test_dies_with_parent(void **state)
{
	(void)state;
	CLEANUP(result_deinit) struct result r = run("exec setpriv --dump");
	assert_int_equal(r.r, 0);
	assert_non_null(strstr(r.out, "Parent death signal: KILL\n"));
}

static void test_surroundings(void **state)
{
	cleanup_buf struct buf auth;
	buf_init(&auth, 100);
	assert_int_equal(buf_puts(&auth, "secret"), 0);
	int dir = fixture_dir(state);
	struct skopeo_run full = { .dir_fd = dir, .auth = &auth };
	setenv("SECRET", "1", 1);
	setenv("XDG_DATA_HOME", "/x", 1);
	/* The credentials can be opened twice, as skopeo does, and only read. */
	CLEANUP(result_deinit)
	struct result r = run_with(
		&full,
		"cat /proc/self/fd/3; cat /proc/self/fd/3; echo x 2>/dev/null >&3; echo; pwd;"
		" echo ${SECRET-none} $XDG_DATA_HOME; ls /proc/self/fd | wc -l;"
		" grep NoNewPrivs /proc/self/status; cut -d' ' -f 6 /proc/$$/stat; echo $$");
	unsetenv("SECRET");
	unsetenv("XDG_DATA_HOME");
	int session = 0, pid = -1, fds = 0;
	char path[4096], privs[8];
	assert_int_equal(r.r, 0);
	/* check-style allows banned: it reads what this test made */
	assert_int_equal(sscanf(r.out, "secretsecret\n%4095s\nnone /x\n%d\nNoNewPrivs: %7s\n%d\n%d",
				path, &fds, privs, &session, &pid),
			 5);
	assert_string_equal(path, fixture_path(state));
	assert_int_equal(fds, 5); /* 0 to 3, and what lists them */
	assert_string_equal(privs, "1");
	assert_int_equal(session, pid);
	CLEANUP(result_deinit) struct result none = run("ls /proc/self/fd | wc -l");
	assert_string_equal(none.out, "4\n");
}

/*
 * Waits until the limit, in blocks of 512 bytes, is the one that was asked for: it comes after the
 * start.
 */
#define LIMITED "until [ \"$(ulimit -f)\" = 128 ]; do :; done; "

static void test_file_limit(void **state)
{
	struct skopeo_run limited = { .dir_fd = fixture_dir(state), .file_max = 65536 };
	CLEANUP(result_deinit)
	struct result r = run_with(&limited, LIMITED "head -c 65536 /dev/zero >most && ulimit -c");
	assert_int_equal(r.r, 0);
	assert_string_equal(r.out, "0\n");
	CLEANUP(result_deinit)
	struct result more = run_with(&limited, LIMITED "exec head -c 65537 /dev/zero >more");
	assert_true(more.r == -EIO || more.r == SKOPEO_E_FAILED);
	struct stat st;
	assert_int_equal(fstatat(fixture_dir(state), "more", &st, 0), 0);
	assert_int_equal(st.st_size, 65536);
}

static void test_not_there(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	cleanup_strv struct strv args;
	cleanup_buf struct buf out, log;
	strv_init(&args, 8);
	buf_init(&out, 1);
	buf_init(&log, 1);
	assert_int_equal(strv_add(&args, "no-such-skopeo"), 0);
	const struct skopeo_run absent = { .args = &args, .dir_fd = -EBADF };
	assert_int_equal(skopeo_run(&absent, &out, &log, &e), -ENOENT);
	assert_string_equal(e.text, "no-such-skopeo is not installed, or not in PATH (install the "
				    "package no-such-skopeo)");
}

static int run_once(void *ctx)
{
	struct err e = ERR_INIT;
	cleanup_buf struct buf out, log;
	buf_init(&out, OUT_MAX);
	buf_init(&log, SKOPEO_LOG_MAX);
	const struct skopeo_run once = { .args = ctx, .dir_fd = -EBADF };
	int r = skopeo_run(&once, &out, &log, &e);
	return r < 0 && !*e.text ? 1 : r;
}

static void test_no_memory(void **state)
{
	(void)state;
	cleanup_strv struct strv args;
	strv_init(&args, 8);
	assert_int_equal(strv_add(&args, "echo") + strv_add(&args, "x"), 0);
	for_each_failing_alloc_lenient(run_once, &args);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_output),           fixture_test(test_output_limit),
		fixture_test(test_log_limit),        fixture_test(test_tick),
		fixture_test(test_dies_with_parent), fixture_test(test_helper),
		fixture_test(test_surroundings),     fixture_test(test_file_limit),
		fixture_test(test_not_there),        fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
