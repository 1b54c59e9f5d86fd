/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/wire/pod_logs.h"

#define APPC_VERSION    "0.8.11"
#define HANDLERS_MEMBER "eventHandlers"

void pod_app_init(struct pod_app *app)
{
	memset(app, 0, sizeof(*app));
	strv_init(&app->exec, AGENT_EXEC_MAX);
	strv_init(&app->env, AGENT_ENV_MAX);
	strv_init(&app->groups, AGENT_GROUPS_MAX);
	strv_init(&app->pre_start, AGENT_EXEC_MAX);
	strv_init(&app->post_stop, AGENT_EXEC_MAX);
	isolators_init(&app->isolators);
	pod_tags_init(&app->tags);
}

void pod_app_deinit(struct pod_app *app)
{
	if (!app)
		return;
	strv_deinit(&app->exec);
	strv_deinit(&app->env);
	strv_deinit(&app->groups);
	strv_deinit(&app->pre_start);
	strv_deinit(&app->post_stop);
	isolators_deinit(&app->isolators);
	pod_ports_deinit(&app->ports);
	volume_mounts_deinit(&app->points);
	volume_mounts_deinit(&app->mounts);
	volumes_deinit(&app->volumes);
	pod_tags_deinit(&app->tags);
}

void pod_manifest_init(struct pod_manifest *m)
{
	*m = (struct pod_manifest){ 0 };
	strv_init(&m->sysctls, SYSCTLS_MAX);
	pod_tags_init(&m->tags);
}

void pod_manifest_deinit(struct pod_manifest *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_apps; i++)
		pod_app_deinit(&m->apps[i]);
	free(m->apps);
	strv_deinit(&m->sysctls);
	pod_ports_deinit(&m->ports);
	volumes_deinit(&m->volumes);
	pod_tags_deinit(&m->tags);
	pod_manifest_init(m);
}

const struct pod_app *pod_manifest_find(const struct pod_manifest *m, const char *name)
{
	for (size_t i = 0; i < m->n_apps; i++)
		if (strcmp(m->apps[i].name, name) == 0)
			return &m->apps[i];
	return NULL;
}

/* Whether an app has @v, and if @writes, so that it may write to it. */
/* An app's own volume of the same name is another one. */
static bool has_volume(const struct pod_manifest *m, const struct volume *v, bool writes)
{
	for (size_t i = 0; i < m->n_apps; i++) {
		const struct volume_mounts *mounts = &m->apps[i].mounts;
		for (size_t k = 0; k < mounts->n; k++)
			if (pod_manifest_volume(m, &m->apps[i], mounts->v[k].volume) == v &&
			    !(writes && mounts->v[k].read_only))
				return true;
	}
	return false;
}

bool pod_manifest_uses_volume(const struct pod_manifest *m, const struct volume *v)
{
	return m->is_mutable || has_volume(m, v, false);
}

bool pod_manifest_only_reads_volume(const struct pod_manifest *m, const struct volume *v)
{
	return v->read_only || (!m->is_mutable && !has_volume(m, v, true));
}

const struct volume *pod_manifest_volume(const struct pod_manifest *m, const struct pod_app *app,
					 const char *name)
{
	const struct volume *own = volumes_find(&app->volumes, name);
	return own ? own : volumes_find(&m->volumes, name);
}

int pod_manifest_add(struct pod_manifest *m, struct pod_app *app)
{
	if (m->n_apps >= AGENT_APPS_MAX)
		return -E2BIG;
	if (pod_manifest_find(m, app->name))
		return -EEXIST;
	struct pod_app *apps = reallocarray(m->apps, m->n_apps + 1, sizeof(*apps));
	if (!apps)
		return -ENOMEM;
	m->apps = apps;
	m->apps[m->n_apps++] = *app;
	pod_app_init(app);
	return 0;
}

int pod_manifest_remove(struct pod_manifest *m, const char *name)
{
	for (size_t i = 0; i < m->n_apps; i++) {
		if (strcmp(m->apps[i].name, name) != 0)
			continue;
		pod_app_deinit(&m->apps[i]);
		m->n_apps--;
		memmove(&m->apps[i], &m->apps[i + 1], (m->n_apps - i) * sizeof(*m->apps));
		return 0;
	}
	return -ENOENT;
}

