/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child programs are this program itself, called with the name of what to do.
 */
#include "lib/os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

#define SELF "/proc/self/exe"

/* In the child: prints the open descriptors and, of those above 2, the byte that each yields. */
static int child_fds(void)
{
	for (int fd = 0; fd < 200; fd++) {
		char c = '-';
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		if (fd > 2 && read(fd, &c, 1) != 1)
			c = '?';
		dprintf(1, "%d%c ", fd, c);
	}
	return 0;
}

static int child_stdio(void)
{
	char c;
	return read(0, &c, 1) == 0 && write(1, "x", 1) == 1 && write(2, "x", 1) == 1 ? 0 : 1;
}

static int child_signals(void)
{
	sigset_t set;
	struct sigaction act;
	sigprocmask(SIG_BLOCK, NULL, &set);
	if (sigismember(&set, SIGTERM) || sigismember(&set, SIGUSR1))
		return 1;
	if (sigaction(SIGPIPE, NULL, &act) < 0 || act.sa_handler != SIG_DFL)
		return 2;
	return 0;
}

static int child_session(void)
{
	return getsid(0) == getpid() ? 0 : 1;
}

static int child_no_new_privs(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static int child_ids(void)
{
	gid_t groups[8];
	if (getuid() != 1234 || geteuid() != 1234 || getgid() != 2345 || getegid() != 2345)
		return 1;
	if (getgroups(8, groups) != 1 || groups[0] != 3456)
		return 2;
	return setuid(0) < 0 ? 0 : 3;
}

/* Blocked is what the plan blocks; limits are those of the plan, or lower ones that were there. */
static int child_limits(void)
{
	struct rlimit core, files;
	sigset_t set;
	sigprocmask(SIG_BLOCK, NULL, &set);
	if (!sigismember(&set, SIGTERM) || sigismember(&set, SIGINT))
		return 1;
	if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_cur != 0 || core.rlim_max != 0)
		return 2;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max == RLIM_INFINITY)
		return 3;
	return files.rlim_cur == files.rlim_max ? 0 : 4;
}

/*
 * None but "lo" is up: a kernel may give a namespace tunnels that lead nowhere. Freed, as a leak is
 * an exit code, too.
 */
static int child_no_network(void)
{
	struct ifaddrs *all = NULL;
	int r = getifaddrs(&all) < 0 || !all;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (strcmp(i->ifa_name, "lo") != 0 && i->ifa_flags & IFF_UP)
			r = 1;
	freeifaddrs(all);
	return r;
}

static int child_hang(void)
{
	while (pause() < 0)
		;
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} children[] = {
	{ "fds", child_fds },
	{ "stdio", child_stdio },
	{ "signals", child_signals },
	{ "session", child_session },
	{ "no-new-privs", child_no_new_privs },
	{ "ids", child_ids },
	{ "limits", child_limits },
	{ "no-network", child_no_network },
	{ "hang", child_hang },
};

static char path_of_child[] = "PATH=/bin";
static char *env_of_child[] = { path_of_child, NULL };

/* A plan to run the child @name, one at a time; @argv has room for 3. */
static struct spawn_plan plan_for(char **argv, const char *name)
{
	static char program[] = "test_spawn", what[32];
	snprintf(what, sizeof(what), "%s", name);
	argv[0] = program;
	argv[1] = what;
	argv[2] = NULL;
	return (struct spawn_plan){ .program = SELF, .argv = argv, .envp = env_of_child };
}

