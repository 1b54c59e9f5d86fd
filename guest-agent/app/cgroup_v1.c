/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/cgroup_v1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "lib/cgroup/cgroup_file.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/fd.h"

#define PATH_LEN_MAX  (CGROUP_V1_DIR_MAX + 80) /* "/cpuacct/NUMBER/" and the longest file name */
#define STAT_LEN_MAX  16384                    /* blkio: six lines of 40 bytes a disk, 64 disks */
#define SHORT_LEN_MAX 256                      /* files of three or four short lines */
#define US_PER_SEC    1000000
#define NS_PER_US     1000

static const char *const hierarchies[] = { "memory", "cpu", "cpuacct", "pids", "blkio" };

struct path {
	char text[PATH_LEN_MAX];
};

static struct path group_path(const char *dir, const char *hierarchy, unsigned number)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), "%s/%s/%u", dir, hierarchy, number);
	return p;
}

static struct path file_path(const char *dir, const char *hierarchy, unsigned number,
			     const char *file)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), "%s/%s/%u/%s", dir, hierarchy, number, file);
	return p;
}

static bool has_hierarchy(const char *dir, const char *hierarchy)
{
	struct path p;
	snprintf(p.text, sizeof(p.text), "%s/%s", dir, hierarchy);
	return access(p.text, F_OK) == 0;
}

bool cgroup_v1_is_there(const char *dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++)
		if (has_hierarchy(dir, hierarchies[i]))
			return true;
	return false;
}

/* Where two names are one hierarchy, the second finds the group made. */
static int make_group(const char *dir, const char *hierarchy, unsigned number, struct fault *f)
{
	if (mkdir(group_path(dir, hierarchy, number).text, 0755) == 0 || errno == EEXIST ||
	    (errno == ENOENT && !has_hierarchy(dir, hierarchy)))
		return 0;
	return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create control group %u of \"%s\"",
			 number, hierarchy);
}

/* Which may be missing: what is to be limited there then is refused. */
static int open_group(const char *dir, const char *hierarchy, unsigned number)
{
	return open(group_path(dir, hierarchy, number).text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int cgroup_v1_change(const char *dir, unsigned number, const struct cgroup_limits *from,
		     const struct cgroup_limits *to, struct fault *f)
{
	struct err e = ERR_INIT;
	cleanup_fd int memory = open_group(dir, "memory", number);
	cleanup_fd int cpu = open_group(dir, "cpu", number);
	cleanup_fd int pids = open_group(dir, "pids", number);
	const struct cgroup_controllers c = {
		{ memory, true }, { cpu, true }, { pids, true }, false
	};
	return cgroup_limits_change(&c, from, to, &e) < 0 ? fault_err(f, &e) : 0;
}

int cgroup_v1_make(const char *dir, unsigned number, const struct cgroup_limits *limits,
		   struct fault *f)
{
	static const struct cgroup_limits none = { 0 };
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(hierarchies); i++)
		r = make_group(dir, hierarchies[i], number, f);
	if (r == 0)
		r = cgroup_v1_change(dir, number, &none, limits, f);
	if (r != 0)
		cgroup_v1_remove(dir, number);
	return r;
}

static int64_t number_in(const char *dir, const char *hierarchy, unsigned number, const char *file)
{
	return cgroup_file_number(AT_FDCWD, file_path(dir, hierarchy, number, file).text);
}

int cgroup_v1_enter(const char *dir, unsigned number, struct fault *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++) {
		struct path procs = file_path(dir, hierarchies[i], number, "cgroup.procs");
		int r = cgroup_file_write(AT_FDCWD, procs.text, "0");
		if (r < 0 && (r != -ENOENT || has_hierarchy(dir, hierarchies[i])))
			return fault_sys(f, AGENT_E_INTERNAL, r,
					 "cannot enter control group %u of \"%s\"", number,
					 hierarchies[i]);
	}
	int64_t max = number_in(dir, "pids", number, "pids.max");
	if (max >= 0 && number_in(dir, "pids", number, "pids.current") > max)
		return fault_set(f, AGENT_E_LIMIT, "the app has as many processes as it may have");
	return 0;
}

