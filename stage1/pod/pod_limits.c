/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/pod_limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/num.h"
#include "lib/cgroup/cgroup_counts.h"
#include "lib/cgroup/cgroup_file.h"
#include "lib/os/fd.h"
#include "lib/wire/isolators.h"
#include "stage1/pod/podfiles.h"

_Static_assert((int)CGROUP_KINDS <= SPAWN_CGROUPS_MAX, "a process can be in all of them");

/* Of the hierarchy of version 1 if the controller is in one, else of the tree. */
static struct cgroup_controller find(const struct pod_cgroup *g, enum cgroup_kind kind)
{
	bool is_v1 = g->fds[kind] >= 0;
	return (struct cgroup_controller){ g->fds[is_v1 ? kind : CGROUP_UNIFIED], is_v1 };
}

static struct cgroup_controllers controllers(const struct pod_cgroup *g, enum pod_limits_of of)
{
	return (struct cgroup_controllers){ .memory = find(g, CGROUP_MEMORY),
					    .cpu = find(g, CGROUP_CPU),
					    .pids = find(g, CGROUP_PIDS),
					    .cpuacct = find(g, CGROUP_CPUACCT),
					    .io = find(g, CGROUP_BLKIO),
					    .may_swap = of == POD_LIMITS_OF_MACHINE };
}

int64_t pod_limits_weight(int64_t cpu_millis)
{
	return MIN(MAX(cpu_millis * CGROUP_CPU_WEIGHT_DEFAULT / 1000, 1), CGROUP_CPU_WEIGHT_MAX);
}

int pod_limits_set(const struct pod_cgroup *g, enum pod_limits_of of, const struct cgroup_limits *l,
		   struct err *e)
{
	static const struct cgroup_limits none = { 0 };
	const struct cgroup_controllers c = controllers(g, of);
	const struct {
		const char *name;
		struct cgroup_limits limit;
	} all[] = { { "memory", { .memory_max = l->memory_max } },
		    { "processes", { .pids_max = l->pids_max } },
		    { "processors",
		      { .cpu_millis = l->cpu_millis, .cpu_weight = l->cpu_weight } } };
	char missing[64] = "";
	/* Before Linux 5.11 groups below count only if that is said while there are none. */
	if (of == POD_LIMITS_OF_PROGRAMS && c.memory.is_v1)
		cgroup_file_write(c.memory.dir, "memory.use_hierarchy", "1");
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		size_t len = strlen(missing);
		int r = cgroup_limits_change(&c, &none, &all[i].limit, e);
		if (r < 0 && r != -EOPNOTSUPP)
			return err_context(e, "pod %s: cannot limit its %s on the host", g->uuid,
					   all[i].name);
		if (r < 0)
			snprintf(missing + len, sizeof(missing) - len, "%s%s", len ? ", " : "",
				 all[i].name);
	}
	/* In version 1 one is killed; the others end as it has. */
	if (of == POD_LIMITS_OF_MACHINE && !c.memory.is_v1 && c.memory.dir >= 0)
		cgroup_file_write(c.memory.dir, "memory.oom.group", "1");
	if (!missing[0])
		return 0;
	err_set(e, -EOPNOTSUPP, "pod %s: cannot limit on the host: %s (%s)", g->uuid, missing,
		"mount control groups with these controllers");
	return POD_CGROUP_E_NONE;
}

static void choose(struct cgroup_limits *to, unsigned changed, const struct cgroup_limits *l)
{
	if (changed & 1U << ISOLATOR_MEMORY)
		to->memory_max = l->memory_max;
	if (changed & 1U << ISOLATOR_CPU)
		to->cpu_millis = l->cpu_millis;
	if (changed & 1U << ISOLATOR_CPU_SHARES)
		to->cpu_weight = l->cpu_weight;
	if (changed & 1U << ISOLATOR_PIDS)
		to->pids_max = l->pids_max;
}

int pod_limits_update(const char *uuid, enum pod_limits_of of, unsigned changed,
		      const struct cgroup_limits *l, struct err *e)
{
	CLEANUP(pod_cgroup_deinit) struct pod_cgroup g = POD_CGROUP_INIT;
	struct cgroup_limits from, to;
	char parent[CGROUP_PATH_MAX];
	int r = podfiles_read_cgroup_parent(AT_FDCWD, parent, e);
	if (r == 0)
		r = pod_cgroup_open(uuid, parent, &g, e);
	if (r < 0)
		return r;
	if (!pod_cgroup_is_there(&g))
		return err_set(
			e, -ENOENT,
			"it has no control group on this host (who starts it needs one: root, "
			"or systemd-run --user --scope -p Delegate=yes; libvirtd has its own)");
	const struct cgroup_controllers c = controllers(&g, of);
	cgroup_limits_read(&c, &from);
	to = from;
	choose(&to, changed, l);
	return cgroup_limits_change(&c, &from, &to, e);
}

void pod_limits_count(const struct pod_cgroup *g, struct agent_app_stats *ret)
{
	const struct cgroup_controllers c = controllers(g, POD_LIMITS_OF_PROGRAMS);
	cgroup_counts_read(&c, ret);
}

bool pod_limits_killed(const struct pod_cgroup *g)
{
	const struct cgroup_controller c = find(g, CGROUP_MEMORY);
	return cgroup_oom_kills(&c) > 0;
}

int pod_limits_open(const struct pod_cgroup *g, struct spawn_cgroups *ret, struct err *e)
{
	*ret = SPAWN_CGROUPS_NONE;
	ret->dir = g->fds[CGROUP_UNIFIED];
	for (int kind = CGROUP_UNIFIED + 1; kind < CGROUP_KINDS; kind++) {
		if (g->fds[kind] < 0)
			continue;
		int fd = openat(g->fds[kind], "tasks", O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, -errno, "pod %s: cannot use its group in \"%s\"", g->uuid,
				       cgroup_kind_name((enum cgroup_kind)kind));
		ret->tasks[ret->n++] = fd;
	}
	return 0;
}

void pod_limits_close(struct spawn_cgroups *c)
{
	while (c->n > 0)
		fd_close(c->tasks[--c->n]);
	c->dir = -EBADF;
}
