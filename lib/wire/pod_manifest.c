/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/base/num.h"

#define APPC_VERSION "0.8.11"

void pod_app_init(struct pod_app *app)
{
	memset(app, 0, sizeof(*app));
	strv_init(&app->exec, AGENT_EXEC_MAX);
	strv_init(&app->env, AGENT_ENV_MAX);
	strv_init(&app->groups, AGENT_GROUPS_MAX);
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
	isolators_deinit(&app->isolators);
	pod_tags_deinit(&app->tags);
}

void pod_manifest_init(struct pod_manifest *m)
{
	*m = (struct pod_manifest){ 0 };
	pod_tags_init(&m->tags);
}

void pod_manifest_deinit(struct pod_manifest *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_apps; i++)
		pod_app_deinit(&m->apps[i]);
	free(m->apps);
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
	if (r == 0 && json_object_array_add(list, pair) < 0)
		r = -ENOMEM;
	if (r == 0)
		pair = NULL; /* the list has it now */
	return r;
}

/* Adds the annotations to @obj, if there are any. */
static int put_annotations(struct json_object *obj, const struct pod_manifest *m)
{
	if (!m->is_mutable && m->exit_policy == POD_EXIT_DEFAULT)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	int r = list ? 0 : -ENOMEM;
	if (r == 0 && m->is_mutable)
		r = add_pair(list, POD_ANN_MUTABLE, "true");
	if (r == 0 && m->exit_policy != POD_EXIT_DEFAULT)
		r = add_pair(list, POD_ANN_EXIT_POLICY, exit_policies[m->exit_policy]);
	return r < 0 ? r : json_put(obj, "annotations", TAKE_PTR(list));
}

/* [{"name": ..., "value": ...}, ...] from "NAME=value" strings. */
static struct json_object *format_env(const struct strv *env)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; list && i < env->n; i++) {
		size_t len = strcspn(env->v[i], "=");
		const char *value = env->v[i] + len + (env->v[i][len] == '=');
		cleanup_json struct json_object *pair = json_object_new_object();
		if (json_put(pair, "name", json_object_new_string_len(env->v[i], (int)len)) < 0 ||
		    json_put_str(pair, "value", value) < 0)
			return NULL;
		if (json_object_array_add(list, pair) < 0)
			return NULL;
		pair = NULL; /* the list has it now */
	}
	return TAKE_PTR(list);
}

static struct json_object *format_image(const struct pod_app *app)
{
	cleanup_json struct json_object *image = json_object_new_object();
	if (json_put_str(image, "id", app->image_id) < 0)
		return NULL;
	if (app->image_name[0] && json_put_str(image, "name", app->image_name) < 0)
		return NULL;
	return TAKE_PTR(image);
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
		cleanup_json struct json_object *number = json_object_new_int64((int64_t)n);
		if (!number || json_object_array_add(list, number) < 0)
			return -ENOMEM;
		number = NULL; /* the list has it now */
	}
	return json_put(run, "supplementaryGIDs", TAKE_PTR(list));
}

static struct json_object *format_run(const struct pod_app *app)
{
	cleanup_json struct json_object *run = json_object_new_object();
	if (!run || json_put_strv(run, "exec", &app->exec) < 0 ||
	    json_put_str(run, "user", app->user) < 0 ||
	    json_put_str(run, "group", app->group) < 0 ||
	    json_put_str(run, "workingDirectory", app->cwd) < 0 ||
	    json_put(run, "environment", format_env(&app->env)) < 0 ||
	    put_groups(run, &app->groups) < 0 || isolators_write(&app->isolators, run) < 0 ||
	    pod_tags_write(&app->tags, run) < 0)
		return NULL;
	return TAKE_PTR(run);
}

/* Adds the annotations of an app to @obj, if there are any. */
static int put_streams(struct json_object *obj, const struct stream_modes *m)
{
	const struct {
		const char *name;
		enum stream_mode mode;
	} pairs[] = {
		{ STREAM_ANN_STDIN, m->in },
		{ STREAM_ANN_STDOUT, m->out },
		{ STREAM_ANN_STDERR, m->err },
	};
	cleanup_json struct json_object *list = json_object_new_array();
	int r = list ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(pairs); i++)
		if (pairs[i].mode != STREAM_MODE_DEFAULT)
			r = add_pair(list, pairs[i].name, stream_mode_name(pairs[i].mode));
	if (r < 0 || json_object_array_length(list) == 0)
		return r;
	return json_put(obj, "annotations", TAKE_PTR(list));
}

static struct json_object *format_app(const struct pod_app *app)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", app->name) < 0 ||
	    json_put(obj, "image", format_image(app)) < 0 ||
	    json_put(obj, "app", format_run(app)) < 0 ||
	    (app->read_only_root && json_put_bool(obj, "readOnlyRootFS", true) < 0) ||
	    put_streams(obj, &app->streams) < 0)
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
	       str_is_utf8(app->image_name) && str_is_utf8(app->user) && str_is_utf8(app->group) &&
	       str_is_utf8(app->cwd) && list_is_utf8(&app->exec) && list_is_utf8(&app->env);
}

