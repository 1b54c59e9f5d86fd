/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"

int spawn_plan_fd(struct spawn_plan *plan, int source, int target)
{
	if (plan->n_fds >= SPAWN_FDS_MAX)
		return -E2BIG;
	plan->fds[plan->n_fds++] = (struct spawn_fd){ .source = source, .target = target };
	return 0;
}

int spawn_plan_limit(struct spawn_plan *plan, int resource, rlim_t value)
{
	if (plan->n_limits >= SPAWN_LIMITS_MAX)
		return -E2BIG;
	plan->limits[plan->n_limits++] = (struct spawn_limit){ resource, value };
	return 0;
}

static void reset_signals(const sigset_t *blocked)
{
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL); /* fails for the few that cannot be changed: fine */
	sigprocmask(SIG_SETMASK, blocked, NULL);
}

static int highest_target(const struct spawn_plan *plan)
{
	int max = 2;
	for (size_t i = 0; i < plan->n_fds; i++)
		max = MAX(max, plan->fds[i].target);
	return max;
}

/*
 * Puts every descriptor at its number. All are first moved above the highest target, since a
 * target may be another one's source. *@report and *@dir are moved out of the way, too.
 */
static int arrange_fds(const struct spawn_plan *plan, int *report, int *dir)
{
	int above = highest_target(plan) + 1;
	int moved[SPAWN_FDS_MAX];
	int moved_report = fcntl(*report, F_DUPFD_CLOEXEC, above);
	if (moved_report < 0)
		return -errno; /* told through the old one */
	*report = moved_report;
	if (*dir >= 0 && (*dir = fcntl(*dir, F_DUPFD_CLOEXEC, above)) < 0)
		return -errno;
	for (size_t i = 0; i < plan->n_fds; i++) {
		moved[i] = fcntl(plan->fds[i].source, F_DUPFD_CLOEXEC, above);
		if (moved[i] < 0)
			return -errno;
	}
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return -errno;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null_fd, fd) < 0)
			return -errno;
	/* An empty range, of a plan with stdio only, would be -EINVAL. */
	if (above > 3 && close_range(3, (unsigned)above - 1, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	for (size_t i = 0; i < plan->n_fds; i++)
		if (dup2(moved[i], plan->fds[i].target) < 0)
			return -errno;
	return close_range((unsigned)above, UINT_MAX, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}

/*
 * fork(2), but into a group of version 2: to move a process there later takes the kernel some
 * milliseconds. Where a filter of system calls knows no clone3(2), *ret_moves is set: it has to.
 */
static pid_t fork_into(const struct spawn_cgroups *groups, bool *ret_moves)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	*ret_moves = false;
	if (!groups || groups->dir < 0)
		return fork();
	args.cgroup = (uint64_t)groups->dir;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid >= 0 || (errno != ENOSYS && errno != EPERM))
		return pid;
	*ret_moves = true;
	return fork();
}

/*
 * A thread that moves itself, and no other of its process, waits for nobody: for "tasks" that is
 * so, while who writes to "cgroup.procs" waits until no process is forking, or ending, anywhere.
 */
int spawn_enter_cgroups(const struct spawn_cgroups *groups)
{
	for (size_t i = 0; i < groups->n; i++)
		if (write(groups->tasks[i], "0", 1) != 1)
			return -errno;
	return 0;
}

static int enter_cgroups(const struct spawn_cgroups *groups, bool moves)
{
	if (!groups)
		return 0;
	cleanup_fd int procs =
		moves ? openat(groups->dir, "cgroup.procs", O_WRONLY | O_CLOEXEC) : -EBADF;
	if (moves && (procs < 0 || write(procs, "0", 1) != 1))
		return -errno;
	return spawn_enter_cgroups(groups);
}

static int change_ids(const struct spawn_plan *plan)
{
	if (setgroups(plan->n_groups, plan->groups) < 0)
		return -errno;
	if (setresgid(plan->gid, plan->gid, plan->gid) < 0)
		return -errno;
	return setresuid(plan->uid, plan->uid, plan->uid) < 0 ? -errno : 0;
}