static const char *const exit_policies[POD_EXIT_COUNT_] = {
	[POD_EXIT_ANY_FAILURE] = "any-failure",
	[POD_EXIT_ALL_EXITED] = "all-exited",
	[POD_EXIT_NEVER] = "never",
};

int pod_exit_policy_parse(const char *s, enum pod_exit_policy *ret)
{
	for (int i = 0; i < POD_EXIT_COUNT_; i++) {
		if (exit_policies[i] && strcmp(s, exit_policies[i]) == 0) {
			*ret = (enum pod_exit_policy)i;
			return 0;
		}
	}
	return -EINVAL;
}

enum pod_exit_policy pod_manifest_exit_policy(const struct pod_manifest *m)
{
	if (m->exit_policy != POD_EXIT_DEFAULT)
		return m->exit_policy;
	return m->is_mutable ? POD_EXIT_NEVER : POD_EXIT_ANY_FAILURE;
}

/* Adds {"name": ..., "value": ...} to @list. */
static int add_pair(struct json_object *list, const char *name, const char *value)
{
	cleanup_json struct json_object *pair = json_object_new_object();
	int r = json_put_str(pair, "name", name);
	if (r == 0)
		r = json_put_str(pair, "value", value);
	return r < 0 ? r : json_append(list, TAKE_PTR(pair));
}

/* Adds the notes as they are. */
static int add_notes(struct json_object *list, const struct strv *notes)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < notes->n; i++) {
		char name[POD_TAG_NAME_MAX + 1];
		size_t len = strcspn(notes->v[i], "=");
		if (len > POD_TAG_NAME_MAX || notes->v[i][len] != '=')
			continue; /* pod_tags_add() lets none pass */
		memcpy(name, notes->v[i], len);
		name[len] = '\0';
		r = add_pair(list, name, notes->v[i] + len + 1);
	}
	return r;
}

/* Makes @list the annotations of @obj unless it is empty. */
static int put_list(struct json_object *obj, struct json_object **list)
{
	if (json_object_array_length(*list) == 0)
		return 0;
	return json_put(obj, "annotations", TAKE_PTR(*list));
}

/* Adds the annotations to @obj, if there are any. */
static int put_annotations(struct json_object *obj, const struct pod_manifest *m)
{
	cleanup_json struct json_object *list = json_object_new_array();
	int r = list ? 0 : -ENOMEM;
	if (r == 0 && m->is_mutable)
		r = add_pair(list, POD_ANN_MUTABLE, "true");
	if (r == 0 && m->exit_policy != POD_EXIT_DEFAULT)
		r = add_pair(list, POD_ANN_EXIT_POLICY, exit_policies[m->exit_policy]);
	if (r == 0 && m->hostname[0])
		r = add_pair(list, POD_ANN_HOSTNAME, m->hostname);
	if (r == 0 && m->private_users)
		r = add_pair(list, POD_ANN_USERS, "true");
	if (r == 0)
		r = add_notes(list, &m->tags.notes);
	return r < 0 ? r : put_list(obj, &list);
}

/* [{"name": ..., "value": ...}, ...] from "NAME=value" strings. */
static struct json_object *format_env(const struct strv *env)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; list && i < env->n; i++) {
		size_t len = strcspn(env->v[i], "=");
		const char *value = env->v[i] + len + (env->v[i][len] == '=');
		struct json_object *name = json_object_new_string_len(env->v[i], (int)len);
		if (json_append(list, json_make("name", name, "value",
						json_object_new_string(value), NULL)) < 0)
			return NULL;
	}
	return TAKE_PTR(list);
}

void pod_app_image_id(const struct pod_app *app, char out[POD_IMAGE_ID_MAX + 1])
{
	memcpy(out, app->image_id, POD_IMAGE_ID_MAX + 1);
	if (!app->image_digest[0])
		return;
	memcpy(out, app->image_digest, POD_IMAGE_ID_MAX + 1);
	out[strcspn(out, ":")] = '-';
}

