/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pod manifest, which stage0 has just rewritten, says of one of its apps to a pod that
 * runs.
 */
#ifndef STAGE1_APPS_APP_SPEC_H
#define STAGE1_APPS_APP_SPEC_H

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/pod_manifest.h"
#include "stage1/apps/confine.h"
#include "stage1/backend.h"

/* The pod. All is borrowed. */
struct app_spec_pod {
	int fd; /* its directory */
	const struct backend *backend;
	const struct backend_pod *machine;
	const struct confine_options *confine; /* of its apps */
};

/*
 * Reads the manifest into @m (the caller's to init and deinit) and yields in *ret, which borrows
 * from it, what it has of the app @name. 0; -ENOENT; -ENOSPC if the pod has no room for what its
 * limits promise; or -errno, with @e.
 */
int app_spec_find(const struct app_spec_pod *p, const char *name, struct pod_manifest *m,
		  const struct pod_app **ret, struct err *e);

/*
 * What app.add says of @app of @m in slot @slot, in @ret, which is for agent_app_add_deinit() also
 * on failure. 0, or errors of pod_plan_app() and confine_app().
 */
int app_spec_make(const struct app_spec_pod *p, const struct pod_manifest *m,
		  const struct pod_app *app, int slot, struct agent_app_add *ret, struct err *e);

/* What app.update says of the limits of the app @name. As app_spec_find(). */
int app_spec_limits(const struct app_spec_pod *p, const char *name, struct agent_app_update *ret,
		    struct err *e);

#endif
