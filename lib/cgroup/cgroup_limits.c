/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/cgroup/cgroup_limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/cgroup/cgroup_file.h"

#define VALUE_MAX    48     /* bytes of what is written, with its NUL: two numbers */
#define PERIOD_US    100000 /* of a quota of processor time; the kernel's default */
#define QUOTA_US_MIN 1000   /* the kernel takes no less */
#define SHARES_MIN   2      /* likewise */
#define SHARES_MAX   262144 /* and no more */

int64_t cgroup_weight_of_shares(int64_t shares)
{
	int64_t weight = shares * CGROUP_CPU_WEIGHT_DEFAULT / CGROUP_SHARES_DEFAULT;
	return MIN(MAX(weight, 1), CGROUP_CPU_WEIGHT_MAX);
}

static int set_text(const struct cgroup_controller *c, const char *file, const char *text,
		    struct err *e)
{
	int r = c->dir < 0 ? -ENOENT : cgroup_file_write(c->dir, file, text);
	if (r == -ENOENT)
		return err_set(e, -EOPNOTSUPP,
			       "the kernel cannot limit %s here (leave the limit away)", file);
	return r < 0 ? err_sys(e, r, "cannot set %s to %s", file, text) : 0;
}

static int set_number(const struct cgroup_controller *c, const char *file, int64_t value,
		      struct err *e)
{
	char text[VALUE_MAX];
	snprintf(text, sizeof(text), "%" PRId64, value);
	return set_text(c, file, text, e);
}

/* --- memory --- */

static int refuse_memory(int64_t max, int64_t used, struct err *e)
{
	return err_set(e, -EBUSY,
		       "cannot limit its memory to %" PRId64 " bytes: it uses %" PRId64
		       " that the kernel cannot take back (let it free some, or stop it first)",
		       max, used);
}

/* Of memory together with swap space, where that is counted. */
static int set_together(const struct cgroup_controllers *c, int64_t max, struct err *e)
{
	static const char together[] = "memory.memsw.limit_in_bytes";
	bool counts = !c->may_swap && faccessat(c->memory.dir, together, F_OK, 0) == 0;
	return counts ? set_number(&c->memory, together, max, e) : 0;
}

/* The kernel takes back what it can, and refuses a limit below what is left. */
static int lower_memory_v1(const struct cgroup_controllers *c, int64_t max, struct err *e)
{
	int r = set_number(&c->memory, "memory.limit_in_bytes", max, e);
	int64_t used = r == -EBUSY ? cgroup_file_number(c->memory.dir, "memory.usage_in_bytes") : 0;
	return r == -EBUSY ? refuse_memory(max, used, e) : r;
}

/* In this order, since both together at least are the second. */
static int set_memory_v1(const struct cgroup_controllers *c, int64_t max, bool lowers,
			 struct err *e)
{
	int r = lowers ? lower_memory_v1(c, max, e) : set_together(c, max, e);
	if (r == 0)
		r = lowers ? set_together(c, max, e)
			   : set_number(&c->memory, "memory.limit_in_bytes", max, e);
	return r;
}

/*
 * The kernel would kill for a limit below what is in use. So it is asked first to take back what it
 * can: setting memory.high does that before it returns.
 */
static int make_room(const struct cgroup_controller *c, int64_t max, struct err *e)
{
	if (cgroup_file_number(c->dir, "memory.current") <= max)
		return 0;
	int r = set_number(c, "memory.high", max, e);
	int64_t used = r == 0 ? cgroup_file_number(c->dir, "memory.current") : 0;
	if (r == 0)
		cgroup_file_write(c->dir, "memory.high", "max");
	return used > max ? refuse_memory(max, used, e) : r;
}

/* Without swap space, unless it may be used: else the limit would be no limit. */
static int set_memory_v2(const struct cgroup_controllers *c, int64_t max, bool lowers,
			 struct err *e)
{
	int r = lowers ? make_room(&c->memory, max, e) : 0;
	if (r == 0)
		r = max ? set_number(&c->memory, "memory.max", max, e)
			: set_text(&c->memory, "memory.max", "max", e);
	if (r < 0 || c->may_swap)
		return r;
	r = cgroup_file_write(c->memory.dir, "memory.swap.max", max ? "0" : "max");
	return r < 0 && r != -ENOENT /* a kernel without swap */
		       ? err_sys(e, r, "cannot set memory.swap.max")
		       : 0;
}

static int set_memory(const struct cgroup_controllers *c, int64_t from, int64_t to, struct err *e)
{
	bool lowers = to != 0 && (from == 0 || to < from);
	return c->memory.is_v1 ? set_memory_v1(c, to ? to : -1, lowers, e)
			       : set_memory_v2(c, to, lowers, e);
}

/* --- processors --- */