/* Adds the numbers of @groups as a member, unless there are none. */
static int put_groups(struct json_object *run, const struct strv *groups)
{
	cleanup_json struct json_object *list = json_object_new_array();
	if (groups->n == 0)
		return 0;
	for (size_t i = 0; list && i < groups->n; i++) {
		uint64_t n;
		if (num_parse_u64(groups->v[i], POD_GROUP_MAX, &n) < 0)
			return -EINVAL;
		if (json_append(list, json_object_new_int64((int64_t)n)) < 0)
			return -ENOMEM;
	}
	return json_put(run, "supplementaryGIDs", TAKE_PTR(list));
}

static int add_handler(struct json_object *list, const char *name, const struct strv *exec)
{
	if (exec->n == 0)
		return 0;
	cleanup_json struct json_object *handler = json_object_new_object();
	if (json_put_str(handler, "name", name) < 0 || json_put_strv(handler, "exec", exec) < 0)
		return -ENOMEM;
	return json_append(list, TAKE_PTR(handler));
}

/* Adds the event handlers as a member, unless there are none. */
static int put_handlers(struct json_object *run, const struct pod_app *app)
{
	cleanup_json struct json_object *list = json_object_new_array();
	if (app->pre_start.n == 0 && app->post_stop.n == 0)
		return 0;
	if (add_handler(list, "pre-start", &app->pre_start) < 0 ||
	    add_handler(list, "post-stop", &app->post_stop) < 0)
		return -ENOMEM;
	return json_put(run, HANDLERS_MEMBER, TAKE_PTR(list));
}

static struct json_object *format_run(const struct pod_app *app)
{
	cleanup_json struct json_object *run = json_object_new_object();
	const char *user = app->user[0] ? app->user : "0";
	if (!run || json_put_strv(run, "exec", &app->exec) < 0 ||
	    json_put_str(run, "user", user) < 0 ||
	    json_put_str(run, "group", app->group[0] ? app->group : user) < 0 ||
	    json_put_str(run, "workingDirectory", app->cwd) < 0 ||
	    json_put(run, "environment", format_env(&app->env)) < 0 || put_handlers(run, app) < 0 ||
	    put_groups(run, &app->groups) < 0 || isolators_write(&app->isolators, run) < 0 ||
	    app_ports_write(&app->ports, run) < 0 || mount_points_write(&app->points, run) < 0 ||
	    pod_tags_write(&app->tags, run) < 0)
		return NULL;
	return TAKE_PTR(run);
}

/* Adds where the streams go, unless that is the default. */
static int add_streams(struct json_object *list, const struct stream_modes *m)
{
	const struct {
		const char *name;
		enum stream_mode mode;
	} pairs[] = {
		{ STREAM_ANN_STDIN, m->in },
		{ STREAM_ANN_STDOUT, m->out },
		{ STREAM_ANN_STDERR, m->err },
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(pairs); i++)
		if (pairs[i].mode != STREAM_MODE_DEFAULT)
			r = add_pair(list, pairs[i].name, stream_mode_name(pairs[i].mode));
	return r;
}

static int add_entrypoint(struct json_object *list, const struct pod_app *app)
{
	char number[24]; /* 20 digits at most */
	if (app->n_entrypoint >= app->exec.n)
		return 0;
	snprintf(number, sizeof(number), "%zu", app->n_entrypoint);
	return add_pair(list, POD_ANN_ENTRYPOINT, number);
}

static int add_working_dir(struct json_object *list, const struct pod_app *app)
{
	return app->cwd_is_there ? add_pair(list, POD_ANN_WORKING_DIR, "given") : 0;
}

static int add_unset(struct json_object *list, const struct pod_app *app)
{
	if (app->user[0] && app->group[0])
		return 0;
	return add_pair(list, POD_ANN_UNSET,
			app->user[0]    ? "group"
			: app->group[0] ? "user"
					: "user,group");
}

/* What of its image the member "image" does not say. */
static int add_image(struct json_object *list, const struct pod_app *app)
{
	struct pod_image_name parts;
	pod_image_split(app->image_name, &parts);
	int r = parts.whole ? 0 : add_pair(list, POD_ANN_IMAGE_NAME, app->image_name);
	if (r == 0 && app->image_digest[0])
		r = add_pair(list, POD_ANN_IMAGE_DIGEST, app->image_digest);
	return r;
}

