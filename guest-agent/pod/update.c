/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/update.h"

#include "guest-agent/app/cgroup.h"

struct work {
	const struct cgroup_dir *dir;
	unsigned cgroup;
	struct cgroup_limits from, to;
};

static void change_limits(const void *arg, struct fault *ret)
{
	const struct work *work = arg;
	cgroup_change(work->dir, work->cgroup, &work->from, &work->to, ret);
}

/* Sets what is wanted in the group that the app has. 0, UPDATE_PENDING or FAULT_SET. */
static int go_on(struct update *u, const struct updated *app, struct fault *f)
{
	const struct work work = { app->dir, app->cgroup, *app->limits, u->wanted };
	u->cgroup = app->cgroup;
	if (u->cgroup != 0) {
		int r = job_start(&u->job, change_limits, &work, f);
		return r == 0 ? UPDATE_PENDING : r;
	}
	*app->limits = u->wanted;
	return 0;
}

int update_start(struct update *u, const struct updated *app, const struct agent_app_update *m,
		 struct pod_caller caller, struct fault *f)
{
	u->caller = caller;
	u->wanted = (struct cgroup_limits){ .memory_max = m->memory_max,
					    .cpu_millis = m->cpu_millis,
					    .cpu_weight = m->cpu_weight,
					    .pids_max = m->pids_max };
	return go_on(u, app, f);
}

bool update_finish(struct update *u, const struct updated *app, struct fault *ret)
{
	job_finish(&u->job, ret);
	if (u->cgroup != app->cgroup) {
		ret->code = 0;
		return go_on(u, app, ret) != UPDATE_PENDING;
	}
	if (ret->code == 0)
		*app->limits = u->wanted;
	return true;
}