static int64_t oom_kills(const char *dir, unsigned number)
{
	char text[SHORT_LEN_MAX];
	struct path p = file_path(dir, "memory", number, "memory.oom_control");
	if (cgroup_file_read(AT_FDCWD, p.text, text, sizeof(text)) < 0)
		return -1;
	return cgroup_text_number(text, "oom_kill");
}

bool cgroup_v1_had_oom_kill(const char *dir, unsigned number)
{
	return oom_kills(dir, number) > 0;
}

static int64_t ns_to_us(int64_t ns)
{
	return ns < 0 ? -1 : ns / NS_PER_US;
}

/* The kernel counts in ticks of the clock that programs see, USER_HZ. */
static int64_t ticks_to_us(int64_t ticks)
{
	int64_t us;
	int64_t tick = US_PER_SEC / sysconf(_SC_CLK_TCK);
	return ticks < 0 || __builtin_mul_overflow(ticks, tick, &us) ? -1 : us;
}

static void read_cpu(const char *dir, unsigned number, struct agent_app_stats *ret)
{
	char text[SHORT_LEN_MAX];
	struct path p = file_path(dir, "cpuacct", number, "cpuacct.stat");
	ret->cpu_usec = ns_to_us(number_in(dir, "cpuacct", number, "cpuacct.usage"));
	if (cgroup_file_read(AT_FDCWD, p.text, text, sizeof(text)) == 0) {
		ret->user_usec = ticks_to_us(cgroup_text_number(text, "user"));
		ret->system_usec = ticks_to_us(cgroup_text_number(text, "system"));
	}
	p = file_path(dir, "cpu", number, "cpu.stat");
	if (cgroup_file_read(AT_FDCWD, p.text, text, sizeof(text)) == 0)
		ret->throttled_usec = ns_to_us(cgroup_text_number(text, "throttled_time"));
}

static void read_memory(const char *dir, unsigned number, struct agent_app_stats *ret)
{
	int64_t limit = number_in(dir, "memory", number, "memory.limit_in_bytes");
	ret->memory_bytes = number_in(dir, "memory", number, "memory.usage_in_bytes");
	ret->memory_peak_bytes = number_in(dir, "memory", number, "memory.max_usage_in_bytes");
	ret->memory_limit = limit >= CGROUP_V1_NO_LIMIT ? -1 : limit;
	ret->oom_kills = oom_kills(dir, number);
}

static void read_io(const char *dir, unsigned number, struct agent_app_stats *ret)
{
	char text[STAT_LEN_MAX];
	struct path p = file_path(dir, "blkio", number, "blkio.throttle.io_service_bytes");
	if (cgroup_file_read(AT_FDCWD, p.text, text, sizeof(text)) < 0)
		return;
	ret->io_read_bytes = cgroup_text_sum(text, " Read ");
	ret->io_write_bytes = cgroup_text_sum(text, " Write ");
}

void cgroup_v1_stats(const char *dir, unsigned number, struct agent_app_stats *ret)
{
	read_cpu(dir, number, ret);
	read_memory(dir, number, ret);
	read_io(dir, number, ret);
	ret->pids = number_in(dir, "pids", number, "pids.current");
	ret->pids_limit = number_in(dir, "pids", number, "pids.max");
}

void cgroup_v1_remove(const char *dir, unsigned number)
{
	for (size_t i = 0; i < ARRAY_SIZE(hierarchies); i++)
		if (rmdir(group_path(dir, hierarchies[i], number).text) < 0 && errno != ENOENT)
			log_error("control group %u of \"%s\": errno %d", number, hierarchies[i],
				  errno);
}