/* Adds the annotations of an app to @obj, if there are any. */
static int put_app_annotations(struct json_object *obj, const struct pod_app *app)
{
	cleanup_json struct json_object *list = json_object_new_array();
	int r = list ? add_streams(list, &app->streams) : -ENOMEM;
	if (r == 0)
		r = add_entrypoint(list, app);
	if (r == 0)
		r = add_working_dir(list, app);
	if (r == 0)
		r = add_unset(list, app);
	if (r == 0)
		r = add_image(list, app);
	if (r == 0)
		r = add_notes(list, &app->tags.notes);
	return r < 0 ? r : put_list(obj, &list);
}

static struct json_object *format_app(const struct pod_app *app)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", app->name) < 0 ||
	    json_put(obj, "image", pod_image_format(app->image_id, app->image_name)) < 0 ||
	    json_put(obj, "app", format_run(app)) < 0 ||
	    (app->read_only_root && json_put_bool(obj, "readOnlyRootFS", true) < 0) ||
	    app_mounts_write(&app->mounts, &app->volumes, obj) < 0 ||
	    put_app_annotations(obj, app) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

static bool list_is_utf8(const struct strv *sv)
{
	for (size_t i = 0; i < sv->n; i++)
		if (!str_is_utf8(sv->v[i]))
			return false;
	return true;
}

/* True if all texts of @app that somebody else chose can be written as JSON. */
static bool app_is_utf8(const struct pod_app *app)
{
	return str_is_utf8(app->name) && str_is_utf8(app->image_id) &&
	       str_is_utf8(app->image_digest) && str_is_utf8(app->image_name) &&
	       str_is_utf8(app->user) && str_is_utf8(app->group) && str_is_utf8(app->cwd) &&
	       list_is_utf8(&app->exec) && list_is_utf8(&app->env);
}

static int format_apps(const struct pod_manifest *m, struct json_object **ret)
{
	cleanup_json struct json_object *apps = json_object_new_array();
	for (size_t i = 0; i < m->n_apps; i++) {
		if (!app_is_utf8(&m->apps[i]))
			return -EILSEQ;
		if (json_append(apps, format_app(&m->apps[i])) < 0)
			return -ENOMEM;
	}
	*ret = TAKE_PTR(apps);
	return 0;
}

static int format_text(struct json_object *obj, char **ret)
{
	cleanup_buf struct buf out;
	buf_init(&out, POD_MANIFEST_SIZE_MAX);
	int r = json_write(obj, true, &out);
	if (r == 0)
		r = buf_puts(&out, "\n");
	if (r < 0)
		return r;
	char *copy = buf_take_string(&out);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int pod_manifest_format(const struct pod_manifest *m, char **ret)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_json struct json_object *apps = NULL;
	int r = format_apps(m, &apps);
	if (r == 0)
		r = json_put_str(obj, "acVersion", APPC_VERSION);
	if (r == 0)
		r = json_put_str(obj, "acKind", "PodManifest");
	if (r == 0)
		r = json_put(obj, "apps", TAKE_PTR(apps));
	if (r == 0)
		r = pod_ports_write(&m->ports, obj);
	if (r == 0)
		r = volumes_write(&m->volumes, obj);
	if (r == 0)
		r = sysctls_write(&m->sysctls, obj);
	if (r == 0)
		r = put_annotations(obj, m);
	if (r == 0)
		r = pod_tags_write(&m->tags, obj);
	return r < 0 ? r : format_text(obj, ret);
}

/* Copies a string member; an absent one stays empty unless @required. */
static int read_text(struct json_object *obj, const char *key, bool required, char *dst,
		     size_t size, struct err *e)
{
	const char *s = "";
	int r = json_get_str(obj, key, size - 1, &s);
	if (r < 0 && (r != -ENOENT || required))
		return err_set(e, -EBADMSG, "\"%s\" is missing, no string or longer than %zu bytes",
			       key, size - 1);
	return str_copy(dst, size, s);
}

