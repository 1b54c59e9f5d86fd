/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half of an app's confinement that has names in it: capabilities and system calls. The other
 * half, numbers, is pod_plan.h has.
 */
#ifndef STAGE1_APPS_CONFINE_H
#define STAGE1_APPS_CONFINE_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/pod_manifest.h"

/* What the user of husk takes back of the confinement of all apps. */
struct confine_options {
	bool all_capabilities; /* whatever the isolators say */
	bool no_seccomp;       /* likewise; the agent's port stays closed */
	bool open_paths;       /* of /proc and /sys nothing is hidden or read-only */
	bool shares_users; /* root of the pod is root of the host: images wish for nothing more */
	bool own_vsock;    /* AF_VSOCK leads to nobody: who asks for no filter at all has none */
};

/*
 * Fills in what @app may do: capabilities, system call filter and @o's paths of @c. 0, or -errno
 * with @e; -EINVAL if a name is not known, -EPERM by wishes_check(). It takes milliseconds: a good
 * time is while the pod boots.
 */
int confine_app(const struct pod_app *app, const struct confine_options *o,
		struct agent_confinement *c, struct err *e);

/*
 * The same for the apps of @pod, whose messages @apps are in the order of the manifest. Apps with
 * the same policy share the work.
 */
int confine_apps(const struct pod_manifest *pod, const struct confine_options *o,
		 struct agent_app_add *apps, struct err *e);

#endif
