/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pod manifest -> what the agent is told of the pod and its apps. Pure: no descriptor, path, clock
 * or environment.
 */
#ifndef STAGE1_APPS_POD_PLAN_H
#define STAGE1_APPS_POD_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/pod_logs.h"
#include "lib/wire/pod_manifest.h"

struct pod_plan {
	struct agent_pod_setup
		setup;              /* who starts the pod fills it in; it has no scratch disk yet */
	struct agent_app_add *apps; /* owned; in the order of the manifest */
	struct stream_modes streams[AGENT_APPS_MAX]; /* likewise */
	struct pod_log_place logs[AGENT_APPS_MAX];   /* likewise; borrowed from the manifest */
	size_t n_apps;
	bool is_mutable;                  /* apps may come later */
	enum pod_exit_policy exit_policy; /* not POD_EXIT_DEFAULT */
};

/*
 * Fills *ret (pod_plan_deinit()). 0; -EINVAL for a number of apps that cannot run; -E2BIG, -ENOMEM.
 */
int pod_plan_make(const struct pod_manifest *pod, struct pod_plan *ret, struct err *e);

/* Frees what @p holds. Harmless on a zeroed one. */
void pod_plan_deinit(struct pod_plan *p);

/*
 * What the agent is told of an app of @pod in slot @slot, which is its LUN (agent_app_add_deinit(),
 * also on failure). Its capabilities are the default ones and its system call filter is empty:
 * those have names to look up (stage1/apps/confine.h). 0; -ENOENT if it mounts what is not there;
 * -E2BIG, -ENOMEM, with @e.
 */
int pod_plan_app(const struct pod_manifest *pod, const struct pod_app *app, int slot,
		 struct agent_app_add *ret, struct err *e);

/* The same of the limits of @app, which an app that was added before may get. */
void pod_plan_limits(const struct pod_app *app, struct agent_app_update *ret);

/*
 * What the manifest has for a process of @app: directory, user, group, environment. Appends to the
 * lists of @p. 0, -ENOMEM, or -E2BIG.
 */
int pod_plan_process(const struct pod_app *app, struct agent_process *p);

#endif
