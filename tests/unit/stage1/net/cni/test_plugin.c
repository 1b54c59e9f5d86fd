/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins that do what plugins should not, as shell scripts. */
#include "stage1/net/cni/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define LONG_MS  INT64_C(60000) /* never reached */
#define SHORT_MS INT64_C(300)

/*
 * Stays until it is killed, and keeps both pipes open. tail ends by itself when nobody reads its
 * output any more: so that is the fifo "alive", which we read to the end of the test.
 */
#define STAY "exec 9>$DIR/alive; tail -f /dev/null 8>&1 >&9"

static struct err e;
static char output[CNI_OUTPUT_MAX + 1];

static void make_plugin(void **state, const char *name, const char *script)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), "#!/bin/sh\n%s\n", script);
	fixture_write(state, name, text, (size_t)n);
	assert_int_equal(fchmodat(fixture_dir(state), name, 0755, 0), 0);
}

/* Runs @script as a plugin that gets @input_len bytes. */
static int run_with(void **state, const char *script, size_t input_len, int64_t timeout_ms,
		    int cancel_fd)
{
	cleanup_buf struct buf out;
	cleanup_buf struct buf input;
	cleanup_strv struct strv env;
	char path[PATH_MAX], *where;
	buf_init(&out, CNI_OUTPUT_MAX);
	buf_init(&input, 1 << 20);
	strv_init(&env, 2);
	make_plugin(state, "plugin", script);
	snprintf(path, sizeof(path), "%s/plugin", fixture_path(state));
	assert_int_equal(buf_reserve(&input, input_len, &where), 0);
	memset(where, 'i', input_len);
	buf_commit(&input, input_len);
	assert_int_equal(strv_add(&env, "PATH=/usr/bin:/bin"), 0);
	assert_int_equal(strv_addf(&env, "DIR=%s", fixture_path(state)), 0);
	struct cni_plugin_run run = { path, "plugin", &env, &input, timeout_ms, cancel_fd };
	e = ERR_INIT;
	int r = cni_plugin_run(&run, &out, &e);
	assert_int_equal(r < 0, e.text[0] != '\0');
	memcpy(output, buf_data(&out) ? buf_data(&out) : "", buf_len(&out));
	output[buf_len(&out)] = '\0';
	return r;
}

static int run(void **state, const char *script)
{
	return run_with(state, script, 10, LONG_MS, -EBADF);
}

static void test_success(void **state)
{
	assert_int_equal(
		run(state, "cat; echo; pwd; ls /proc/self/fd | tr '\\n' ' '; env | grep -c ="), 0);
	assert_non_null(strstr(output, "iiiiiiiiii\n/\n0 1 2 3 "));
	/* It has a session of its own, and is the first of it. */
	assert_int_equal(run(state, "[ $(ps -o sid= -p $$) = $$ ] && echo yes"), 0);
	assert_string_equal(output, "yes\n");
	assert_int_equal(run(state, ":"), 0);
	assert_string_equal(output, "");
}

/* What does not fit into a pipe waits for nobody. */
static void test_input(void **state)
{
	assert_int_equal(run_with(state, "echo done", 1 << 20, LONG_MS, -EBADF), 0);
	assert_string_equal(output, "done\n");
	assert_int_equal(run_with(state, "wc -c", 1 << 20, LONG_MS, -EBADF), 0);
	assert_string_equal(output, "1048576\n");
	assert_int_equal(run_with(state, "exec <&-; echo done", 1 << 20, LONG_MS, -EBADF), 0);
}

