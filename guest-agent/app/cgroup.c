/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/app/cgroup_v1.h"
#include "guest-agent/log.h"
#include "lib/base/err.h"
#include "lib/cgroup/cgroup_counts.h"
#include "lib/cgroup/cgroup_file.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/fd.h"

#define EVENTS_MAX   256 /* bytes of cgroup.events: a line for each of two states */
#define PATH_LEN_MAX 256 /* the mount point, which is ours, and a number */

static const char *group_path(const char *dir, unsigned number, char ret[PATH_LEN_MAX])
{
	snprintf(ret, PATH_LEN_MAX, "%s/%u", dir, number);
	return ret;
}

/* Whether the kernel lacks a controller, or has not got it in this hierarchy. */
static bool is_missing(int err)
{
	return err == -EINVAL || err == -ENOENT;
}

/*
 * One by one only if one of them is missing, since each write goes through the whole hierarchy.
 */
static int enable_controllers(int dir)
{
	static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+io" };
	int r = cgroup_file_write(dir, "cgroup.subtree_control", "+memory +pids +cpu +io");
	for (size_t i = 0; is_missing(r) && i < ARRAY_SIZE(wanted); i++)
		cgroup_file_write(dir, "cgroup.subtree_control", wanted[i]);
	return is_missing(r) ? 0 : r;
}

static struct cgroup_controllers controllers_of(int group)
{
	const struct cgroup_controller all = { group, false };
	return CGROUP_CONTROLLERS_IN(all);
}

static int change_limits(int group, const struct cgroup_limits *from,
			 const struct cgroup_limits *to, struct fault *f)
{
	struct err e = ERR_INIT;
	const struct cgroup_controllers c = controllers_of(group);
	return cgroup_limits_change(&c, from, to, &e) < 0 ? fault_err(f, &e) : 0;
}

/* An app whose parts died one by one would be neither alive nor ended: kill it as a whole. */
static int set_first_limits(int group, const struct cgroup_limits *l, struct fault *f)
{
	static const struct cgroup_limits none = { 0 };
	int r = cgroup_file_write(group, "memory.oom.group", "1");
	if (r < 0 && r != -ENOENT)
		return fault_sys(f, AGENT_E_INTERNAL, r, "cannot set memory.oom.group");
	return change_limits(group, &none, l, f);
}

