/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/cgroup_limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"

#define VALUE_MAX  32     /* bytes of what is written, with its NUL */
#define EVENTS_MAX 512    /* some ten lines of a name and a number */
#define PERIOD_US  100000 /* of a quota of processor time */

/* The kernel's bounds, cgroup-v2.rst and sched(7): a processor is 100 of 10,000, or 1024. */
#define WEIGHT_OF_CPU 100u
#define WEIGHT_MAX    10000u
#define SHARES_OF_CPU 1024u
#define SHARES_MAX    262144u

_Static_assert((int)CGROUP_KINDS <= SPAWN_CGROUPS_MAX, "a process can be in all of them");

/* The file of @v1 if the controller is in a hierarchy of version 1, else of @v2. 0 or -errno. */
static int write_limit(const struct pod_cgroup *g, enum cgroup_kind kind, const char *v1,
		       const char *v2, const char *value)
{
	bool is_v1 = g->fds[kind] >= 0;
	int dir = is_v1 ? g->fds[kind] : g->fds[CGROUP_UNIFIED];
	cleanup_fd int fd = dir < 0 ? -ENOENT : openat(dir, is_v1 ? v1 : v2, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return dir < 0 ? fd : -errno;
	return fd_write_all(fd, value, strlen(value));
}

static int limit_memory(const struct pod_cgroup *g, uint64_t bytes)
{
	char value[VALUE_MAX];
	snprintf(value, sizeof(value), "%" PRIu64, bytes);
	int r = write_limit(g, CGROUP_MEMORY, "memory.limit_in_bytes", "memory.max", value);
	/* In version 1 one is killed; the others end as it has. */
	return r < 0 || g->fds[CGROUP_MEMORY] >= 0
		       ? r
		       : write_limit(g, CGROUP_MEMORY, NULL, "memory.oom.group", "1");
}

static int limit_tasks(const struct pod_cgroup *g, unsigned n)
{
	char value[VALUE_MAX];
	snprintf(value, sizeof(value), "%u", n);
	return write_limit(g, CGROUP_PIDS, "pids.max", "pids.max", value);
}

static int limit_cpus(const struct pod_cgroup *g, const struct cgroup_limits *l)
{
	bool is_v1 = g->fds[CGROUP_CPU] >= 0;
	char value[VALUE_MAX];
	snprintf(value, sizeof(value), "%u",
		 is_v1 ? MIN(l->cpus * SHARES_OF_CPU, SHARES_MAX)
		       : MIN(l->cpus * WEIGHT_OF_CPU, WEIGHT_MAX));
	int r = write_limit(g, CGROUP_CPU, "cpu.shares", "cpu.weight", value);
	if (r < 0 || !l->only_cpus)
		return r;
	snprintf(value, sizeof(value), is_v1 ? "%u" : "%u %u", l->cpus * PERIOD_US, PERIOD_US);
	return write_limit(g, CGROUP_CPU, "cpu.cfs_quota_us", "cpu.max", value);
}

int cgroup_limits_set(const struct pod_cgroup *g, const struct cgroup_limits *l, struct err *e)
{
	const struct {
		const char *name;
		int result;
	} all[] = { { "memory", l->memory ? limit_memory(g, l->memory) : 0 },
		    { "processes", l->tasks ? limit_tasks(g, l->tasks) : 0 },
		    { "processors", l->cpus ? limit_cpus(g, l) : 0 } };
	char missing[64] = "";
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		size_t len = strlen(missing);
		if (all[i].result < 0 && all[i].result != -ENOENT)
			return err_sys(e, all[i].result, "pod %s: cannot limit its %s on the host",
				       g->uuid, all[i].name);
		if (all[i].result < 0)
			snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "",
				 all[i].name);
	}
	if (!missing[0])
		return 0;
	err_set(e, -EOPNOTSUPP, "pod %s: cannot limit on the host: %s (%s)", g->uuid, missing,
		"mount control groups with these controllers");
	return POD_CGROUP_E_NONE;
}

/* The number behind @key in the lines of file @name: 0 if it is not there. */
static uint64_t read_count(int dir, const char *name, const char *key)
{
	char text[EVENTS_MAX];
	size_t len = 0, key_len = strlen(key);
	uint64_t n = 0;
	cleanup_fd int fd = dir < 0 ? -EBADF : openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1, &len) < 0)
		return 0;
	text[len] = '\0';
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (strncmp(line, key, key_len) == 0 && line[key_len] == ' ' &&
		    num_parse_u64(line + key_len + 1, UINT64_MAX, &n) < 0)
			n = 0;
	return n;
}

bool cgroup_limits_killed(const struct pod_cgroup *g)
{
	return g->fds[CGROUP_MEMORY] >= 0
		       ? read_count(g->fds[CGROUP_MEMORY], "memory.oom_control", "oom_kill") > 0
		       : read_count(g->fds[CGROUP_UNIFIED], "memory.events", "oom_kill") > 0;
}

int cgroup_limits_open(const struct pod_cgroup *g, struct spawn_cgroups *ret, struct err *e)
{
	*ret = SPAWN_CGROUPS_NONE;
	ret->dir = g->fds[CGROUP_UNIFIED];
	for (int kind = CGROUP_UNIFIED + 1; kind < CGROUP_KINDS; kind++) {
		if (g->fds[kind] < 0)
			continue;
		int fd = openat(g->fds[kind], "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, -errno, "pod %s: cannot use its group in \"%s\"", g->uuid,
				       cgroup_kind_name((enum cgroup_kind)kind));
		ret->procs[ret->n++] = fd;
	}
	return 0;
}

void cgroup_limits_close(struct spawn_cgroups *c)
{
	while (c->n > 0)
		fd_close(c->procs[--c->n]);
	c->dir = -EBADF;
}