int pod_manifest_read_env(struct json_object *run, struct strv *env, struct err *e)
{
	struct json_object *list = json_member(run, "environment");
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > AGENT_ENV_MAX)
		return err_set(e, -EBADMSG, "\"environment\" is not a list of at most %d variables",
			       AGENT_ENV_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		const char *name, *value;
		if (json_get_str(pair, "name", AGENT_STRING_MAX, &name) < 0 || !*name ||
		    strchr(name, '=') ||
		    json_get_str(pair, "value", AGENT_STRING_MAX, &value) < 0 ||
		    strlen(name) + strlen("=") + strlen(value) > AGENT_STRING_MAX)
			return err_set(
				e, -EBADMSG,
				"\"environment\" member %zu is not a variable (of at most %d "
				"bytes with its name)",
				i, AGENT_STRING_MAX);
		int r = strv_addf(env, "%s=%s", name, value);
		if (r < 0)
			return err_sys(e, r, "\"environment\"");
	}
	return 0;
}

int pod_app_add_group(struct strv *groups, const char *text, struct err *e)
{
	uint64_t n;
	if (num_parse_u64(text, POD_GROUP_MAX, &n) < 0)
		return err_set(e, -EINVAL, "\"%.80s\" is not a number of a group", text);
	int r = strv_addf(groups, "%ju", (uintmax_t)n);
	return r < 0 ? err_sys(e, r, "at most %zu groups", groups->max) : 0;
}

int pod_manifest_read_groups(struct json_object *run, struct strv *groups, struct err *e)
{
	static const char key[] = "supplementaryGIDs";
	struct json_object *list = json_member(run, key);
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > AGENT_GROUPS_MAX)
		return err_set(e, -EBADMSG, "\"%s\" is not a list of at most %d numbers", key,
			       AGENT_GROUPS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *n = json_object_array_get_idx(list, i);
		if (!json_object_is_type(n, json_type_int) || json_object_get_int64(n) < 0 ||
		    json_object_get_uint64(n) > POD_GROUP_MAX)
			return err_set(e, -EBADMSG, "\"%s\" member %zu is not a number of a group",
				       key, i);
		int r = strv_addf(groups, "%ju", (uintmax_t)json_object_get_uint64(n));
		if (r < 0)
			return err_sys(e, r, "\"%s\"", key);
	}
	return 0;
}

static int read_handler(struct json_object *handler, struct strv *pre_start, struct strv *post_stop,
			struct err *e)
{
	const char *name;
	if (json_get_str(handler, "name", AGENT_NAME_MAX, &name) < 0)
		return err_set(e, -EBADMSG, "an event handler has no name");
	bool pre = strcmp(name, "pre-start") == 0;
	if (!pre && strcmp(name, "post-stop") != 0)
		return err_set(
			e, -EOPNOTSUPP,
			"event handler \"%s\" is not supported (pre-start and post-stop are)",
			name);
	struct strv *exec = pre ? pre_start : post_stop;
	if (exec->n > 0)
		return err_set(e, -EBADMSG, "event handler \"%s\" is given twice", name);
	int r = json_get_strv(handler, "exec", AGENT_STRING_MAX, exec);
	if (r == -ENOMEM)
		return err_sys(e, r, "event handler \"%s\"", name);
	if (r < 0 || exec->n == 0 || !exec->v[0][0])
		return err_set(e, -EBADMSG,
			       "event handler \"%s\": \"exec\" is not a list of 1 to %d arguments "
			       "of at most %d bytes",
			       name, AGENT_EXEC_MAX, AGENT_STRING_MAX);
	return 0;
}

int pod_manifest_read_handlers(struct json_object *run, struct strv *pre_start,
			       struct strv *post_stop, struct err *e)
{
	struct json_object *list = json_member(run, HANDLERS_MEMBER);
	int r = 0;
	if (list && !json_object_is_type(list, json_type_array))
		return err_set(e, -EBADMSG, "\"" HANDLERS_MEMBER "\" is not a list");
	for (size_t i = 0; r == 0 && list && i < json_object_array_length(list); i++)
		r = read_handler(json_object_array_get_idx(list, i), pre_start, post_stop, e);
	return r;
}

