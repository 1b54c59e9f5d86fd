/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

void run_request_init(struct run_request *q)
{
	memset(q, 0, sizeof(*q));
	pod_env_init(&q->env);
	pod_tags_init(&q->tags);
	network_wishes_init(&q->network);
	strv_init(&q->stage1_options, RUN_STAGE1_OPTIONS_MAX);
	strv_init(&q->sysctls, SYSCTLS_MAX);
	q->pull_policy = PULL_NEW;
	store_settings_init(&q->images);
}

void run_request_deinit(struct run_request *q)
{
	for (size_t i = 0; i < q->n_apps; i++)
		app_options_deinit(&q->apps[i]);
	free(q->apps);
	pod_env_deinit(&q->env);
	pod_tags_deinit(&q->tags);
	json_object_put(q->manifest);
	strv_deinit(&q->stage1_options);
	network_wishes_deinit(&q->network);
	strv_deinit(&q->sysctls);
	pod_ports_deinit(&q->ports);
	volumes_deinit(&q->volumes);
	volume_mounts_deinit(&q->mounts);
	run_request_init(q);
}

int run_request_add_app(struct run_request *q, const char *image, struct app_options **ret_app)
{
	if (q->n_apps >= AGENT_APPS_MAX)
		return -E2BIG;
	struct app_options *apps = reallocarray(q->apps, q->n_apps + 1, sizeof(*apps));
	if (!apps)
		return -ENOMEM;
	q->apps = apps;
	struct app_options *app = &apps[q->n_apps++];
	app_options_init(app);
	app->image = image;
	*ret_app = app;
	return 0;
}
