/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each app has a PID namespace, whose end takes everything with it that the app has left behind.
 * The first process there is the app, as images expect it: some are a whole system with an init of
 * their own. Others want somebody to reap what they did not start, or share the namespace of the
 * pod, which goes on without them: there process 1 is one that ignores SIGCHLD, which makes the
 * kernel reap for it, and sleeps. The app can see it, hence it keeps nothing: no descriptors, no
 * capabilities, a root directory out of which no ".." leads (a mount of an empty directory that is
 * attached nowhere). It is not dumpable, as the agent is not, and so closed to apps without
 * CAP_SYS_PTRACE. It belongs to no control group of the app: it is not counted and cannot be chosen
 * when memory is short.
 *
 * The agent stays the parent of what it forks into the namespace: it changes the namespace of its
 * children for that moment (setns(2) with CLONE_NEWPID is for children only).
 *
 * The children are made by clone3(2) itself, for the sake of its flags. Against fork(3) that lacks
 * what programs with threads need (locks, the cached thread ID), and the agent has none.
 */
#include "guest-agent/app/pidns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "lib/os/fd.h"

int setns(int fd, int type); /* <sched.h> and <linux/sched.h> cannot be included together */

static pid_t clone_process(uint64_t flags, int cgroup_fd)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	return pid < 0 ? -errno : pid;
}

static int enter_empty_root(const char *dir)
{
	if (mkdir(dir, 0) < 0 && errno != EEXIST)
		return -errno;
	cleanup_fd int fd = open_tree(AT_FDCWD, dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0 || fchdir(fd) < 0 || chroot(".") < 0)
		return -errno;
	return 0;
}

static _Noreturn void sleep_for_ever(const char *empty_dir)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	prctl(PR_SET_NAME, "husk-init");
	signal(SIGCHLD, SIG_IGN);
	int r = enter_empty_root(empty_dir);
	if (r == 0 && syscall(SYS_capset, &header, none) < 0)
		r = -errno;
	if (r < 0) {
		log_error("the first process of an app: errno %d", -r);
		_exit(1);
	}
	close_range(0, ~0U, 0);
	for (;;)
		pause(); /* all signals are blocked, as in the agent */
}

int pidns_new(const char *empty_dir, pid_t *ret)
{
	pid_t pid = clone_process(CLONE_NEWPID, -EBADF);
	if (pid == 0)
		sleep_for_ever(empty_dir);
	if (pid < 0)
		return pid;
	*ret = pid;
	return 0;
}

pid_t pidns_fork_first(int cgroup_fd)
{
	return clone_process(CLONE_NEWPID, cgroup_fd);
}

pid_t pidns_fork(pid_t init, int cgroup_fd)
{
	/* The way back first: without it, nothing after this would be started where it belongs. */
	cleanup_fd int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (own < 0)
		return -errno;
	cleanup_fd int other = (int)syscall(SYS_pidfd_open, init, 0);
	if (other < 0 || setns(other, CLONE_NEWPID) < 0)
		return -errno;
	pid_t pid = clone_process(0, cgroup_fd);
	if (pid != 0 && setns(own, CLONE_NEWPID) < 0)
		log_error("cannot return to the PID namespace: errno %d", errno);
	return pid;
}
