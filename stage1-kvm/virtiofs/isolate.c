/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. A user namespace of other ids than the caller's is mapped from outside of
 * it, so it is made with a child that does nothing. The kernel locks the flags of mounts that a
 * mount namespace of such a user namespace takes over (mount_namespaces(7)).
 */
#include "stage1-kvm/virtiofs/isolate.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/sandbox.h"
#include "lib/os/spawn.h"
#include "lib/os/userns.h"

#define ALL_IDS       UINT32_C(4294967295) /* the last one means "no change" */
#define MAP_MAX       128                  /* bytes of three lines */
#define PROC_PATH_MAX 64

static int write_text(const char *dir, const char *name, const char *text)
{
	char path[PROC_PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int refused(int r, struct err *e)
{
	return err_sys(
		e, r,
		"volumes: user namespaces are not allowed here (see the sysctls "
		"user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns)");
}

/* ---- user namespaces ---- */

static void format_map(uint32_t base, char map[MAP_MAX])
{
	const uint32_t n = USERNS_IDS, behind = base + n;
	if (base == 0)
		snprintf(map, MAP_MAX, "0 0 %u\n", ALL_IDS);
	else
		snprintf(map, MAP_MAX, "0 %u %u\n%u %u %u\n%u %u %u\n", base, n, n, n, base - n,
			 behind, behind, ALL_IDS - behind);
}

/* The namespace of process @pid, mapped. */
static int map_ids(pid_t pid, uint32_t base)
{
	char dir[32], path[PROC_PATH_MAX], map[MAP_MAX];
	snprintf(dir, sizeof(dir), "/proc/%d", (int)pid);
	snprintf(path, sizeof(path), "%s/ns/user", dir);
	format_map(base, map);
	int r = write_text(dir, "uid_map", map);
	if (r == 0)
		r = write_text(dir, "gid_map", map);
	int fd = r < 0 ? r : open(path, O_RDONLY | O_CLOEXEC);
	return r == 0 && fd < 0 ? -errno : fd;
}

/* A process that is there for its namespace, as long as @parent wants it. */
static _Noreturn void hold(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	for (;;)
		pause();
}

int isolate_make_ids(uint32_t base, struct err *e)
{
	int status;
	pid_t self = getpid();
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0)
		hold(self);
	int fd = pid < 0 ? -errno : map_ids(pid, base);
	if (pid > 0) {
		kill(pid, SIGKILL);
		spawn_wait(pid, &status);
	}
	return fd < 0 ? refused(fd, e) : fd;
}

/* In a new namespace: its root is who has made it. */
static int map_own_ids(uid_t uid, gid_t gid)
{
	char users[32], groups[32];
	snprintf(users, sizeof(users), "0 %u 1\n", uid);
	snprintf(groups, sizeof(groups), "0 %u 1\n", gid);
	/* Who may not map others' groups may not leave those that he is in, either. */
	int r = write_text("/proc/self", "setgroups", "deny");
	if (r == 0)
		r = write_text("/proc/self", "uid_map", users);
	return r == 0 ? write_text("/proc/self", "gid_map", groups) : r;
}

int isolate_become_root(struct err *e)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r = unshare(CLONE_NEWUSER) < 0 ? -errno : map_own_ids(uid, gid);
	return r < 0 ? refused(r, e) : 0;
}

/* ---- mounts ---- */

int isolate_mounts(struct err *e)
{
	if (unshare(CLONE_NEWNS) < 0)
		return err_sys(e, -errno, "volumes: mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		return 0;
	return errno == EINVAL
		       ? err_set(e, -EINVAL,
				 "volumes: husk is in a chroot(2), from which they would be "
				 "mounted outside of it (use pivot_root(2))")
		       : err_sys(e, -errno, "volumes: mount namespace");
}

/* ---- processes ---- */

/*
 * A mount namespace of @dir alone: otherwise it would keep file systems of the host in use. The
 * working directory stays, by which gc knows whose process it is.
 */
static int keep_mounts(const char *dir)
{
	cleanup_fd int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (here < 0 || unshare(CLONE_NEWNS) < 0 || chdir(dir) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    fchdir(here) < 0)
		return -errno;
	return 0;
}

/* Keeps no more than it takes to kill a child of other ids when it is killed itself. */
static _Noreturn void stand_for(pid_t child, const char *dir)
{
	static const int kept[] = { CAP_KILL };
	int status = 0, r = keep_mounts(dir);
	if (r == 0)
		r = sandbox_keep_capabilities(kept, 1);
	/* Who is not root, and brings volumes later, opens our namespaces in /proc. */
	if (r == 0 && prctl(PR_SET_DUMPABLE, 1) < 0)
		r = -errno;
	if (r < 0) {
		fprintf(stderr, "volumes: cannot keep them: %s\n", strerror(-r));
		kill(child, SIGKILL);
		_exit(1);
	}
	spawn_wait(child, &status);
	if (WIFSIGNALED(status))
		kill(getpid(), WTERMSIG(status));
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* From now on its end is ours; it may have been before. To us it has no number. */
static int end_with(int parent)
{
	struct pollfd end = { .fd = parent, .events = POLLIN };
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return poll(&end, 1, 0) == 0 ? 0 : -ESRCH;
}

int isolate_processes(const char *dir, struct err *e)
{
	cleanup_fd int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0 || unshare(CLONE_NEWPID) < 0)
		return err_sys(e, -errno, "volumes: namespace of processes");
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, -errno, "volumes");
	if (pid > 0)
		stand_for(pid, dir);
	int r = end_with(self);
	return r < 0 ? err_sys(e, r, "volumes") : 0;
}

/* ---- privileges ---- */

/* The change of ids takes back what was said of the parent's end. */
static int become_root_of(int ids)
{
	if (setns(ids, CLONE_NEWUSER) < 0 || setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 ||
	    setresuid(0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return 0;
}

/*
 * What a user makes is his because virtiofsd acts with his user and group then, of which the kernel
 * would take its privileges, and look at his groups, of which FUSE tells no more than one. Whether
 * he may has been decided in the guest, where they are known.
 */
static int keep_privileges_of_users(void)
{
	const unsigned long bits = SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED;
	return prctl(PR_SET_SECUREBITS, bits) < 0 ? -errno : 0;
}

int isolate_privileges(int ids, struct err *e)
{
	const int flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	int r = ids >= 0 ? become_root_of(ids) : 0;
	if (r == 0 && unshare(flags | (ids >= 0 ? 0 : CLONE_NEWUSER)) < 0)
		r = -errno;
	if (r == 0 && ids < 0)
		r = map_own_ids(0, 0);
	if (r == 0)
		r = keep_privileges_of_users();
	return r < 0 ? refused(r, e) : 0;
}
