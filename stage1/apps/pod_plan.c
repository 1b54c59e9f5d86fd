/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/pod_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/cgroup/cgroup_limits.h"

int pod_plan_process(const struct pod_app *app, struct agent_process *p)
{
	int r;

	p->cwd_is_there = app->cwd_is_there;
	if ((r = str_copy(p->cwd, sizeof(p->cwd), app->cwd)) < 0 ||
	    (r = str_copy(p->user, sizeof(p->user), app->user)) < 0 ||
	    (r = str_copy(p->group, sizeof(p->group), app->group)) < 0)
		return r;
	return strv_extend(&p->env, &app->env);
}

/* 0 stays 0. */
static int64_t weight_of_shares(int64_t shares)
{
	return shares == 0 ? 0 : cgroup_weight_of_shares(shares);
}

static int fill_confinement(const struct pod_app *app, struct agent_confinement *c)
{
	const struct isolators *i = &app->isolators;
	int r = strv_extend(&c->groups, &app->groups);
	if (r == 0)
		r = strv_extend(&c->masked_paths, &i->masked_paths);
	if (r == 0)
		r = strv_extend(&c->read_only_paths, &i->read_only_paths);

	c->capabilities = AGENT_CAPABILITIES_DEFAULT;
	c->no_new_privs = i->no_new_privs;
	c->read_only_root = app->read_only_root;
	c->umask = isolators_has(i, ISOLATOR_UMASK) ? i->umask : -1;
	c->oom_score_adj = i->oom_score_adj;
	c->memory_max = i->memory;
	c->cpu_millis = i->cpu_millis;
	c->cpu_weight = weight_of_shares(i->cpu_shares);
	c->pids_max = i->pids_max;
	return r < 0 ? r : strv_extend(&c->rlimits, &i->rlimits);
}

void pod_plan_limits(const struct pod_app *app, struct agent_app_update *ret)
{
	const struct isolators *i = &app->isolators;
	*ret = (struct agent_app_update){ .memory_max = i->memory,
					  .cpu_millis = i->cpu_millis,
					  .cpu_weight = weight_of_shares(i->cpu_shares),
					  .pids_max = i->pids_max };
	memcpy(ret->app, app->name, sizeof(ret->app));
}

/* Its number, if it is something of the host. */
static int64_t slot_of(const struct volume *v, const struct volumes *list)
{
	return volume_has_source(v) ? v - list->v : 0;
}

static int add_mount(const struct pod_manifest *pod, const struct pod_app *app,
		     const struct volume_mount *from, struct agent_mounts *list)
{
	static const enum agent_volume kinds[] = { [VOLUME_EMPTY] = AGENT_VOLUME_EMPTY,
						   [VOLUME_MEMORY] = AGENT_VOLUME_MEMORY,
						   [VOLUME_IMAGE] = AGENT_VOLUME_IMAGE,
						   [VOLUME_HOST] = AGENT_VOLUME_HOST,
						   [VOLUME_BLOCK] = AGENT_VOLUME_BLOCK };
	const struct volume *v = pod_manifest_volume(pod, app, from->volume);
	bool is_own = volumes_find(&app->volumes, from->volume);
	if (!v || (is_own && v->kind == VOLUME_BLOCK))
		return v ? -EOPNOTSUPP : -ENOENT;
	struct agent_mount m = { .kind = kinds[v->kind],
				 .is_own = is_own,
				 .read_only = from->read_only,
				 .no_exec = from->no_exec,
				 .no_suid = from->no_suid,
				 .mode = v->mode,
				 .uid = v->uid,
				 .gid = v->gid,
				 .size = v->size,
				 .slot = slot_of(v, is_own ? &app->volumes : &pod->volumes) };
	memcpy(m.volume, v->name, sizeof(m.volume));
	int r = str_copy(m.path, sizeof(m.path), from->path);
	return r < 0 ? r : agent_mounts_add(list, &m);
}

/* A path is behind those that are above it. */
static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct agent_mount *)a)->path, ((const struct agent_mount *)b)->path);
}

static int fill_mounts(const struct pod_manifest *pod, const struct pod_app *app,
		       struct agent_mounts *list)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < app->mounts.n; i++)
		r = add_mount(pod, app, &app->mounts.v[i], list);
	if (list->n > 1)
		qsort(list->v, list->n, sizeof(*list->v), compare_paths);
	return r;
}

/* Turns @app, number @lun, into the agent's message. */
static int app_message(const struct pod_manifest *pod, const struct pod_app *app, int lun,
		       struct agent_app_add *m)
{
	int r;

	agent_app_add_init(m);
	m->lun = lun;
	m->with_init = app->isolators.with_init;
	m->shares_processes = app->isolators.shared_processes;
	m->stop_signal = app->isolators.stop_signal;
	m->keep_streams = stream_modes_can_attach(&app->streams);
	m->process.with_tty = stream_modes_have_tty(&app->streams);
	m->process.with_stdin = app->streams.in == STREAM_MODE_STREAM;
	m->process.null_stdout = app->streams.out == STREAM_MODE_NULL;
	m->process.null_stderr = app->streams.err == STREAM_MODE_NULL;
	if ((r = str_copy(m->app, sizeof(m->app), app->name)) < 0 ||
	    (r = fill_confinement(app, &m->confinement)) < 0 ||
	    (r = pod_plan_process(app, &m->process)) < 0)
		return r;
	if ((r = strv_extend(&m->pre_start, &app->pre_start)) < 0 ||
	    (r = strv_extend(&m->post_stop, &app->post_stop)) < 0 ||
	    (r = fill_mounts(pod, app, &m->mounts)) < 0)
		return r;
	return strv_extend(&m->process.exec, &app->exec);
}

int pod_plan_app(const struct pod_manifest *pod, const struct pod_app *app, int slot,
		 struct agent_app_add *ret, struct err *e)
{
	int r = app_message(pod, app, slot, ret);

	return r < 0 ? err_sys(e, r, "app \"%s\"", app->name) : 0;
}

static int plan_apps(const struct pod_manifest *pod, struct pod_plan *p, struct err *e)
{
	p->apps = calloc(MAX(pod->n_apps, (size_t)1), sizeof(*p->apps));
	if (!p->apps)
		return err_sys(e, -ENOMEM, "plan");
	for (size_t i = 0; i < pod->n_apps; i++) {
		p->n_apps++; /* pod_plan_deinit() frees a half-made one, too */
		int r = pod_plan_app(pod, &pod->apps[i], (int)i, &p->apps[i], e);
		if (r < 0)
			return r;
		p->streams[i] = pod->apps[i].streams;
		p->logs[i] = pod_log_place(&pod->tags, &pod->apps[i].tags);
	}
	return 0;
}

int pod_plan_make(const struct pod_manifest *pod, struct pod_plan *ret, struct err *e)
{
	struct pod_plan p = { .is_mutable = pod->is_mutable,
			      .exit_policy = pod_manifest_exit_policy(pod),
			      .setup.scratch_lun = -1 };
	if ((pod->n_apps == 0 && !pod->is_mutable) || pod->n_apps > AGENT_APPS_MAX)
		return err_set(e, -EINVAL, "pod: %zu apps (1 to %d can run)", pod->n_apps,
			       AGENT_APPS_MAX);
	int r = plan_apps(pod, &p, e);
	if (r < 0)
		pod_plan_deinit(&p);
	else
		*ret = p;
	return r;
}

void pod_plan_deinit(struct pod_plan *p)
{
	for (size_t i = 0; i < p->n_apps; i++)
		agent_app_add_deinit(&p->apps[i]);
	free(p->apps);
	*p = (struct pod_plan){ 0 };
}