static int read_run(struct json_object *run, struct pod_app *app, struct err *e)
{
	if (json_get_strv(run, "exec", AGENT_STRING_MAX, &app->exec) < 0 || app->exec.n == 0)
		return err_set(e, -EBADMSG,
			       "\"exec\" is not a list of 1 to %d arguments of at most %d bytes",
			       AGENT_EXEC_MAX, AGENT_STRING_MAX);
	int r = read_text(run, "user", false, app->user, sizeof(app->user), e);
	if (r == 0)
		r = read_text(run, "group", false, app->group, sizeof(app->group), e);
	if (r == 0)
		r = read_text(run, "workingDirectory", false, app->cwd, sizeof(app->cwd), e);
	if (r == 0)
		r = pod_manifest_read_env(run, &app->env, e);
	if (r == 0)
		r = pod_manifest_read_groups(run, &app->groups, e);
	if (r == 0)
		r = pod_tags_read(run, &app->tags, e);
	if (r == 0)
		r = pod_manifest_read_handlers(run, &app->pre_start, &app->post_stop, e);
	if (r == 0)
		r = app_ports_read(run, &app->ports, e);
	if (r == 0)
		r = mount_points_read(run, &app->points, e);
	return r < 0 ? r : isolators_read(run, &app->isolators, e);
}

/*
 * Keeps an annotation that is not husk's; one that is too long or there twice means nothing here.
 */
static int take_note(struct pod_tags *tags, const char *name, const char *value)
{
	char text[POD_TAG_NAME_MAX + POD_TAG_VALUE_MAX + 2];
	if (str_starts(name, POD_ANN_PREFIX) || strchr(name, '='))
		return 0;
	int n = snprintf(text, sizeof(text), "%s=%s", name, value);
	if (n < 0 || (size_t)n >= sizeof(text))
		return 0;
	return pod_tags_add(&tags->notes, text, NULL) == -ENOMEM ? -ENOMEM : 0;
}

static int take_bool(const char *value, bool *ret)
{
	*ret = strcmp(value, "true") == 0;
	return *ret || strcmp(value, "false") == 0 ? 0 : -EINVAL;
}

/* Takes one annotation of the pod. */
static int take_pod_annotation(void *ctx, const char *name, const char *value)
{
	struct pod_manifest *m = ctx;
	if (strcmp(name, POD_ANN_HOSTNAME) == 0)
		return str_copy(m->hostname, sizeof(m->hostname), value);
	if (strcmp(name, POD_ANN_EXIT_POLICY) == 0)
		return pod_exit_policy_parse(value, &m->exit_policy);
	if (strcmp(name, POD_ANN_MUTABLE) == 0)
		return take_bool(value, &m->is_mutable);
	if (strcmp(name, POD_ANN_USERS) == 0)
		return take_bool(value, &m->private_users);
	return take_note(&m->tags, name, value);
}

static bool is_stream_annotation(const char *name)
{
	return strcmp(name, STREAM_ANN_STDIN) == 0 || strcmp(name, STREAM_ANN_STDOUT) == 0 ||
	       strcmp(name, STREAM_ANN_STDERR) == 0;
}

static int take_stream_annotation(void *ctx, const char *name, const char *value)
{
	return is_stream_annotation(name) ? stream_modes_set(ctx, name, value) : 0;
}

/* Takes one annotation of an app that is not about its streams. */
static int take_app_annotation(void *ctx, const char *name, const char *value)
{
	struct pod_app *app = ctx;
	uint64_t n = 0;
	if (strcmp(name, POD_ANN_IMAGE_NAME) == 0)
		return str_copy(app->image_name, sizeof(app->image_name), value);
	if (strcmp(name, POD_ANN_IMAGE_DIGEST) == 0)
		return str_copy(app->image_digest, sizeof(app->image_digest), value);
	if (is_stream_annotation(name))
		return 0;
	if (strcmp(name, POD_ANN_WORKING_DIR) == 0) {
		app->cwd_is_there = true;
		return strcmp(value, "given") == 0 ? 0 : -EBADMSG;
	}
	if (strcmp(name, POD_ANN_ENTRYPOINT) != 0)
		return take_note(&app->tags, name, value);
	int r = num_parse_u64(value, app->exec.n, &n);
	app->n_entrypoint = (size_t)n;
	return r;
}

