/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/stats.h"

#include <signal.h>
#include <stdlib.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/pod/job.h"
#include "guest-agent/pod/machine.h"

struct read {
	struct job job; /* pid 0: free */
	struct pod_caller caller;
};

struct stats_table {
	const struct cgroup_dir *cgroup_dir;
	struct read reads[AGENT_STATS_MAX];
};

struct work {
	const struct cgroup_dir *dir;
	unsigned cgroup;
};

_Static_assert(sizeof(struct agent_app_stats) <= JOB_DATA_MAX, "the result of a job");

struct stats_table *stats_table_new(const struct cgroup_dir *cgroup_dir)
{
	struct stats_table *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->cgroup_dir = cgroup_dir;
	for (size_t i = 0; i < AGENT_STATS_MAX; i++)
		t->reads[i].job = JOB_INIT;
	return t;
}

void stats_table_free(struct stats_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < AGENT_STATS_MAX; i++)
		job_deinit(&t->reads[i].job);
	free(t);
}

/* The read whose process is @pid, 0: a free one; or NULL. */
static struct read *stats_find(struct stats_table *t, pid_t pid)
{
	for (size_t i = 0; i < AGENT_STATS_MAX; i++)
		if (t->reads[i].job.pid == pid)
			return &t->reads[i];
	return NULL;
}

static void read_stats(const void *arg, void *data, struct fault *ret)
{
	const struct work *work = arg;
	(void)ret;
	cgroup_stats(work->dir, work->cgroup, data);
}

int stats_start(struct stats_table *t, unsigned cgroup, struct pod_caller caller, struct fault *f)
{
	const struct work work = { t->cgroup_dir, cgroup };
	struct read *r = stats_find(t, 0);
	if (!r)
		return fault_set(f, AGENT_E_LIMIT, "%d statistics are being read", AGENT_STATS_MAX);
	r->caller = caller;
	return job_start_data(&r->job, read_stats, &work, sizeof(struct agent_app_stats), f);
}

bool stats_reaped(struct stats_table *t, pid_t pid, struct pod_caller *ret_to,
		  struct agent_app_stats *ret, struct fault *ret_f)
{
	struct read *r = stats_find(t, pid);
	if (!r)
		return false;
	*ret_to = r->caller;
	job_finish_data(&r->job, ret, sizeof(*ret), ret_f);
	return true;
}

void stats_drop_owner(struct stats_table *t, uint64_t conn)
{
	for (size_t i = 0; i < AGENT_STATS_MAX; i++)
		if (t->reads[i].job.pid != 0 && t->reads[i].caller.conn == conn)
			machine_signal(t->reads[i].job.pid, SIGKILL);
}
