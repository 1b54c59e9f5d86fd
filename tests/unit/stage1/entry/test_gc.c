/* SPDX-License-Identifier: Apache-2.0 */
/* The program, run in directories that look like pods. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"
#include "stage1/net/cni/state.h"
#include "stage1/pod/process.h"
#include "tests/support/fixture.h"
#include "tests/support/trace.h"

struct helper {
	struct loop loop;
	struct process process;
};

#define UUID "12345678-1234-4123-8123-123456789abc"

/* Runs @program in @dir; yields its exit code. */
static int call(const char *program, int dir, const char *option)
{
	char *argv[] = { (char[]){ "program" }, (char *)(uintptr_t)(option ? option : UUID),
			 option ? (char[]){ UUID } : NULL, NULL };
	struct spawn_plan plan = {
		.program = program, .argv = argv, .change_dir = true, .dir_fd = dir
	};
	pid_t pid;
	int status;
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect_end(pid_t pid, int sig)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig);
}

static void on_end(void *ctx, struct process *process)
{
	(void)ctx;
	(void)process;
}

/* A helper that works in @dir, as stage1 starts those that outlive it. */
static void start_program(struct helper *h, int dir, char *const *argv)
{
	struct spawn_plan plan = {
		.program = argv[0], .argv = argv, .change_dir = true, .dir_fd = dir
	};
	*h = (struct helper){ 0 };
	assert_int_equal(loop_init(&h->loop), 0);
	assert_int_equal(process_start_keeper(&h->process, &h->loop, &plan, on_end, NULL), 0);
}

static pid_t start_helper(struct helper *h, int dir)
{
	char *argv[] = { (char[]){ "/bin/sleep" }, (char[]){ "1000" }, NULL };
	start_program(h, dir, argv);
	return h->process.pid;
}

static void end_helper(struct helper *h, int sig)
{
	process_await(&h->process, 60000);
	assert_true(h->process.ended);
	assert_true(WIFSIGNALED(h->process.status));
	assert_int_equal(WTERMSIG(h->process.status), sig);
	process_deinit(&h->process);
	loop_deinit(&h->loop);
}

/* Somebody's process in @dir, with @variable, or none, in its environment. */
static pid_t start_stranger(int dir, const char *variable)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "1000" }, NULL };
	char *envp[] = { (char *)(uintptr_t)variable, (char[]){ "HOME=/" }, NULL };
	struct spawn_plan plan = { .program = "/bin/sleep",
				   .argv = argv,
				   .envp = variable ? envp : &envp[2],
				   .change_dir = true,
				   .dir_fd = dir };
	pid_t pid;
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	return pid;
}

static void expect_alive(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGTERM);
	expect_end(pid, SIGTERM);
}

/* A helper in the pod directory is killed, one below it or elsewhere is not. */
static void test_helpers(void **state)
{
	struct helper one, two, below;
	int dir = fixture_dir(state);
	assert_int_equal(call(GC_PROGRAM, dir, NULL), 0);
	assert_int_equal(mkdirat(dir, "sub", 0755), 0);
	cleanup_fd int sub = openat(dir, "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	start_helper(&one, dir);
	start_helper(&two, dir);
	pid_t pid = start_helper(&below, sub);
	assert_int_equal(call(GC_PROGRAM, dir, "--pod-stays"), 0);
	assert_int_equal(kill(one.process.pid, 0), 0);
	assert_int_equal(call(GC_PROGRAM, dir, "--debug"), 0);
	end_helper(&one, SIGKILL);
	end_helper(&two, SIGKILL);
	kill(pid, SIGUSR1);
	end_helper(&below, SIGUSR1);
	assert_int_equal(call(GC_PROGRAM, dir, "--unknown"), EXIT_HUSK_FAILURE);
}

/* Who has only gone there, to look or to export, is left alone, whatever the environment. */
static void test_strangers(void **state)
{
	int dir = fixture_dir(state);
	pid_t shell = start_stranger(dir, "TERM=xterm"), bare = start_stranger(dir, NULL),
	      similar = start_stranger(dir, PROCESS_MARK);
	assert_int_equal(call(GC_PROGRAM, dir, NULL), 0);
	expect_alive(shell);
	expect_alive(bare);
	expect_alive(similar);
}

/* The root directories of two file systems have the same number. */
static void test_other_file_system(void **state)
{
	struct helper h;
	int dir = fixture_dir(state);
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdirat(dir, "pod", 0755) | mkdirat(dir, "other", 0755), 0);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	assert_int_equal(mount("none", "pod", "tmpfs", 0, NULL), 0);
	assert_int_equal(mount("none", "other", "tmpfs", 0, NULL), 0);
	int pod = open("pod", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int other = open("other", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	start_helper(&h, other);
	assert_int_equal(call(GC_PROGRAM, pod, NULL), 0);
	kill(h.process.pid, SIGUSR1);
	end_helper(&h, SIGUSR1);
	fd_close(pod);
	fd_close(other);
	assert_int_equal(umount2("pod", MNT_DETACH) | umount2("other", MNT_DETACH), 0);
	assert_int_equal(chdir("/"), 0);
}

/*
 * What was a helper is none any more when its process is held fast: the number has passed to
 * another process. One that goes elsewhere in between stands for that.
 */
static void test_second_look(void **state)
{
	struct helper h;
	char script[1024], word;
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, script, NULL };
	int dir = fixture_dir(state), status = -1;
	assert_int_equal(mkfifoat(dir, "go", 0600) | mkfifoat(dir, "gone", 0600), 0);
	snprintf(script, sizeof(script), "read -r x <go; cd /; echo >%s/gone; exec sleep 1000",
		 fixture_path(state));
	start_program(&h, dir, argv);
	/* Opened when it has read its program, and is in there. */
	cleanup_fd int go = openat(dir, "go", O_WRONLY | O_CLOEXEC);
	pid_t gc = fork();
	if (gc == 0) {
		trace_me();
		if (fchdir(dir) == 0)
			execl(GC_PROGRAM, "gc", UUID, NULL);
		_exit(127);
	}
	assert_true(trace_until(gc, SYS_pidfd_open, &status));
	assert_int_equal(write(go, "\n", 1), 1);
	cleanup_fd int gone = openat(dir, "gone", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(gone, &word, 1), 1);
	trace_end(gc);
	assert_int_equal(spawn_wait(gc, &status), 0);
	assert_int_equal(status, 0);
	kill(h.process.pid, SIGUSR1);
	end_helper(&h, SIGUSR1);
}

/*
 * What a directory says of networks is the word of its owner, who can give it the UUID of anybody's
 * pod: root acts on its own only.
 */
static void test_network_of_others(void **state)
{
	int dir = fixture_dir(state);
	if (geteuid() != 0)
		skip();
	fixture_write(state, CNI_STATE_FILE, "nonsense", 8);
	assert_int_equal(call(GC_PROGRAM, dir, NULL), EXIT_HUSK_FAILURE);
	assert_int_equal(fchown(dir, 12345, 12345), 0);
	assert_int_equal(call(GC_PROGRAM, dir, NULL), 0);
	assert_int_equal(fchown(dir, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_helpers),           fixture_test(test_second_look),
		fixture_test(test_other_file_system), fixture_test(test_strangers),
		fixture_test(test_network_of_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
