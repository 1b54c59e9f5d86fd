/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cgroup/cgroup_counts.h"

#include <unistd.h>

#include "lib/cgroup/cgroup_file.h"

#define SHORT_LEN_MAX 512   /* some ten lines of a name and a number */
#define STAT_LEN_MAX  8192  /* memory.stat: some 60 lines of 40 */
#define DISKS_LEN_MAX 16384 /* io.stat: 150 bytes a disk; version 1: six lines of 40; 64 disks */
#define US_PER_SEC    1000000
#define NS_PER_US     1000

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

/* The number of the file of the controller's version; -1 if there is none, or no controller. */
static int64_t read_number(const struct cgroup_controller *c, const char *v1, const char *v2)
{
	return cgroup_file_number(c->dir, c->is_v1 ? v1 : v2);
}

/* Leaves @text empty if it cannot be read. */
static void read_text(const struct cgroup_controller *c, const char *file, char *text, size_t size)
{
	if (cgroup_file_read(c->dir, file, text, size) < 0)
		text[0] = '\0';
}

static void read_cpu_v1(const struct cgroup_controllers *c, struct agent_app_stats *ret)
{
	char text[SHORT_LEN_MAX];
	ret->cpu_usec = ns_to_us(cgroup_file_number(c->cpuacct.dir, "cpuacct.usage"));
	read_text(&c->cpuacct, "cpuacct.stat", text, sizeof(text));
	ret->user_usec = ticks_to_us(cgroup_text_number(text, "user"));
	ret->system_usec = ticks_to_us(cgroup_text_number(text, "system"));
	read_text(&c->cpu, "cpu.stat", text, sizeof(text));
	ret->throttled_usec = ns_to_us(cgroup_text_number(text, "throttled_time"));
}

static void read_cpu_v2(const struct cgroup_controllers *c, struct agent_app_stats *ret)
{
	char text[SHORT_LEN_MAX];
	read_text(&c->cpuacct, "cpu.stat", text, sizeof(text));
	ret->cpu_usec = cgroup_text_number(text, "usage_usec");
	ret->user_usec = cgroup_text_number(text, "user_usec");
	ret->system_usec = cgroup_text_number(text, "system_usec");
	ret->throttled_usec = cgroup_text_number(text, "throttled_usec");
}

/* Version 1 has each number twice: of the group alone, and with those below it. */
static void read_memory_parts(const struct cgroup_controller *c, struct agent_app_stats *ret)
{
	char text[STAT_LEN_MAX];
	read_text(c, "memory.stat", text, sizeof(text));
	ret->memory_anon_bytes = cgroup_text_number(text, c->is_v1 ? "total_rss" : "anon");
	ret->memory_file_bytes = cgroup_text_number(text, c->is_v1 ? "total_cache" : "file");
	ret->memory_inactive_file_bytes =
		cgroup_text_number(text, c->is_v1 ? "total_inactive_file" : "inactive_file");
	ret->page_faults = cgroup_text_number(text, c->is_v1 ? "total_pgfault" : "pgfault");
	ret->major_page_faults =
		cgroup_text_number(text, c->is_v1 ? "total_pgmajfault" : "pgmajfault");
}

static void read_memory(const struct cgroup_controller *c, struct agent_app_stats *ret)
{
	ret->memory_bytes = read_number(c, "memory.usage_in_bytes", "memory.current");
	ret->memory_peak_bytes = read_number(c, "memory.max_usage_in_bytes", "memory.peak");
	ret->oom_kills = cgroup_oom_kills(c);
	read_memory_parts(c, ret);
}

static void read_disks(const struct cgroup_controller *c, struct agent_app_stats *ret)
{
	char text[DISKS_LEN_MAX];
	const char *file = c->is_v1 ? "blkio.throttle.io_service_bytes" : "io.stat";
	if (cgroup_file_read(c->dir, file, text, sizeof(text)) < 0) /* no disk is not no counter */
		return;
	ret->io_read_bytes = cgroup_text_sum(text, c->is_v1 ? " Read " : " rbytes=");
	ret->io_write_bytes = cgroup_text_sum(text, c->is_v1 ? " Write " : " wbytes=");
}

static int64_t or_none(int64_t limit)
{
	return limit > 0 ? limit : -1;
}

int64_t cgroup_oom_kills(const struct cgroup_controller *memory)
{
	char text[SHORT_LEN_MAX];
	read_text(memory, memory->is_v1 ? "memory.oom_control" : "memory.events", text,
		  sizeof(text));
	return cgroup_text_number(text, "oom_kill");
}

void cgroup_counts_read(const struct cgroup_controllers *c, struct agent_app_stats *ret)
{
	struct cgroup_limits limits;
	*ret = AGENT_APP_STATS_NONE;
	(c->cpuacct.is_v1 ? read_cpu_v1 : read_cpu_v2)(c, ret);
	read_memory(&c->memory, ret);
	read_disks(&c->io, ret);
	ret->pids = cgroup_file_number(c->pids.dir, "pids.current");
	cgroup_limits_read(c, &limits);
	ret->cpu_limit_millis = or_none(limits.cpu_millis);
	ret->memory_limit = or_none(limits.memory_max);
	ret->pids_limit = or_none(limits.pids_max);
}