/* Never upwards: who started us may have set lower ones. */
static int set_limits(const struct spawn_plan *plan)
{
	for (size_t i = 0; i < plan->n_limits; i++) {
		struct rlimit limit;
		if (getrlimit((__rlimit_resource_t)plan->limits[i].resource, &limit) < 0)
			return -errno;
		limit.rlim_max = MIN(limit.rlim_max, plan->limits[i].value);
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit((__rlimit_resource_t)plan->limits[i].resource, &limit) < 0)
			return -errno;
	}
	return 0;
}

/*
 * Opens the directory of the program and yields the program's name in it: by these it is found
 * even if the child's user may not search the path to it, somebody's home directory for example.
 * (Not for scripts: their interpreter gets a path through the descriptor, which exec closes.)
 */
static int open_program_dir(const char *program, const char **ret_name)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(program, '/');
	size_t len = slash ? (size_t)(slash - program) + 1 : 0;
	if (len >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, program, len);
	dir[len] = '\0';
	int fd = open(len > 0 ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_name = program + len;
	return fd;
}

/*
 * Who is not root makes a user namespace for it, in which nobody has an id, and files are as far as
 * before; a host that does not let users make any is no failure.
 */
static int leave_network(void)
{
	if (geteuid() == 0)
		return unshare(CLONE_NEWNET) < 0 ? -errno : 0;
	(void)!unshare(CLONE_NEWUSER | CLONE_NEWNET);
	return 0;
}

/* Everything between fork and exec. Returns only on failure. */
static int run_child(const struct spawn_plan *plan, pid_t parent, bool moves, int *report)
{
	const char *name = plan->program;
	int dir = AT_FDCWD;
	if (plan->change_ids && (dir = open_program_dir(plan->program, &name)) < 0)
		return dir;
	if (plan->change_dir && fchdir(plan->dir_fd) < 0)
		return -errno;
	int r = enter_cgroups(plan->cgroups, moves);
	if (r == 0)
		r = arrange_fds(plan, report, &dir);
	if (r == 0 && plan->no_network)
		r = leave_network();
	if (r == 0 && plan->new_session && setsid() < 0)
		r = -errno;
	if (r == 0)
		r = set_limits(plan);
	if (r == 0 && plan->change_ids)
		r = change_ids(plan);
	if (r < 0)
		return r;
	/* After the change of ids, which would clear it. */
	if (plan->die_with_parent && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (plan->die_with_parent && getppid() != parent)
		return -ESRCH;
	if (plan->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	reset_signals(&plan->blocked);
	syscall(SYS_execveat, dir, name, plan->argv, plan->envp ? plan->envp : environ, 0);
	return -errno;
}

/* Reads the child's report: its errno, or end of file when exec closed the pipe. */
static int await_exec(int report)
{
	int error = 0;
	size_t got;
	int r = fd_read_full(report, &error, sizeof(error), &got);
	if (r < 0)
		return r;
	return got == sizeof(error) ? error : 0;
}

int spawn(const struct spawn_plan *plan, pid_t *ret_pid, int *ret_pidfd)
{
	int report[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	cleanup_fd int report_in = report[0];
	cleanup_fd int report_out = report[1];
	pid_t parent = getpid();
	bool moves;
	pid_t pid = fork_into(plan->cgroups, &moves);
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int error = run_child(plan, parent, moves, &report_out);
		fd_write_all(report_out, &error, sizeof(error));
		_exit(127);
	}
	report_out = fd_close(report_out);
	int r = await_exec(report_in);
	int pidfd = -EBADF;
	if (r == 0 && ret_pidfd) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd < 0)
			r = -errno;
	}
	if (r < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	*ret_pid = pid;
	if (ret_pidfd)
		*ret_pidfd = pidfd;
	return 0;
}

int spawn_wait(pid_t pid, int *ret_status)
{
	pid_t got;
	do
		got = waitpid(pid, ret_status, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : 0;
}
