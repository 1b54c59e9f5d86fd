/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/worker.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

struct seen {
	char home[64], locale[16], gnupg[64];
	bool path, stranger, kept, sigpipe_ignored, blocked;
	uint64_t memory, file, seconds;
};

static uint64_t soft_limit(__rlimit_resource_t resource)
{
	struct rlimit l;
	return getrlimit(resource, &l) < 0 ? 0 : l.rlim_cur;
}

static int look_around(void *ctx, void *result, struct err *e)
{
	const int *fds = ctx;
	struct seen *seen = result;
	struct sigaction action;
	sigset_t mask;
	(void)e;
	snprintf(seen->home, sizeof(seen->home), "%s", getenv("HOME"));
	snprintf(seen->locale, sizeof(seen->locale), "%s", getenv("LC_ALL"));
	snprintf(seen->gnupg, sizeof(seen->gnupg), "%s",
		 getenv("GNUPGHOME") ? getenv("GNUPGHOME") : "");
	seen->path = getenv("PATH") != NULL;
	seen->kept = fcntl(fds[0], F_GETFD) >= 0;
	seen->stranger = fcntl(fds[1], F_GETFD) >= 0;
	sigaction(SIGPIPE, NULL, &action);
	seen->sigpipe_ignored = action.sa_handler == SIG_IGN;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	seen->blocked = sigismember(&mask, SIGCHLD);
	seen->memory = soft_limit(RLIMIT_DATA);
	seen->file = soft_limit(RLIMIT_FSIZE);
	/* Each replaces the one before. */
	assert_int_equal(worker_limit_time(7), 0);
	assert_int_equal(worker_limit_time(100), 0);
	seen->seconds = soft_limit(RLIMIT_CPU);
	return 0;
}

static void test_surroundings(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct seen seen = { .stranger = true };
	cleanup_fd int kept = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cleanup_fd int stranger = open("/dev/null", O_RDONLY);
	int fds[] = { kept, stranger };
	const struct worker_plan plan = {
		.fn = look_around, .ctx = fds, .home = "/the/home", .fds = fds, .n_fds = 1
	};
	sigset_t mask, old;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, &old);
	setenv("GNUPGHOME", "/elsewhere", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	assert_int_equal(worker_run(&plan, &seen, sizeof(seen), &e), 0);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_string_equal(seen.home, "/the/home");
	assert_string_equal(seen.locale, "C");
	assert_string_equal(seen.gnupg, "");
	assert_true(seen.path && seen.kept && !seen.stranger);
	assert_true(seen.sigpipe_ignored && !seen.blocked);
	assert_true(WORKER_MEMORY_MAX == 0 || seen.memory == WORKER_MEMORY_MAX);
	assert_int_equal(seen.file, WORKER_FILE_MAX);
	assert_int_equal(seen.seconds, 100);
	/* And ours are what they were. */
	assert_true(soft_limit(RLIMIT_CPU) > 100 && soft_limit(RLIMIT_FSIZE) > WORKER_FILE_MAX);
	assert_string_equal(getenv("GNUPGHOME"), "/elsewhere");
}

static int answer(void *ctx, void *result, struct err *e)
{
	memset(result, 'x', WORKER_RESULT_MAX);
	int code = *(int *)ctx;
	if (code)
		err_set(e, -EBADMSG, "the message");
	return code;
}

static void test_results(void **state)
{
	(void)state;
	static char result[WORKER_RESULT_MAX];
	struct err e = ERR_INIT;
	int code = 0;
	const struct worker_plan plan = { .fn = answer, .ctx = &code, .home = "/" };
	/* Ignored by whoever started us: there is no status to wait for. */
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(worker_run(&plan, result, sizeof(result), &e), 0);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(result[sizeof(result) - 1], 'x');
	result[0] = 'y';
	static const int codes[] = { 7, -EBADMSG };
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		code = codes[i];
		e = ERR_INIT;
		assert_int_equal(worker_run(&plan, result, sizeof(result), &e), code);
		assert_string_equal(e.text, "the message");
		assert_int_equal(result[0], 'y');
		assert_int_equal(worker_run(&plan, result, sizeof(result), NULL), code);
	}
}

static int die(void *ctx, void *result, struct err *e)
{
	(void)result;
	(void)e;
	if (*(int *)ctx == 0)
		_exit(3);
	raise(*(int *)ctx);
	return 0;
}