/* Runs the plan to its end; the child's exit status. */
static int run(const struct spawn_plan *plan)
{
	pid_t pid = -1;
	int status = -1;
	int r = spawn(plan, &pid, NULL);
	if (r < 0)
		fail_msg("spawn: %s", strerror(-r));
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Runs the plan with stdout in @text of 256 bytes. */
static void run_and_read(struct spawn_plan *plan, char *text)
{
	int p[2];
	size_t n;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(spawn_plan_fd(plan, p[1], 1), 0);
	assert_int_equal(run(plan), 0);
	fd_close(p[1]);
	assert_int_equal(fd_read_full(p[0], text, 255, &n), 0);
	text[n] = '\0';
	fd_close(p[0]);
}

/* A descriptor that yields the byte @c. */
static int fd_of(char c)
{
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(write(p[1], &c, 1), 1);
	fd_close(p[1]);
	return p[0];
}

static void test_nothing_but_stdio(void **state)
{
	(void)state;
	char *argv[3], text[256];
	struct spawn_plan plan = plan_for(argv, "fds");
	/* Neither inheritable descriptors nor those above all targets get through. */
	int low = fcntl(0, F_DUPFD, 3);
	int high = fcntl(0, F_DUPFD, 150);
	run_and_read(&plan, text);
	assert_string_equal(text, "0- 1- 2- ");
	fd_close(low);
	fd_close(high);
	struct spawn_plan quiet = plan_for(argv, "stdio");
	assert_int_equal(run(&quiet), 0);
}

static void test_swapped_numbers(void **state)
{
	(void)state;
	char *argv[3], text[256];
	struct spawn_plan plan = plan_for(argv, "fds");
	cleanup_fd int a = fd_of('a');
	cleanup_fd int b = fd_of('b');
	cleanup_fd int c = fd_of('c');
	assert_int_equal(spawn_plan_fd(&plan, a, b), 0);
	assert_int_equal(spawn_plan_fd(&plan, b, c), 0);
	assert_int_equal(spawn_plan_fd(&plan, c, a), 0);
	run_and_read(&plan, text);
	char want[64];
	snprintf(want, sizeof(want), "0- 1- 2- %dc %da %db ", a, b, c);
	assert_string_equal(text, want);
}

static void test_same_source_twice_and_same_number(void **state)
{
	(void)state;
	char *argv[3], text[256];
	struct spawn_plan plan = plan_for(argv, "fds");
	cleanup_fd int a = fd_of('a');
	cleanup_fd int b = fcntl(a, F_DUPFD_CLOEXEC, 120);
	assert_int_equal(spawn_plan_fd(&plan, b, b), 0);
	assert_int_equal(spawn_plan_fd(&plan, 0, 77), 0);
	run_and_read(&plan, text);
	char want[64];
	snprintf(want, sizeof(want), "0- 1- 2- 77? %da ", b);
	assert_string_equal(text, want);
	/* Without close-on-exec in the child, with it in the parent still. */
	assert_int_equal(fcntl(b, F_GETFD), FD_CLOEXEC);
}

static void test_plan_limit(void **state)
{
	(void)state;
	char *argv[3], text[256];
	struct spawn_plan plan = plan_for(argv, "fds");
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < SPAWN_FDS_MAX - 1; i++)
		assert_int_equal(spawn_plan_fd(&plan, null_fd, 100 + i), 0);
	struct spawn_plan full = plan;
	assert_int_equal(spawn_plan_fd(&full, null_fd, 99), 0);
	assert_int_equal(spawn_plan_fd(&full, null_fd, 98), -E2BIG);
	assert_int_equal(full.n_fds, SPAWN_FDS_MAX);
	(void)text;
	assert_int_equal(run(&full), 0);
}

static void test_failures(void **state)
{
	char *argv[3];
	pid_t pid = 4711;
	int pidfd = 4711;
	struct spawn_plan plan = plan_for(argv, "fds");
	plan.program = "/nonexistent/program";
	assert_int_equal(spawn(&plan, &pid, &pidfd), -ENOENT);
	plan.program = "/";
	assert_int_equal(spawn(&plan, &pid, &pidfd), -EACCES);
	char path[200];
	fixture_write(state, "text", "no program", 10);
	snprintf(path, sizeof(path), "%s/text", fixture_path(state));
	assert_int_equal(fchmodat(fixture_dir(state), "text", 0700, 0), 0);
	plan.program = path;
	assert_int_equal(spawn(&plan, &pid, &pidfd), -ENOEXEC);
	plan = plan_for(argv, "fds");
	assert_int_equal(spawn_plan_fd(&plan, -EBADF, 5), 0);
	assert_int_equal(spawn(&plan, &pid, &pidfd), -EBADF);
	assert_int_equal(pid, 4711);
	assert_int_equal(pidfd, 4711);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

/* The child cannot even move its report pipe: that is a failure, not a success. */
static void test_out_of_descriptors(void **state)
{
	(void)state;
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "fds");
	struct rlimit old, low = { 100, 0 };
	pid_t pid = 4711;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(spawn_plan_fd(&plan, 0, 99), 0);
	int r = spawn(&plan, &pid, NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(r == -EINVAL || r == -EMFILE);
	assert_int_equal(pid, 4711);
}

static void test_signals_are_reset(void **state)
{
	(void)state;
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "signals");
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run(&plan), 0);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void test_session_and_privileges(void **state)
{
	(void)state;
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "session");
	assert_int_equal(run(&plan), 1);
	plan.new_session = true;
	assert_int_equal(run(&plan), 0);
	plan = plan_for(argv, "no-new-privs");
	assert_int_equal(run(&plan), 1);
	plan.no_new_privs = true;
	assert_int_equal(run(&plan), 0);
}

