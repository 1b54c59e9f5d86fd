/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"

#define PATH_LEN_MAX     256    /* the mount point, which is ours, and a number */
#define EVENTS_LEN_MAX   512    /* memory.events: seven counters */
#define NUMBER_LEN_MAX   20     /* digits of 2^64 */
#define STAT_LEN_MAX     16384  /* io.stat: a line of 150 bytes for each of 33 disks, and spare */
#define CPU_PERIOD_US    100000 /* of cpu.max; the kernel's default */
#define CPU_QUOTA_US_MIN 1000   /* the kernel takes no less */

static const char *group_path(const char *dir, unsigned number, char ret[PATH_LEN_MAX])
{
	snprintf(ret, PATH_LEN_MAX, "%s/%u", dir, number);
	return ret;
}

static int write_at(int dir, const char *name, const char *text)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int read_at(int dir, const char *name, char *text, size_t size)
{
	size_t len = 0;
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_read_full(fd, text, size - 1, &len);
	text[len] = '\0';
	return r;
}

/*
 * One by one only if the kernel lacks one of them, since each write goes through the whole
 * hierarchy.
 */
static int enable_controllers(int dir)
{
	static const char *const wanted[] = { "+memory", "+pids", "+cpu", "+io" };
	int r = write_at(dir, "cgroup.subtree_control", "+memory +pids +cpu +io");
	for (size_t i = 0; r == -EINVAL && i < ARRAY_SIZE(wanted); i++)
		write_at(dir, "cgroup.subtree_control", wanted[i]);
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
	int r = write_at(group, name, text);
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
	int64_t quota = MAX(millis * (CPU_PERIOD_US / 1000), CPU_QUOTA_US_MIN);
	snprintf(text, sizeof(text), "%lld %d", (long long)quota, CPU_PERIOD_US);
	return millis == 0 ? 0 : set_limit(group, "cpu.max", text, f);
}

/* Without swap, of which a pod has none as a rule; else the limit would be no limit. */
static int set_memory(int group, int64_t max, struct fault *f)
{
	int r = set_number(group, "memory.max", max, f);
	if (r == 0 && max != 0 && (r = write_at(group, "memory.swap.max", "0")) == -ENOENT)
		r = 0; /* a kernel without swap */
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot set memory.swap.max") : r;
}

/* An app whose parts died one by one would be neither alive nor ended: kill it as a whole. */
static int set_limits(int group, const struct cgroup_limits *l, struct fault *f)
{
	int r = write_at(group, "memory.oom.group", "1");
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
	if (group < 0 || read_at(group, "memory.events", text, sizeof(text)) < 0)
		return false;
	const char *line = strstr(text, "\noom_kill ");
	return line && line[strlen("\noom_kill ")] != '0';
}

/* The number at the beginning of @s; -1 if there is none, or it is too large. */
static int64_t number_at(const char *s)
{
	char digits[NUMBER_LEN_MAX + 1];
	uint64_t n;
	size_t len = strspn(s, "0123456789");
	if (len > NUMBER_LEN_MAX)
		return -1;
	memcpy(digits, s, len);
	digits[len] = '\0';
	return num_parse_u64(digits, INT64_MAX, &n) < 0 ? -1 : (int64_t)n;
}

/* A file of one number, or "max". */
static int64_t read_number(int group, const char *name)
{
	char text[32];
	return read_at(group, name, text, sizeof(text)) < 0 ? -1 : number_at(text);
}

/* The number in the line "KEY NUMBER" of @text. */
static int64_t keyed_number(const char *text, const char *key)
{
	size_t len = strlen(key);
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return number_at(line + len + 1);
	}
	return -1;
}

/* The sum of all KEY=NUMBER in @text, whose lines are those of one disk each. */
static int64_t sum_of(const char *text, const char *key)
{
	int64_t sum = 0;
	for (const char *at = text; (at = strstr(at, key));) {
		at += strlen(key);
		int64_t n = number_at(at);
		if (n < 0 || __builtin_add_overflow(sum, n, &sum))
			return -1;
	}
	return sum;
}

static void read_cpu(int group, struct agent_app_stats *ret)
{
	char text[STAT_LEN_MAX] = "";
	if (read_at(group, "cpu.stat", text, sizeof(text)) < 0)
		return;
	ret->cpu_usec = keyed_number(text, "usage_usec");
	ret->user_usec = keyed_number(text, "user_usec");
	ret->system_usec = keyed_number(text, "system_usec");
	ret->throttled_usec = keyed_number(text, "throttled_usec");
}

static void read_memory(int group, struct agent_app_stats *ret)
{
	char text[EVENTS_LEN_MAX] = "";
	ret->memory_bytes = read_number(group, "memory.current");
	ret->memory_peak_bytes = read_number(group, "memory.peak");
	ret->memory_limit = read_number(group, "memory.max");
	if (read_at(group, "memory.events", text, sizeof(text)) == 0)
		ret->oom_kills = keyed_number(text, "oom_kill");
}

static void read_io(int group, struct agent_app_stats *ret)
{
	char text[STAT_LEN_MAX] = "";
	if (read_at(group, "io.stat", text, sizeof(text)) < 0)
		return;
	ret->io_read_bytes = sum_of(text, " rbytes=");
	ret->io_write_bytes = sum_of(text, " wbytes=");
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
	ret->pids = read_number(group, "pids.current");
	ret->pids_limit = read_number(group, "pids.max");
}

void cgroup_remove(const char *dir, unsigned number)
{
	char path[PATH_LEN_MAX];
	if (dir && rmdir(group_path(dir, number, path)) < 0 && errno != ENOENT)
		log_error("control group %u: errno %d", number, errno);
}
