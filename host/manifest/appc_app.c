/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/appc_app.h"

#include <errno.h>

#include "host/manifest/compose.h"
#include "lib/base/json.h"

static int merge_isolators(struct json_object *run, struct pod_app *app, struct err *e)
{
	CLEANUP(isolators_deinit) struct isolators wanted;
	isolators_init(&wanted);
	int r = isolators_read(run, &wanted, e);
	enum isolator other = isolators_not_of_image(&wanted);
	if (r == 0 && other != ISOLATOR_COUNT_)
		r = err_set(e, -EOPNOTSUPP, "isolator \"%s\" is not an image's to ask for",
			    isolators_name(other));
	if (r == 0)
		r = compose_check_isolators(&wanted, e);
	if (r < 0)
		return r;
	r = isolators_merge(&app->isolators, &wanted);
	return r < 0 ? err_sys(e, r, "out of memory") : 0;
}

static int merge_groups(struct json_object *run, struct pod_app *app, struct err *e)
{
	cleanup_strv struct strv wanted;
	strv_init(&wanted, AGENT_GROUPS_MAX);
	int r = pod_manifest_read_groups(run, &wanted, e);
	if (r < 0 || app->groups.n > 0)
		return r;
	r = strv_extend(&app->groups, &wanted);
	return r < 0 ? err_sys(e, r, "out of memory") : 0;
}

int wishes_apply(const char *manifest, size_t len, struct pod_app *app, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	int r = json_parse(manifest, len, &obj);
	if (r < 0)
		return err_set(e, r, "its manifest is not JSON");
	struct json_object *run = json_member(obj, "app");
	if (!run)
		return 0;
	r = pod_manifest_read_handlers(run, &app->pre_start, &app->post_stop, e);
	if (r == 0)
		r = merge_isolators(run, app, e);
	if (r == 0)
		r = app_ports_read(run, &app->ports, e);
	if (r == 0)
		r = mount_points_read(run, &app->points, e);
	return r < 0 ? r : merge_groups(run, app, e);
}
