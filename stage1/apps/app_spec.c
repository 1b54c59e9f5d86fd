/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/app_spec.h"

#include <errno.h>

#include "stage1/apps/pod_plan.h"
#include "stage1/pod/podfiles.h"

int app_spec_find(const struct app_spec_pod *p, const char *name, struct pod_manifest *m,
		  const struct pod_app **ret, struct err *e)
{
	int r = podfiles_read_manifest(p->fd, m, e);
	if (r < 0)
		return r;
	*ret = pod_manifest_find(m, name);
	if (!*ret)
		return err_set(e, -ENOENT, "app \"%s\": the pod manifest has none of that name",
			       name);
	return p->backend->fits ? p->backend->fits(p->machine, m, *ret, e) : 0;
}

int app_spec_make(const struct app_spec_pod *p, const struct pod_manifest *m,
		  const struct pod_app *app, int slot, struct agent_app_add *ret, struct err *e)
{
	int r = pod_plan_app(m, app, slot, ret, e);
	return r < 0 ? r : confine_app(app, p->confine, &ret->confinement, e);
}

int app_spec_limits(const struct app_spec_pod *p, const char *name, struct agent_app_update *ret,
		    struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	const struct pod_app *app;
	pod_manifest_init(&m);
	int r = app_spec_find(p, name, &m, &app, e);
	if (r == 0)
		pod_plan_limits(app, ret);
	return r;
}