static void test_death(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	int result = 1, how = SIGKILL;
	const struct worker_plan plan = { .fn = die, .ctx = &how, .home = "/" };
	assert_int_equal(worker_run(&plan, &result, sizeof(result), &e), -EIO);
	assert_string_equal(e.text,
			    "the process that uses gpg died of signal 9, Killed (try again)");
	how = 0;
	assert_int_equal(worker_run(&plan, &result, sizeof(result), &e), -EIO);
	assert_string_equal(e.text, "the process that uses gpg failed (try again)");
	assert_int_equal(result, 1);
}

/* A child that waits for good, and its child that left the session: as a daemon would. */
static int leave_processes(void *ctx, void *result, struct err *e)
{
	(void)ctx;
	(void)e;
	int ready[2];
	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	if (fork() == 0) {
		pid_t daemon = fork();
		if (daemon == 0)
			setsid();
		for (ssize_t n = write(ready[1], "x", 1);; n = 0)
			if (n == 0)
				pause();
	}
	char two[2];
	size_t got;
	fd_read_full(ready[0], two, sizeof(two), &got);
	*(size_t *)result = got;
	return 0;
}

static void test_nothing_is_left(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	size_t got = 0;
	const struct worker_plan plan = { .fn = leave_processes, .home = "/" };
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(worker_run(&plan, &got, sizeof(got), &e), 0);
	assert_int_equal(got, 2);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* A process that is killed while its worker works. */
/* Lets go of a process that ends at once, and waits until nobody has its ID any more. */
static int look_for_ended(void *ctx, void *result, struct err *e)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int pipe_fds[2];
	pid_t pid = 0;
	(void)ctx;
	(void)e;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t between = fork();
	if (between == 0) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		_exit(write(pipe_fds[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	waitpid(between, NULL, 0);
	if (read(pipe_fds[0], &pid, sizeof(pid)) != sizeof(pid))
		return -EIO;
	for (int i = 0; i < 10000 && kill(pid, 0) == 0; i++)
		/* check-style allows sleep: there is no event to wait for */
		nanosleep(&pause, NULL);
	*(bool *)result = kill(pid, 0) < 0 && errno == ESRCH;
	return 0;
}

/* gpg's locks count as long as the process that took them can be found. */
static void test_ended_is_reaped(void **state)
{
	struct worker_plan plan = { .fn = look_for_ended, .home = "/" };
	bool reaped = false;
	(void)state;
	assert_int_equal(worker_run(&plan, &reaped, sizeof(reaped), NULL), 0);
	assert_true(reaped);
}

static int wait_for_good(void *ctx, void *result, struct err *e)
{
	(void)result;
	(void)e;
	if (write(*(const int *)ctx, "x", 1) == 1)
		for (;;)
			pause();
	return -EIO;
}

static char scene[PATH_MAX];

static void remove_scene(void *ctx)
{
	(void)ctx;
	unlink(scene);
}

static void test_killed_caller(void **state)
{
	int ready[2];
	char c;
	fixture_write(state, "scene", "", 0);
	snprintf(scene, sizeof(scene), "%.*s/scene", PATH_MAX - 8, fixture_path(state));
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	cleanup_fd int in = ready[0];
	cleanup_fd int out = ready[1];
	const struct worker_plan plan = { .fn = wait_for_good,
					  .ctx = &out,
					  .home = "/",
					  .fds = &out,
					  .n_fds = 1,
					  .last = remove_scene };
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	pid_t caller = fork();
	assert_true(caller >= 0);
	if (caller == 0)
		_exit(worker_run(&plan, &c, sizeof(c), NULL) == 0);
	fd_replace(&out, -EBADF);
	assert_int_equal(read(in, &c, 1), 1);
	assert_int_equal(access(scene, F_OK), 0);
	assert_int_equal(kill(caller, SIGKILL), 0);
	/* The guardian comes to us, and ends. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(errno, ECHILD);
	assert_int_equal(read(in, &c, 1), 0);
	assert_int_equal(access(scene, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_surroundings),  fixture_test(test_results),
		fixture_test(test_death),         fixture_test(test_nothing_is_left),
		fixture_test(test_killed_caller), fixture_test(test_ended_is_reaped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