static void test_failures(void **state)
{
	assert_int_equal(
		run(state, "echo '{\"code\":11,\"msg\":\"no\",\"details\":\"way\"}'; exit 1"),
		-EIO);
	assert_string_equal(e.text, "no; way");
	assert_int_equal(run(state, "echo first >&2; printf 'last \\033[m\\n\\n' >&2; exit 3"),
			 -EIO);
	assert_string_equal(e.text, "last ?[m");
	assert_int_equal(run(state, "echo noise; exit 3"), -EIO);
	assert_string_equal(e.text, "exit code 3, and it does not say why");
	assert_int_equal(run(state, "kill -TERM $$"), -EIO);
	assert_string_equal(e.text, "killed by signal 15 (Terminated)");
	assert_int_equal(run(state, "echo panic: of memory >&2; kill -TERM $$"), -EIO);
	assert_string_equal(e.text, "killed by signal 15 (Terminated): panic: of memory");
	/* What it says beside its error, unless that is the same. */
	assert_int_equal(run(state, "echo '{\"code\":11,\"msg\":\"no\"}'; echo iptables: busy >&2;"
				    "exit 1"),
			 -EIO);
	assert_string_equal(e.text, "no: iptables: busy");
	assert_int_equal(run(state, "echo '{\"code\":11,\"msg\":\"no\"}'; echo no >&2; exit 1"),
			 -EIO);
	assert_string_equal(e.text, "no");
	/* Much noise: the end of it is kept. */
	assert_int_equal(run(state,
			     "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo end >&2;"
			     "exit 1"),
			 -EIO);
	assert_string_equal(e.text, "end");
}

static void test_output(void **state)
{
	assert_int_equal(run(state, "head -c 262144 /dev/zero"), 0);
	assert_int_equal(run(state, "head -c 262145 /dev/zero"), -EFBIG);
	assert_int_equal(run(state, "head -c 10000000 /dev/zero"), -EFBIG);
	assert_string_equal(e.text, "prints more than 256 KiB");
	assert_int_equal(run(state, "while :; do echo y; done"), -EFBIG);
}

/*
 * Waits until nobody has the fifo "alive" open for writing any more. It says so only to who has
 * seen a writer, which the plugin need not have become: we are one for a moment.
 */