/* Installed in somebody's home directory: the path is private, the program is not. */
static void test_change_ids_private_path(void **state)
{
	if (geteuid() != 0)
		return; /* nobody else can change ids */
	int dir = fixture_dir(state);
	char program[PATH_MAX];
	assert_int_equal(fchmod(dir, 0700), 0);
	assert_int_equal(mkdirat(dir, "bin", 0755), 0);
	cleanup_fd int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	cleanup_fd int to = openat(dir, "bin/true", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(file_copy_sparse(from, to), 0);
	to = fd_close(to);
	snprintf(program, sizeof(program), "%s/bin/true", fixture_path(state));
	char name[] = "true";
	char *argv[] = { name, NULL };
	struct spawn_plan plan = {
		.program = program, .argv = argv, .change_ids = true, .uid = 65534, .gid = 65534
	};
	pid_t pid;
	int status;
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_int_equal(status, 0);
}

static void test_blocked_and_limits(void **state)
{
	(void)state;
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "limits");
	sigaddset(&plan.blocked, SIGTERM);
	assert_int_equal(spawn_plan_limit(&plan, RLIMIT_CORE, 0), 0);
	assert_int_equal(spawn_plan_limit(&plan, RLIMIT_NOFILE, RLIM_INFINITY),
			 0); /* not upwards */
	assert_int_equal(run(&plan), 0);
	while (plan.n_limits < SPAWN_LIMITS_MAX)
		assert_int_equal(spawn_plan_limit(&plan, RLIMIT_CORE, 0), 0);
	assert_int_equal(spawn_plan_limit(&plan, RLIMIT_CORE, 0), -E2BIG);
}

static void test_change_ids(void **state)
{
	(void)state;
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "ids");
	if (getuid() != 0) {
		print_message("skip: needs root\n");
		skip();
	}
	plan.change_ids = true;
	plan.uid = 1234;
	plan.gid = 2345;
	plan.groups[0] = 3456;
	plan.n_groups = 1;
	pid_t pid;
	int status, r = spawn(&plan, &pid, NULL);
	if (r == -EACCES) {
		print_message("skip: the build directory is closed to others\n");
		skip();
	}
	assert_int_equal(r, 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_int_equal(status, 0);
}

/* What @become leaves of privileges; what came of it: an errno, or 0. */
static int spawn_without_network(int (*become)(void))
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[3];
		struct spawn_plan plan = plan_for(argv, "no-network");
		plan.no_network = true;
		int r = become() < 0 ? -errno : spawn(&plan, &pid, NULL);
		if (r == 0 && (spawn_wait(pid, &status) < 0 || status != 0))
			r = -EPROTO;
		_exit(-r);
	}
	assert_int_equal(spawn_wait(pid, &status), 0);
	return WEXITSTATUS(status);
}

static int stay(void)
{
	return 0;
}

static int become_user(void)
{
	return setgroups(0, NULL) < 0 || setgid(65534) < 0 ? -1 : setuid(65534);
}

static int lose_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };
	return (int)syscall(SYS_capset, &head, none);
}

/* A namespace of its own: root's, or none at all; a user's where the host permits it. */
static void test_no_network(void **state)
{
	(void)state;
	if (getuid() != 0) {
		print_message("skip: needs root\n");
		skip();
	}
	assert_int_equal(spawn_without_network(stay), 0);
	assert_int_equal(spawn_without_network(lose_capabilities), EPERM);
	int r = spawn_without_network(become_user);
	if (r == EPROTO)
		print_message("users make no namespaces here\n");
	else if (r != EACCES) /* the build directory is closed to others */
		assert_int_equal(r, 0);
}

