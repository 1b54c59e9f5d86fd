/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/app/cgroup_file.h"
#include "guest-agent/app/cgroup_limits.h"
#include "guest-agent/log.h"
#include "lib/base/macros.h"
#include "lib/os/fd.h"

#define PATH_LEN_MAX   256   /* the mount point, which is ours, and a number */
#define EVENTS_LEN_MAX 512   /* memory.events: seven counters */
#define STAT_LEN_MAX   16384 /* io.stat: a line of 150 bytes for each of 33 disks, and spare */

static const char *group_path(const char *dir, unsigned number, char ret[PATH_LEN_MAX])
{
	snprintf(ret, PATH_LEN_MAX, "%s/%u", dir, number);
	return ret;
}

/*
 * One by one only if the kernel lacks one of them, since each write goes through the whole
 * hierarchy.
 */
static int enable_controllers(int dir)
{
	static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+io" };
	int r = cgroup_file_write(dir, "cgroup.subtree_control", "+memory +pids +cpu +io");
	for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(wanted); i++)
		cgroup_file_write(dir, "cgroup.subtree_control", wanted[i]);
	return r == -EINVAL ? 0 : r;
}

static int prepare_hierarchy(const char *dir)
{
	static const struct cgroup_limits none = { 0 };
	struct fault f;
	cleanup_fd int first = -EBADF;
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : enable_controllers(fd);
	if (r == 0)
		cgroup_make(dir, 1, &none, &first, &f); /* else the first app will report it */
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

static int set_limit(int group, const char *name, const char *text, struct fault *f)
{
	int r = cgroup_file_write(group, name, text);
	if (r == -ENOENT)
		return fault_set(f, AGENT_E_INTERNAL,
				 "the guest's kernel cannot limit %s (run the app without)", name);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot set %s to %s", name, text) : 0;
}

static int set_number(int group, const char *name, int64_t value, struct fault *f)
{
	char text[24];
	snprintf(text, sizeof(text), "%lld", (long long)value);
	return value == 0 ? 0 : set_limit(group, name, text, f);
}

static int set_quota(int group, int64_t millis, struct fault *f)
{
	char text[48];
	int64_t quota = MAX(millis * (CGROUP_CPU_PERIOD_US / 1000), CGROUP_CPU_QUOTA_US_MIN);
	snprintf(text, sizeof(text), "%lld %d", (long long)quota, CGROUP_CPU_PERIOD_US);
	return millis == 0 ? 0 : set_limit(group, "cpu.max", text, f);
}

/* Without swap, of which a pod has none as a rule; else the limit would be no limit. */
static int set_memory(int group, int64_t max, struct fault *f)
{
	int r = set_number(group, "memory.max", max, f);
	if (r == 0 && max != 0 && (r = cgroup_file_write(group, "memory.swap.max", "0")) == -ENOENT)
		r = 0; /* a kernel without swap */
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot set memory.swap.max") : r;
}

/* An app whose parts died one by one would be neither alive nor ended: kill it as a whole. */
static int set_limits(int group, const struct cgroup_limits *l, struct fault *f)
{
	int r = cgroup_file_write(group, "memory.oom.group", "1");
	if (r < 0 && r != -ENOENT)
		return fault_sys(f, AGENT_E_INTERNAL, r, "cannot set memory.oom.group");
	r = set_memory(group, l->memory_max, f);
	if (r == 0)
		r = set_quota(group, l->cpu_millis, f);
	if (r == 0)
		r = set_number(group, "cpu.weight", l->cpu_weight, f);
	return r == 0 ? set_number(group, "pids.max", l->pids_max, f) : r;
}

static int without_groups(const struct cgroup_limits *l, int *ret, struct fault *f)
{
	if (l->memory_max || l->cpu_millis || l->cpu_weight || l->pids_max)
		return fault_set(f, AGENT_E_INTERNAL,
				 "no control groups (version 2) here, which limits of memory, "
				 "processors and processes need (run the app without limits)");
	*ret = -EBADF;
	return 0;
}

int cgroup_make(const char *dir, unsigned number, const struct cgroup_limits *limits, int *ret,
		struct fault *f)
{
	char path[PATH_LEN_MAX];
	if (!dir)
		return without_groups(limits, ret, f);
	if (mkdir(group_path(dir, number, path), 0755) < 0 && errno != EEXIST)
		return errno == ENOENT ? without_groups(limits, ret, f)
				       : fault_sys(f, AGENT_E_INTERNAL, errno,
						   "cannot create control group %u", number);
	cleanup_fd int group = cgroup_open(dir, number);
	if (group < 0)
		return fault_sys(f, AGENT_E_INTERNAL, group, "cannot open control group %u",
				 number);
	int r = set_limits(group, limits, f);
	if (r == 0)
		*ret = TAKE_FD(group);
	else
		rmdir(path);
	return r;
}

int cgroup_open(const char *dir, unsigned number)
{
	char path[PATH_LEN_MAX];
	if (!dir)
		return -EBADF;
	int fd = open(group_path(dir, number, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -EBADF : -errno;
}

bool cgroup_had_oom_kill(const char *dir, unsigned number)
{
	char text[EVENTS_LEN_MAX];
	cleanup_fd int group = cgroup_open(dir, number);
	if (group < 0 || cgroup_file_read(group, "memory.events", text, sizeof(text)) < 0)
		return false;
	const char *line = strstr(text, "\noom_kill ");
	return line && line[strlen("\noom_kill ")] != '0';
}

static void read_cpu(int group, struct agent_app_stats *ret)
{
	char text[STAT_LEN_MAX] = "";
	if (cgroup_file_read(group, "cpu.stat", text, sizeof(text)) < 0)
		return;
	ret->cpu_usec = cgroup_text_number(text, "usage_usec");
	ret->user_usec = cgroup_text_number(text, "user_usec");
	ret->system_usec = cgroup_text_number(text, "system_usec");
	ret->throttled_usec = cgroup_text_number(text, "throttled_usec");
}

static void read_memory(int group, struct agent_app_stats *ret)
{
	char text[EVENTS_LEN_MAX] = "";
	ret->memory_bytes = cgroup_file_number(group, "memory.current");
	ret->memory_peak_bytes = cgroup_file_number(group, "memory.peak");
	ret->memory_limit = cgroup_file_number(group, "memory.max");
	if (cgroup_file_read(group, "memory.events", text, sizeof(text)) == 0)
		ret->oom_kills = cgroup_text_number(text, "oom_kill");
}

static void read_io(int group, struct agent_app_stats *ret)
{
	char text[STAT_LEN_MAX] = "";
	if (cgroup_file_read(group, "io.stat", text, sizeof(text)) < 0)
		return;
	ret->io_read_bytes = cgroup_text_sum(text, " rbytes=");
	ret->io_write_bytes = cgroup_text_sum(text, " wbytes=");
}

void cgroup_stats(const char *dir, unsigned number, struct agent_app_stats *ret)
{
	*ret = (struct agent_app_stats){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
	cleanup_fd int group = cgroup_open(dir, number);
	if (group < 0)
		return;
	read_cpu(group, ret);
	read_memory(group, ret);
	read_io(group, ret);
	ret->pids = cgroup_file_number(group, "pids.current");
	ret->pids_limit = cgroup_file_number(group, "pids.max");
}

void cgroup_remove(const char *dir, unsigned number)
{
	char path[PATH_LEN_MAX];
	if (dir && rmdir(group_path(dir, number, path)) < 0 && errno != ENOENT)
		log_error("control group %u: errno %d", number, errno);
}