/* The directory of group @number; -EBADF if it is not there, or -errno. */
static int open_group(const char *path, unsigned number)
{
	char group[PATH_LEN_MAX];
	int fd = open(group_path(path, number, group), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -EBADF : -errno;
}

static int without_groups(const struct cgroup_limits *l, int *ret, struct fault *f)
{
	if (l->memory_max || l->cpu_millis || l->cpu_weight || l->pids_max)
		return fault_set(f, AGENT_E_INTERNAL,
				 "no control groups here, which limits of memory, "
				 "processors and processes need (run the app without limits)");
	*ret = -EBADF;
	return 0;
}

static int make_group(const char *dir, unsigned number, const struct cgroup_limits *limits,
		      int *ret, struct fault *f)
{
	char path[PATH_LEN_MAX];
	if (mkdir(group_path(dir, number, path), 0755) < 0 && errno != EEXIST)
		return errno == ENOENT ? without_groups(limits, ret, f)
				       : fault_sys(f, AGENT_E_INTERNAL, errno,
						   "cannot create control group %u", number);
	cleanup_fd int group = open_group(dir, number);
	if (group < 0)
		return fault_sys(f, AGENT_E_INTERNAL, group, "cannot open control group %u",
				 number);
	int r = set_first_limits(group, limits, f);
	if (r == 0)
		*ret = TAKE_FD(group);
	else
		rmdir(path);
	return r;
}

static int change_group(const char *dir, unsigned number, const struct cgroup_limits *from,
			const struct cgroup_limits *to, struct fault *f)
{
	cleanup_fd int group = open_group(dir, number);
	if (group < 0)
		return fault_sys(f, AGENT_E_INTERNAL, group, "cannot open control group %u",
				 number);
	return change_limits(group, from, to, f);
}

/* --- for both versions --- */

static int prepare_hierarchy(const char *dir)
{
	static const struct cgroup_limits none = { 0 };
	struct fault f;
	cleanup_fd int first = -EBADF;
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : enable_controllers(fd);
	if (r == 0)
		make_group(dir, 1, &none, &first, &f); /* else the first app will report it */
	return r;
}

int cgroup_mount(const char *dir)
{
	if (mkdir(dir, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	int r = mount("cgroup2", dir, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (r < 0) {
		r = -errno;
		rmdir(dir);
		return r;
	}
	r = prepare_hierarchy(dir);
	if (r < 0) {
		umount2(dir, MNT_DETACH);
		rmdir(dir);
	}
	return r;
}

/*
 * Of the top of the tree that does not matter. Elsewhere the kernel enables no controllers then, or
 * those for threads only, which lets no process into the groups below.
 */
static bool has_processes(int group)
{
	char text[2];
	return faccessat(group, "cgroup.type", F_OK, 0) == 0 &&
	       cgroup_file_read(group, "cgroup.procs", text, sizeof(text)) == 0 && text[0];
}

static int adopt_v2(const char *path, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "control group \"%s\"", path);
	int r = has_processes(fd) ? -EBUSY : enable_controllers(fd);
	if (r == -EBUSY)
		return err_set(e, r, "control group \"%s\": a process is in it (put it in a child)",
			       path);
	return r < 0 ? err_sys(e, r, "control group \"%s\": cannot enable controllers", path) : 0;
}

int cgroup_adopt(const char *path, struct cgroup_dir *ret, struct err *e)
{
	char file[PATH_LEN_MAX];
	if (strlen(path) > CGROUP_V1_DIR_MAX)
		return err_set(e, -ENAMETOOLONG, "control groups: a path of more than %d bytes",
			       CGROUP_V1_DIR_MAX);
	snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
	bool is_v2 = access(file, F_OK) == 0;
	if (!is_v2 && !cgroup_v1_is_there(path))
		return err_set(e, -ENOENT, "no control groups in \"%s\" (mount them there)", path);
	int r = is_v2 ? adopt_v2(path, e) : 0;
	if (r == 0)
		*ret = (struct cgroup_dir){ .path = path, .is_v1 = !is_v2 };
	return r;
}

int cgroup_make(const struct cgroup_dir *dir, unsigned number, const struct cgroup_limits *limits,
		struct cgroup *ret, struct fault *f)
{
	int fd = -EBADF;
	int r = dir->is_v1  ? cgroup_v1_make(dir->path, number, limits, f)
		: dir->path ? make_group(dir->path, number, limits, &fd, f)
			    : without_groups(limits, &fd, f);
	if (r == 0)
		*ret = (struct cgroup){ fd, dir->is_v1 ? dir->path : NULL, number };
	return r;
}

int cgroup_open(const struct cgroup_dir *dir, unsigned number, struct cgroup *ret)
{
	int fd = dir->path && !dir->is_v1 ? open_group(dir->path, number) : -EBADF;
	if (fd < 0 && fd != -EBADF)
		return fd;
	*ret = (struct cgroup){ fd, dir->is_v1 ? dir->path : NULL, number };
	return 0;
}

int cgroup_change(const struct cgroup_dir *dir, unsigned number, const struct cgroup_limits *from,
		  const struct cgroup_limits *to, struct fault *f)
{
	int none = -EBADF;
	return dir->is_v1  ? cgroup_v1_change(dir->path, number, from, to, f)
	       : dir->path ? change_group(dir->path, number, from, to, f)
			   : without_groups(to, &none, f);
}

void cgroup_close(struct cgroup *group)
{
	group->fd = fd_close(group->fd);
}

int cgroup_enter(const struct cgroup *group, struct fault *f)
{
	return group->v1_dir ? cgroup_v1_enter(group->v1_dir, group->number, f) : 0;
}

bool cgroup_had_oom_kill(const struct cgroup_dir *dir, unsigned number)
{
	if (dir->is_v1)
		return cgroup_v1_had_oom_kill(dir->path, number);
	cleanup_fd int group = dir->path ? open_group(dir->path, number) : -EBADF;
	const struct cgroup_controller memory = { group, false };
	return cgroup_oom_kills(&memory) > 0;
}

void cgroup_stats(const struct cgroup_dir *dir, unsigned number, struct agent_app_stats *ret)
{
	if (dir->is_v1) {
		cgroup_v1_stats(dir->path, number, ret);
		return;
	}
	cleanup_fd int group = dir->path ? open_group(dir->path, number) : -EBADF;
	const struct cgroup_controllers c = controllers_of(group);
	cgroup_counts_read(&c, ret);
}

/* What is sent, and to whom not. */
struct sending {
	int sig;
	pid_t except;
};

static void send_to(void *ctx, int64_t pid)
{
	const struct sending *s = ctx;
	if (pid > 0 && pid <= INT32_MAX && (pid_t)pid != s->except)
		kill((pid_t)pid, s->sig); /* one that has ended meanwhile needs none */
}

int cgroup_signal(const struct cgroup_dir *dir, unsigned number, int sig, pid_t except)
{
	struct sending s = { sig, except };
	if (!dir->path)
		return -EOPNOTSUPP;
	cleanup_fd int group =
		dir->is_v1 ? cgroup_v1_open(dir->path, number) : open_group(dir->path, number);
	return group < 0 ? -EOPNOTSUPP : cgroup_file_each(group, "cgroup.procs", send_to, &s);
}

/* Writes to a file that groups of version 2 alone have. */
static int steer(const struct cgroup_dir *dir, unsigned number, const char *name, const char *text)
{
	if (!dir->path || dir->is_v1)
		return -EOPNOTSUPP;
	cleanup_fd int group = open_group(dir->path, number);
	return group < 0 ? -EOPNOTSUPP : cgroup_file_write(group, name, text);
}

int cgroup_freeze(const struct cgroup_dir *dir, unsigned number, bool frozen)
{
	return steer(dir, number, "cgroup.freeze", frozen ? "1" : "0");
}

int cgroup_kill(const struct cgroup_dir *dir, unsigned number)
{
	return steer(dir, number, "cgroup.kill", "1");
}

bool cgroup_can_kill(const struct cgroup *group)
{
	return group->fd >= 0 && faccessat(group->fd, "cgroup.kill", W_OK, 0) == 0;
}

int cgroup_open_events(const struct cgroup_dir *dir, unsigned number)
{
	if (!dir->path || dir->is_v1)
		return -EOPNOTSUPP;
	cleanup_fd int group = open_group(dir->path, number);
	int fd = group < 0 ? -1 : openat(group, "cgroup.events", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -EOPNOTSUPP : fd;
}

bool cgroup_is_populated(int events_fd)
{
	char text[EVENTS_MAX];
	ssize_t n = pread(events_fd, text, sizeof(text) - 1, 0);
	text[MAX(n, (ssize_t)0)] = '\0';
	return cgroup_text_number(text, "populated") > 0;
}

void cgroup_remove(const struct cgroup_dir *dir, unsigned number)
{
	char path[PATH_LEN_MAX];
	if (dir->is_v1)
		cgroup_v1_remove(dir->path, number);
	else if (dir->path && rmdir(group_path(dir->path, number, path)) < 0 && errno != ENOENT)
		log_error("control group %u: errno %d", number, errno);
}
