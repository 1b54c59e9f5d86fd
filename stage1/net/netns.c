/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/nsfs.h>

#include "lib/net/proc_sys.h"
#include "lib/os/fd.h"
#include "lib/wire/sysctls.h"

#define OWN_NETNS "/proc/thread-self/ns/net"

void netns_path(const char *uuid, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, NETNS_DIR "/husk-%s", uuid);
}

static int open_own(struct err *e)
{
	int fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "network namespace: " OWN_NETNS) : fd;
}

/* A process that cannot come back does no more harm than one that goes on in the wrong place. */
static void come_back(int own)
{
	if (setns(own, CLONE_NEWNET) < 0)
		_exit(1);
}

int netns_make(struct err *e)
{
	cleanup_fd int own = open_own(e);
	if (own < 0)
		return own;
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, -errno,
			       "network namespace: cannot make one (it takes CAP_SYS_ADMIN, and "
			       "user.max_net_namespaces of sysctl limits them)");
	int fd = open_own(e);
	come_back(own);
	return fd;
}

int netns_open(const char *path, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, -errno, "network namespace \"%s\"", path);
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return err_set(e, -EINVAL, "network namespace \"%s\": it is something else", path);
	return TAKE_FD(fd);
}

bool netns_is_own(int fd)
{
	struct stat that, own;
	return fstat(fd, &that) == 0 && stat(OWN_NETNS, &own) == 0 && that.st_ino == own.st_ino &&
	       that.st_dev == own.st_dev;
}

bool netns_exists(const char *path)
{
	struct err none = ERR_INIT;
	cleanup_fd int fd = netns_open(path, &none);
	return fd >= 0;
}

/*
 * A directory whose mounts other mount namespaces see: a mount of its own that is shared, as
 * ip-netns(8) makes it.
 */
static int make_dir(void)
{
	if (mkdir(NETNS_DIR, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (mount(NULL, NETNS_DIR, NULL, MS_SHARED | MS_REC, NULL) == 0)
		return 0;
	if (errno != EINVAL || mount(NETNS_DIR, NETNS_DIR, NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    mount(NULL, NETNS_DIR, NULL, MS_SHARED | MS_REC, NULL) < 0)
		return -errno;
	return 0;
}

int netns_name(int fd, const char *path, struct err *e)
{
	char source[64];
	int r = make_dir();
	if (r < 0)
		return err_sys(e, r, "network namespace: directory \"" NETNS_DIR "\"");
	cleanup_fd int file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
	if (file < 0)
		return err_sys(e, -errno, "network namespace \"%s\"", path);
	snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
	if (mount(source, path, NULL, MS_BIND, NULL) == 0)
		return 0;
	r = -errno;
	unlink(path);
	return err_sys(e, r, "network namespace \"%s\"", path);
}

int netns_forget(const char *path, struct err *e)
{
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return err_sys(e, -errno, "network namespace \"%s\"", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_sys(e, -errno, "network namespace \"%s\"", path);
	return 0;
}

int netns_call(int fd, int (*fn)(void *ctx, struct err *e), void *ctx, struct err *e)
{
	cleanup_fd int own = open_own(e);
	if (own < 0)
		return own;
	if (setns(fd, CLONE_NEWNET) < 0)
		return err_sys(e, -errno, "network namespace: cannot join it");
	int r = fn(ctx, e);
	come_back(own);
	return r;
}

/* Whether it is a network's. */
static bool is_of_net(const char *text)
{
	char path[SYSCTL_NAME_MAX + 1];
	const char *value;
	return sysctl_split(text, path, &value) == 0 && str_starts(path, "net/");
}

static int set_inside(void *ctx, struct err *e)
{
	const struct strv *list = ctx;
	int r = 0;
	for (size_t i = 0; r == 0 && i < list->n; i++)
		if (is_of_net(list->v[i]))
			r = proc_sys_set(list->v[i], e);
	return r;
}

int netns_take_sysctls(int fd, struct strv *list, struct err *e)
{
	cleanup_strv struct strv others;
	int r = 0;
	strv_init(&others, list->max);
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = is_of_net(list->v[i]) ? 0 : strv_add(&others, list->v[i]);
	if (r < 0)
		return err_sys(e, r, "sysctls");
	if (others.n < list->n)
		r = netns_call(fd, set_inside, list, e);
	if (r < 0)
		return r;
	const struct strv all = *list;
	*list = others;
	others = all;
	return 0;
}