/* Hands the members of "annotations" of @obj, if it has any, to @take. 0, or -EBADMSG and @e. */
static int read_annotations(struct json_object *obj,
			    int (*take)(void *ctx, const char *name, const char *value), void *ctx,
			    struct err *e)
{
	struct json_object *list = json_member(obj, "annotations");
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > POD_ANNOTATIONS_MAX)
		return err_set(e, -EBADMSG, "\"annotations\" is not a list of at most %d pairs",
			       POD_ANNOTATIONS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		const char *name, *value;
		if (json_get_str(pair, "name", AGENT_STRING_MAX, &name) < 0 ||
		    json_get_str(pair, "value", AGENT_STRING_MAX, &value) < 0)
			return err_set(e, -EBADMSG, "\"annotations\" member %zu is not a pair", i);
		if (take(ctx, name, value) < 0)
			return err_set(e, -EBADMSG, "annotation \"%.80s\" has the value \"%.80s\"",
				       name, value);
	}
	return 0;
}

int pod_manifest_read_streams(struct json_object *entry, struct stream_modes *ret, struct err *e)
{
	struct stream_modes m = { 0 };
	int r = read_annotations(entry, take_stream_annotation, &m, e);
	if (r == 0 && !stream_modes_are_valid(&m))
		r = err_set(e, -EBADMSG, "a terminal is all of stdin, stdout and stderr");
	if (r == 0)
		*ret = m;
	return r;
}

struct unset {
	bool user, group;
};

static int take_unset(void *ctx, const char *name, const char *value)
{
	struct unset *u = ctx;
	if (strcmp(name, POD_ANN_UNSET) != 0)
		return 0;
	u->user = str_starts(value, "user");
	u->group = str_ends(value, "group");
	bool known = strcmp(value, "user") == 0 || strcmp(value, "group") == 0 ||
		     strcmp(value, "user,group") == 0;
	return known ? 0 : -EINVAL;
}

int pod_manifest_read_unset(struct json_object *entry, bool *ret_user, bool *ret_group,
			    struct err *e)
{
	struct unset u = { false, false };
	int r = read_annotations(entry, take_unset, &u, e);
	if (r < 0)
		return r;
	*ret_user = u.user;
	*ret_group = u.group;
	return 0;
}

/* What the annotations of an app say that was read. */
static int read_notes(struct json_object *obj, struct pod_app *app, struct err *e)
{
	bool user = false, group = false;
	int r = read_annotations(obj, take_app_annotation, app, e);
	if (r == 0)
		r = pod_manifest_read_unset(obj, &user, &group, e);
	if (user)
		app->user[0] = '\0';
	if (group)
		app->group[0] = '\0';
	return r;
}

static int read_app(struct json_object *obj, struct pod_app *app, struct err *e)
{
	int r = read_text(obj, "name", true, app->name, sizeof(app->name), e);
	if (r == 0 && !agent_name_is_valid(app->name))
		r = err_set(e, -EBADMSG, "\"%s\" is not an app name", app->name);
	if (r == 0)
		r = pod_image_read(json_member(obj, "image"), app->image_id, app->image_name, e);
	if (r < 0)
		return r;
	r = json_get_bool(obj, "readOnlyRootFS", &app->read_only_root);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"readOnlyRootFS\" is neither true nor false");
	r = pod_manifest_read_streams(obj, &app->streams, e);
	if (r == 0)
		r = read_run(json_member(obj, "app"), app, e);
	if (r == 0)
		r = app_mounts_read(obj, &app->mounts, &app->volumes, e);
	app->n_entrypoint = app->exec.n;
	return r < 0 ? r : read_notes(obj, app, e);
}