static void check_all_dead(void **state, int fifo)
{
	struct pollfd p = { fifo, POLLIN, 0 };
	int writer = openat(fixture_dir(state), "alive", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(writer >= 0);
	close(writer);
	assert_int_equal(poll(&p, 1, 120000), 1);
	assert_int_equal(p.revents & POLLHUP, POLLHUP);
}

/* The reading end of a new fifo. */
static int make_fifo(void **state, const char *name)
{
	assert_int_equal(mkfifoat(fixture_dir(state), name, 0600), 0);
	return openat(fixture_dir(state), name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void test_timeout(void **state)
{
	cleanup_fd int fifo = make_fifo(state, "alive");
	assert_int_equal(run_with(state, "(" STAY ") & " STAY, 1, SHORT_MS, -EBADF), -ETIMEDOUT);
	assert_string_equal(e.text, "does not end within 1 s");
	check_all_dead(state, fifo);
	/* Ignored signals do not help. */
	assert_int_equal(run_with(state, "trap '' TERM INT HUP; " STAY, 1, SHORT_MS, -EBADF),
			 -ETIMEDOUT);
	check_all_dead(state, fifo);
}

/* A child that stays and keeps the pipes open is not waited for. */
static void test_left_behind(void **state)
{
	cleanup_fd int fifo = make_fifo(state, "alive");
	int64_t begin = clock_monotonic_ns();
	assert_int_equal(run(state, STAY " & echo result"), 0);
	assert_string_equal(output, "result\n");
	check_all_dead(state, fifo);
	assert_int_equal(run(state, "setsid sh -c 'exec 9>$DIR/alive; echo $$ >$DIR/pid;"
				    "exec tail -f /dev/null 8>&1 >&9' &"
				    "until [ -s $DIR/pid ]; do :; done; echo result"),
			 0);
	assert_string_equal(output, "result\n");
	assert_true(clock_monotonic_ns() - begin < LONG_MS / 2 * NS_PER_MS);
	char pid[32] = "";
	cleanup_fd int fd = openat(fixture_dir(state), "pid", O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, pid, sizeof(pid) - 1) > 0);
	assert_int_equal(kill((pid_t)strtol(pid, NULL, 10), SIGKILL), 0);
	check_all_dead(state, fifo);
}

static void test_cancel(void **state)
{
	cleanup_fd int fifo = make_fifo(state, "alive");
	cleanup_fd int cancel = make_fifo(state, "cancel");
	int fds[2];
	assert_int_equal(
		run_with(state, "(" STAY ") & echo x >$DIR/cancel; " STAY, 1, LONG_MS, cancel),
		-ECANCELED);
	assert_string_equal(e.text, "interrupted");
	check_all_dead(state, fifo);
	/* Who would say so is gone already. */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	cleanup_fd int in = fds[0];
	close(fds[1]);
	assert_int_equal(run_with(state, "tail -f /dev/null", 1, LONG_MS, in), -ECANCELED);
}

static void test_exec(void **state)
{
	cleanup_buf struct buf none;
	cleanup_strv struct strv env;
	char path[PATH_MAX];
	buf_init(&none, 1);
	strv_init(&env, 1);
	assert_int_equal(strv_add(&env, "A=b"), 0);
	fixture_write(state, "plugin", "no program", 10);
	assert_int_equal(fchmodat(fixture_dir(state), "plugin", 0755, 0), 0);
	snprintf(path, sizeof(path), "%s/plugin", fixture_path(state));
	struct cni_plugin_run job = { path, "plugin", &env, &none, LONG_MS, -EBADF };
	assert_int_equal(cni_plugin_run(&job, &none, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "cannot execute \""));
}

static int find(void **state, const char *type, char out[PATH_MAX])
{
	cleanup_strv struct strv dirs;
	strv_init(&dirs, 2);
	assert_int_equal(strv_addf(&dirs, "%s/a", fixture_path(state)), 0);
	assert_int_equal(strv_addf(&dirs, "%s/b", fixture_path(state)), 0);
	e = ERR_INIT;
	return cni_plugin_find(type, &dirs, out, PATH_MAX, &e);
}

static void test_find(void **state)
{
	char path[PATH_MAX];
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "a", 0755) | mkdirat(dir, "b", 0755), 0);
	assert_int_equal(find(state, "p", path), -ENOENT);
	assert_non_null(strstr(e.text, "/a (install CNI plugins: the package"));
	make_plugin(state, "b/p", "");
	assert_int_equal(find(state, "p", path), 0);
	assert_true(str_ends(path, "/b/p"));
	/* What is no program is passed over, also a directory. */
	assert_int_equal(mkdirat(dir, "a/p", 0755), 0);
	assert_int_equal(find(state, "p", path), 0);
	assert_true(str_ends(path, "/b/p"));
	assert_int_equal(unlinkat(dir, "a/p", AT_REMOVEDIR), 0);
	make_plugin(state, "a/p", "");
	assert_int_equal(fchmodat(dir, "a/p", 0644, 0), 0);
	assert_int_equal(find(state, "p", path), 0);
	assert_true(str_ends(path, "/b/p"));
	/* Where nothing better is, it is said. */
	assert_int_equal(renameat(dir, "b/p", dir, "b/q"), 0);
	assert_int_equal(find(state, "p", path), -EACCES);
	assert_true(str_ends(e.text, "/a/p\" is not an executable file"));
	assert_int_equal(renameat(dir, "b/q", dir, "b/p"), 0);
	/* What others could have put there is not. */
	assert_int_equal(fchmodat(dir, "a/p", 0777, 0), 0);
	assert_int_equal(find(state, "p", path), -EPERM);
	assert_int_equal(unlinkat(dir, "a/p", 0), 0);
	assert_int_equal(symlinkat("../b/p", dir, "a/p"), 0);
	assert_int_equal(find(state, "p", path), -ELOOP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_success),  fixture_test(test_input),
		fixture_test(test_failures), fixture_test(test_output),
		fixture_test(test_timeout),  fixture_test(test_left_behind),
		fixture_test(test_cancel),   fixture_test(test_exec),
		fixture_test(test_find),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