static int set_quota_v1(const struct cgroup_controller *c, int64_t quota_us, struct err *e)
{
	int r = set_number(c, "cpu.cfs_period_us", PERIOD_US, e);
	if (r == 0)
		r = set_number(c, "cpu.cfs_quota_us", quota_us, e);
	return r == -EINVAL
		       ? err_set(e, r,
				 "cannot limit its processors so: with control groups of "
				 "version 1 an app's limit must not be beyond its pod's (change "
				 "the other one first)")
		       : r;
}

static int set_quota(const struct cgroup_controller *c, int64_t millis, struct err *e)
{
	char text[VALUE_MAX];
	int64_t quota_us = MAX(millis * (PERIOD_US / 1000), QUOTA_US_MIN);
	if (c->is_v1)
		return set_quota_v1(c, millis ? quota_us : -1, e);
	snprintf(text, sizeof(text), "%" PRId64 " %d", quota_us, PERIOD_US);
	return set_text(c, "cpu.max", millis ? text : "max", e);
}

static int set_weight(const struct cgroup_controller *c, int64_t weight, struct err *e)
{
	int64_t some = weight ? weight : CGROUP_CPU_WEIGHT_DEFAULT;
	int64_t shares = some * CGROUP_SHARES_DEFAULT / CGROUP_CPU_WEIGHT_DEFAULT;
	return c->is_v1 ? set_number(c, "cpu.shares", MAX(shares, SHARES_MIN), e)
			: set_number(c, "cpu.weight", some, e);
}

/* --- all of them --- */

static int set_limits(const struct cgroup_controllers *c, const struct cgroup_limits *from,
		      const struct cgroup_limits *to, struct err *e)
{
	int r = 0;
	if (from->memory_max != to->memory_max)
		r = set_memory(c, from->memory_max, to->memory_max, e);
	if (r == 0 && from->cpu_millis != to->cpu_millis)
		r = set_quota(&c->cpu, to->cpu_millis, e);
	if (r == 0 && from->cpu_weight != to->cpu_weight)
		r = set_weight(&c->cpu, to->cpu_weight, e);
	if (r < 0 || from->pids_max == to->pids_max)
		return r;
	return to->pids_max ? set_number(&c->pids, "pids.max", to->pids_max, e)
			    : set_text(&c->pids, "pids.max", "max", e);
}

int cgroup_limits_change(const struct cgroup_controllers *c, const struct cgroup_limits *from,
			 const struct cgroup_limits *to, struct err *e)
{
	struct err ignored = ERR_INIT;
	int r = set_limits(c, from, to, e);
	if (r < 0) /* some of them may have been set */
		set_limits(c, to, from, &ignored);
	return r;
}

/* The number in a file, 0 for one that says that there is no limit, or is not there. */
static int64_t read_number(const struct cgroup_controller *c, const char *file)
{
	int64_t n = c->dir < 0 ? -1 : cgroup_file_number(c->dir, file);
	return n < 0 || n >= CGROUP_V1_NO_LIMIT ? 0 : n;
}

/* The second of two numbers in a file, 0 if there is none. */
static int64_t read_second(const struct cgroup_controller *c, const char *file)
{
	char text[VALUE_MAX];
	uint64_t n = 0;
	if (c->dir < 0 || cgroup_file_read(c->dir, file, text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	const char *blank = strchr(text, ' ');
	return blank && num_parse_u64(blank + 1, INT64_MAX, &n) == 0 ? (int64_t)n : 0;
}

static int64_t read_quota(const struct cgroup_controller *c)
{
	int64_t millis;
	int64_t quota_us = read_number(c, c->is_v1 ? "cpu.cfs_quota_us" : "cpu.max");
	int64_t period_us =
		c->is_v1 ? read_number(c, "cpu.cfs_period_us") : read_second(c, "cpu.max");
	if (quota_us == 0 || period_us == 0 || __builtin_mul_overflow(quota_us, 1000, &millis))
		return 0;
	return millis / period_us;
}

static int64_t read_weight(const struct cgroup_controller *c)
{
	int64_t n = MIN(read_number(c, c->is_v1 ? "cpu.shares" : "cpu.weight"), SHARES_MAX);
	int64_t weight = n;
	if (c->is_v1) /* the nearest: what was set was rounded */
		weight = (n * CGROUP_CPU_WEIGHT_DEFAULT + CGROUP_SHARES_DEFAULT / 2) /
			 CGROUP_SHARES_DEFAULT;
	return weight == CGROUP_CPU_WEIGHT_DEFAULT ? 0 : weight;
}

void cgroup_limits_read(const struct cgroup_controllers *c, struct cgroup_limits *ret)
{
	*ret = (struct cgroup_limits){
		.memory_max = read_number(&c->memory,
					  c->memory.is_v1 ? "memory.limit_in_bytes" : "memory.max"),
		.cpu_millis = read_quota(&c->cpu),
		.cpu_weight = read_weight(&c->cpu),
		.pids_max = read_number(&c->pids, "pids.max"),
	};
}