static int read_apps(struct json_object *list, struct pod_manifest *m, struct err *e)
{
	if (!list || !json_object_is_type(list, json_type_array))
		return err_set(e, -EBADMSG, "\"apps\" is not a list");
	size_t n = json_object_array_length(list);
	size_t min = m->is_mutable ? 0 : 1;
	if (n < min || n > AGENT_APPS_MAX)
		return err_set(e, -EBADMSG, "\"apps\" has %zu members, not %zu to %d", n, min,
			       AGENT_APPS_MAX);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(pod_app_deinit) struct pod_app app;
		pod_app_init(&app);
		int r = read_app(json_object_array_get_idx(list, i), &app, e);
		if (r < 0) {
			err_context(e, "app %zu", i);
			return r;
		}
		r = pod_manifest_add(m, &app);
		if (r < 0)
			return err_sys(e, r, "app \"%s\"", app.name);
	}
	return 0;
}

/* Here nothing is looked for by its name any more. */
static int read_ports(struct json_object *obj, struct pod_manifest *m, struct err *e)
{
	int r = pod_ports_read(obj, &m->ports, e);
	for (size_t i = 0; r == 0 && i < m->ports.n; i++)
		if (m->ports.v[i].port == 0)
			r = err_set(e, -EBADMSG, "\"ports\" member %zu has no \"podPort\"", i);
	return r;
}

static int check_mount(const struct volume *v, const struct volume_mount *mount, struct err *e)
{
	if (!v)
		return err_set(e, -EBADMSG, "dangling mount point \"%s\": volume \"%s\" not found",
			       mount->path, mount->volume);
	return volume_path_is_root(mount->path) && v->kind != VOLUME_HOST
		       ? err_set(e, -EBADMSG,
				 "volume \"%s\" is no directory of the host, and so cannot be the "
				 "root directory of an app",
				 mount->volume)
		       : 0;
}

/* What an app mounts is there. */
static int check_mounts(const struct pod_manifest *m, struct err *e)
{
	int r = 0;
	for (size_t i = 0; i < m->n_apps; i++) {
		const struct pod_app *app = &m->apps[i];
		for (size_t k = 0; r == 0 && k < app->mounts.n; k++) {
			const struct volume_mount *mount = &app->mounts.v[k];
			r = check_mount(pod_manifest_volume(m, app, mount->volume), mount, e);
		}
	}
	return r;
}

int pod_manifest_json(const char *text, size_t len, struct json_object **ret)
{
	if (len > POD_MANIFEST_SIZE_MAX ||
	    json_count_containers(text, len) > POD_MANIFEST_CONTAINERS_MAX)
		return -EBADMSG;
	return json_parse(text, len, ret);
}

/* What goes into a log that others read is not for who attaches. */
static void direct_logs(struct pod_manifest *m)
{
	for (size_t i = 0; i < m->n_apps; i++) {
		struct stream_modes *to = &m->apps[i].streams;
		if (!pod_log_place(&m->tags, &m->apps[i].tags).dir)
			continue;
		to->out = to->out == STREAM_MODE_STREAM ? STREAM_MODE_LOG : to->out;
		to->err = to->err == STREAM_MODE_STREAM ? STREAM_MODE_LOG : to->err;
	}
}

int pod_manifest_parse(const char *text, size_t len, struct pod_manifest *ret, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	int r = pod_manifest_json(text, len, &obj);
	if (r < 0)
		return err_set(e, r, "pod manifest: not valid JSON");
	const char *kind;
	if (json_get_str(obj, "acKind", 32, &kind) < 0 || strcmp(kind, "PodManifest") != 0)
		return err_set(e, -EBADMSG, "pod manifest: \"acKind\" is not \"PodManifest\"");
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	pod_manifest_init(&m);
	r = read_annotations(obj, take_pod_annotation, &m, e);
	if (r == 0)
		r = pod_tags_read(obj, &m.tags, e);
	if (r == 0)
		r = read_ports(obj, &m, e);
	if (r == 0)
		r = volumes_read(obj, &m.volumes, e);
	if (r == 0)
		r = sysctls_read(obj, &m.sysctls, e);
	if (r == 0)
		r = read_apps(json_member(obj, "apps"), &m, e);
	if (r == 0)
		r = check_mounts(&m, e);
	if (r < 0) {
		err_context(e, "pod manifest");
		return r;
	}
	direct_logs(&m);
	*ret = m;
	pod_manifest_init(&m);
	return 0;
}
