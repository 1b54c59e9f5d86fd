/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/libvirt/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

#define NEW_DEV DOMAIN_DIR_ROOT "/dev" /* becomes /dev */

/* ---- processes ---- */

/* Waits for @child, reaping whatever else ends meanwhile, and exits as it does. */
static _Noreturn void exit_with(pid_t child)
{
	int status = 0;
	for (;;) {
		pid_t pid = waitpid(-1, &status, 0);
		if (pid == child || (pid < 0 && errno != EINTR))
			break;
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Returns 0 in the first process of the namespace, or -errno. */
static int become_child(void)
{
	pid_t pid = fork();
	if (pid > 0)
		exit_with(pid);
	if (pid < 0)
		return -errno;
	/* Whoever waits for us is gone if it was killed before. */
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -errno : 0;
}

/* ---- files ---- */

struct node {
	const char *name;
	unsigned major, minor;
	mode_t mode;
};

/* Devices of Linux's list (admin-guide/devices.txt) that libvirt and QEMU open. */
static const struct node nodes[] = {
	{ "null", 1, 3, 0666 },   { "zero", 1, 5, 0666 },    { "full", 1, 7, 0666 },
	{ "random", 1, 8, 0666 }, { "urandom", 1, 9, 0666 }, { "tty", 5, 0, 0666 },
};

/* A device of the host, for @uid alone if that is not root. */
static int copy_device(const char *host, const char *name, uid_t uid)
{
	struct stat st;
	if (stat(host, &st) < 0)
		return -errno;
	if (mknod(name, S_IFCHR | 0600, st.st_rdev) < 0 || chown(name, uid, uid) < 0)
		return -errno;
	return 0;
}

static int make_nodes(const struct namespace_input *in)
{
	char name[64];
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		const struct node *n = &nodes[i];
		snprintf(name, sizeof(name), NEW_DEV "/%s", n->name);
		if (mknod(name, S_IFCHR | n->mode, makedev(n->major, n->minor)) < 0 ||
		    chmod(name, n->mode) < 0)
			return -errno;
	}
	int r = copy_device("/dev/vhost-vsock", NEW_DEV "/vhost-vsock", 0);
	if (r == -ENOENT)
		r = 0;
	return r == 0 && in->kvm ? copy_device("/dev/kvm", NEW_DEV "/kvm", in->uid) : r;
}

static int make_dev(const struct namespace_input *in)
{
	if (mkdir(NEW_DEV, 0755) < 0 ||
	    mount("dev", NEW_DEV, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") < 0)
		return -errno;
	int r = make_nodes(in);
	if (r < 0)
		return r;
	if (mkdir(NEW_DEV "/pts", 0755) < 0 ||
	    mount("pts", NEW_DEV "/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "newinstance,ptmxmode=0666") < 0 ||
	    symlink("pts/ptmx", NEW_DEV "/ptmx") < 0 ||
	    symlink("/proc/self/fd", NEW_DEV "/fd") < 0 ||
	    mount(NEW_DEV, "/dev", NULL, MS_MOVE, NULL) < 0)
		return -errno;
	return 0;
}

/*
 * What libvirt is told: no security driver that would label files, no control groups, no log
 * daemon; QEMU runs as the user of the pod.
 */
static int write_configuration(const struct namespace_input *in)
{
	cleanup_fd int fd = open(NAMESPACE_LIBVIRT_ROOT "/etc/qemu.conf",
				 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int n = dprintf(fd,
			"user = \"+%u\"\ngroup = \"+%u\"\nsecurity_driver = \"none\"\n"
			"cgroup_controllers = []\nnamespaces = []\nstdio_handler = \"file\"\n"
			"remember_owner = 0\nmax_core = 0\n",
			in->uid, in->uid);
	return n < 0 ? -errno : 0;
}

static int make_libvirt_root(const struct namespace_input *in, int cache_fd)
{
	char cache[32];
	snprintf(cache, sizeof(cache), "/proc/self/fd/%d", cache_fd);
	if (mkdir(NAMESPACE_LIBVIRT_ROOT, 0711) < 0 ||
	    mkdir(NAMESPACE_LIBVIRT_ROOT "/etc", 0700) < 0 ||
	    mkdir(NAMESPACE_LIBVIRT_ROOT "/cache", 0700) < 0)
		return -errno;
	if (cache_fd >= 0 && mount(cache, NAMESPACE_LIBVIRT_ROOT "/cache", NULL, MS_BIND, NULL) < 0)
		return -errno;
	return write_configuration(in);
}

/* Hides the directories of other domains; ours, @dir_fd, keeps its name. */
static int make_run(const struct namespace_input *in, int dir_fd)
{
	char source[32];
	snprintf(source, sizeof(source), "/proc/self/fd/%d", dir_fd);
	if (mount("husk", DOMAIN_DIR_ROOT, "tmpfs", MS_NOSUID, "mode=755") < 0)
		return -errno;
	cleanup_fd int made = path_make_dirs(in->dir, 0711);
	if (made < 0)
		return made;
	return mount(source, in->dir, NULL, MS_BIND | MS_REC, NULL) < 0 ? -errno : 0;
}

/*
 * A directory for each kind, since libvirt throws away what it knows if /dev/kvm comes or goes.
 * -EBADF: there is none.
 */
static int open_cache(const struct namespace_input *in)
{
	char path[PATH_MAX];
	if (!in->cache_dir)
		return -EBADF;
	int n = snprintf(path, sizeof(path), "%s/libvirt-%s", in->cache_dir,
			 in->kvm ? "kvm" : "tcg");
	return n >= (int)sizeof(path) ? -ENAMETOOLONG : path_make_dirs(path, 0750);
}

static int make_files(const struct namespace_input *in)
{
	cleanup_fd int dir_fd = open(in->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	cleanup_fd int cache_fd = open_cache(in);
	if (cache_fd < 0 && cache_fd != -EBADF)
		return cache_fd;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -errno;
	int r = make_run(in, dir_fd);
	if (r == 0)
		r = make_libvirt_root(in, cache_fd);
	if (r == 0)
		r = make_dev(in);
	if (r == 0 && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		r = -errno;
	return r;
}

int namespace_enter(const struct namespace_input *in, struct err *e)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) < 0)
		return err_sys(e, -errno, "libvirt: cannot make namespaces");
	int r = become_child();
	if (r == 0)
		r = make_files(in);
	if (r < 0)
		return err_sys(e, r, "libvirt: cannot set up its namespaces");
	pid_t pid = fork(); /* the first process has to reap what libvirt leaves to it */
	if (pid > 0)
		exit_with(pid);
	return pid < 0 ? err_sys(e, -errno, "libvirt: cannot fork") : 0;
}