static int format_apps(const struct pod_manifest *m, struct json_object **ret)
{
	cleanup_json struct json_object *apps = json_object_new_array();
	if (!apps)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_apps; i++) {
		if (!app_is_utf8(&m->apps[i]))
			return -EILSEQ;
		cleanup_json struct json_object *app = format_app(&m->apps[i]);
		if (!app || json_object_array_add(apps, app) < 0)
			return -ENOMEM;
		app = NULL; /* the list has it now */
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
		return err_set(e, -EBADMSG, "\"environment\" is no list of at most %d variables",
			       AGENT_ENV_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		const char *name, *value;
		if (json_get_str(pair, "name", AGENT_STRING_MAX / 2, &name) < 0 || !*name ||
		    strchr(name, '=') ||
		    json_get_str(pair, "value", AGENT_STRING_MAX / 2, &value) < 0)
			return err_set(e, -EBADMSG, "\"environment\" member %zu is no variable", i);
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
		return err_set(e, -EINVAL, "\"%.80s\" is no number of a group", text);
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
		return err_set(e, -EBADMSG, "\"%s\" is no list of at most %d numbers", key,
			       AGENT_GROUPS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *n = json_object_array_get_idx(list, i);
		if (!json_object_is_type(n, json_type_int) || json_object_get_int64(n) < 0 ||
		    json_object_get_uint64(n) > POD_GROUP_MAX)
			return err_set(e, -EBADMSG, "\"%s\" member %zu is no number of a group",
				       key, i);
		int r = strv_addf(groups, "%ju", (uintmax_t)json_object_get_uint64(n));
		if (r < 0)
			return err_sys(e, r, "\"%s\"", key);
	}
	return 0;
}

static int read_run(struct json_object *run, struct pod_app *app, struct err *e)
{
	if (json_get_strv(run, "exec", AGENT_STRING_MAX, &app->exec) < 0 || app->exec.n == 0)
		return err_set(e, -EBADMSG, "\"exec\" is no list of 1 to %d arguments",
			       AGENT_EXEC_MAX);
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
	return r < 0 ? r : isolators_read(run, &app->isolators, e);
}

/* Takes one annotation of the pod; others than husk's mean nothing here. */
static int take_pod_annotation(void *ctx, const char *name, const char *value)
{
	struct pod_manifest *m = ctx;
	if (strcmp(name, POD_ANN_EXIT_POLICY) == 0)
		return pod_exit_policy_parse(value, &m->exit_policy);
	if (strcmp(name, POD_ANN_MUTABLE) != 0)
		return 0;
	m->is_mutable = strcmp(value, "true") == 0;
	return m->is_mutable || strcmp(value, "false") == 0 ? 0 : -EINVAL;
}

/* One of an app. */
static int take_app_annotation(void *ctx, const char *name, const char *value)
{
	if (strcmp(name, STREAM_ANN_STDIN) != 0 && strcmp(name, STREAM_ANN_STDOUT) != 0 &&
	    strcmp(name, STREAM_ANN_STDERR) != 0)
		return 0;
	return stream_modes_set(ctx, name, value);
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
		return err_set(e, -EBADMSG, "\"annotations\" is no list of at most %d pairs",
			       POD_ANNOTATIONS_MAX);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		const char *name, *value;
		if (json_get_str(pair, "name", AGENT_STRING_MAX, &name) < 0 ||
		    json_get_str(pair, "value", AGENT_STRING_MAX, &value) < 0)
			return err_set(e, -EBADMSG, "\"annotations\" member %zu is no pair", i);
		if (take(ctx, name, value) < 0)
			return err_set(e, -EBADMSG, "annotation \"%.80s\" has the value \"%.80s\"",
				       name, value);
	}
	return 0;
}

int pod_manifest_read_streams(struct json_object *entry, struct stream_modes *ret, struct err *e)
{
	struct stream_modes m = { 0 };
	int r = read_annotations(entry, take_app_annotation, &m, e);
	if (r == 0 && !stream_modes_are_valid(&m))
		r = err_set(e, -EBADMSG, "a terminal is all of stdin, stdout and stderr");
	if (r == 0)
		*ret = m;
	return r;
}

static int read_app(struct json_object *obj, struct pod_app *app, struct err *e)
{
	struct json_object *image = json_member(obj, "image");
	int r = read_text(obj, "name", true, app->name, sizeof(app->name), e);
	if (r == 0 && !agent_name_is_valid(app->name))
		r = err_set(e, -EBADMSG, "\"%s\" is no app name", app->name);
	if (r == 0)
		r = read_text(image, "id", true, app->image_id, sizeof(app->image_id), e);
	if (r == 0)
		r = read_text(image, "name", false, app->image_name, sizeof(app->image_name), e);
	if (r < 0)
		return r;
	r = json_get_bool(obj, "readOnlyRootFS", &app->read_only_root);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"readOnlyRootFS\" is neither true nor false");
	r = pod_manifest_read_streams(obj, &app->streams, e);
	return r < 0 ? r : read_run(json_member(obj, "app"), app, e);
}

static int read_apps(struct json_object *list, struct pod_manifest *m, struct err *e)
{
	if (!list || !json_object_is_type(list, json_type_array))
		return err_set(e, -EBADMSG, "\"apps\" is no list");
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

int pod_manifest_parse(const char *text, size_t len, struct pod_manifest *ret, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	int r = len > POD_MANIFEST_SIZE_MAX ? -EBADMSG : json_parse(text, len, &obj);
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
		r = read_apps(json_member(obj, "apps"), &m, e);
	if (r < 0) {
		err_context(e, "pod manifest");
		return r;
	}
	*ret = m;
	pod_manifest_init(&m);
	return 0;
}