static void test_pidfd(void **state)
{
	(void)state;
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "hang");
	pid_t pid;
	int pidfd, status;
	assert_int_equal(spawn(&plan, &pid, &pidfd), 0);
	assert_int_equal(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(poll(&p, 1, 120000), 1);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(spawn_wait(pid, &status), -ECHILD);
	fd_close(pidfd);
}

/*
 * Starts a parent that starts a child with @die, which holds the write end of @p; kills the parent.
 */
static void kill_parent(bool die, const int *p)
{
	char *argv[3];
	struct spawn_plan plan = plan_for(argv, "hang");
	plan.die_with_parent = die;
	assert_int_equal(spawn_plan_fd(&plan, p[1], 5), 0);
	int started[2];
	char c;
	assert_int_equal(pipe2(started, O_CLOEXEC), 0);
	pid_t parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		pid_t pid;
		if (spawn(&plan, &pid, NULL) < 0)
			_exit(1);
		fd_write_all(started[1], "x", 1);
		child_hang();
	}
	fd_close(started[1]);
	assert_int_equal(read(started[0], &c, 1), 1);
	fd_close(started[0]);
	assert_int_equal(kill(parent, SIGKILL), 0);
	assert_int_equal(spawn_wait(parent, &(int){ 0 }), 0);
}

/* The child's death is seen as the end of file of the pipe that only it holds open. */
static void test_die_with_parent(void **state)
{
	(void)state;
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	kill_parent(true, p);
	fd_close(p[1]);
	struct pollfd pfd = { .fd = p[0], .events = POLLIN };
	assert_int_equal(poll(&pfd, 1, 120000), 1);
	assert_true(pfd.revents & POLLHUP);
	fd_close(p[0]);
}

/* Into groups of version 1, each by a file; the first that refuses is the last. */
static void test_enter_cgroups(void **state)
{
	struct spawn_cgroups groups = { .dir = -EBADF, .n = SPAWN_CGROUPS_MAX };
	char name[32];
	struct stat st;
	assert_int_equal(spawn_enter_cgroups(&SPAWN_CGROUPS_NONE), 0);
	for (size_t i = 0; i < groups.n; i++) {
		snprintf(name, sizeof(name), "tasks-%zu", i);
		int fd = openat(fixture_dir(state), name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		groups.tasks[i] = fd;
	}
	assert_int_equal(spawn_enter_cgroups(&groups), 0);
	for (size_t i = 0; i < groups.n; i++) {
		assert_int_equal(fstat(groups.tasks[i], &st), 0);
		assert_int_equal(st.st_size, 1);
	}
	int last = groups.tasks[groups.n - 1];
	fd_close(groups.tasks[1]);
	groups.tasks[1] = -EBADF;
	assert_int_equal(spawn_enter_cgroups(&groups), -EBADF);
	assert_int_equal(fstat(groups.tasks[0], &st), 0);
	assert_int_equal(st.st_size, 2);
	assert_int_equal(fstat(last, &st), 0);
	assert_int_equal(st.st_size, 1);
	while (groups.n > 0)
		fd_close(groups.tasks[--groups.n]);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(children) / sizeof(children[0]); i++)
		if (strcmp(argv[1], children[i].name) == 0)
			return children[i].run();
	const struct CMUnitTest tests[] = {
		fixture_test(test_nothing_but_stdio),
		fixture_test(test_swapped_numbers),
		fixture_test(test_same_source_twice_and_same_number),
		fixture_test(test_plan_limit),
		fixture_test(test_failures),
		fixture_test(test_out_of_descriptors),
		fixture_test(test_signals_are_reset),
		fixture_test(test_session_and_privileges),
		fixture_test(test_blocked_and_limits),
		fixture_test(test_change_ids),
		fixture_test(test_change_ids_private_path),
		fixture_test(test_no_network),
		fixture_test(test_pidfd),
		fixture_test(test_die_with_parent),
		fixture_test(test_enter_cgroups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
