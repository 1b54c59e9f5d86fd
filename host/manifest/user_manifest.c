/* SPDX-License-Identifier: Apache-2.0 */
#include "host/manifest/user_manifest.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/pod_manifest.h"

static bool is_empty(struct json_object *value)
{
	return !value || (json_object_is_type(value, json_type_array) &&
			  json_object_array_length(value) == 0);
}

/* A string member, borrowed; NULL if it is absent or empty. */
static int take_text(struct json_object *obj, const char *key, size_t max, const char **ret,
		     struct err *e)
{
	const char *text = NULL;
	int r = json_get_str(obj, key, max, &text);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"%s\" is not a string of at most %zu bytes", key,
			       max);
	*ret = text && *text ? text : NULL;
	return 0;
}

static int take_exec(struct json_object *run, struct app_options *o, struct err *e)
{
	int r = json_get_strv(run, "exec", AGENT_STRING_MAX, &o->args);
	if (r == -ENOMEM)
		return err_sys(e, r, "\"exec\"");
	if (r < 0 || o->args.n == 0)
		return err_set(e, -EBADMSG,
			       "\"exec\" is not a list of 1 to %d arguments of at most %d bytes",
			       AGENT_EXEC_MAX, AGENT_STRING_MAX);
	return 0;
}

static int take_env(struct json_object *run, struct strv *env, struct err *e)
{
	int r = pod_manifest_read_env(run, env, e);
	for (size_t i = 0; r == 0 && i < env->n; i++) {
		size_t len = strcspn(env->v[i], "=");
		for (size_t k = 0; k < i; k++)
			if (strncmp(env->v[k], env->v[i], len + 1) == 0)
				return err_set(e, -EBADMSG, "\"environment\" has \"%.*s\" twice",
					       (int)MIN(len, (size_t)80), env->v[i]);
	}
	return r;
}

static int take_run(struct json_object *run, struct app_options *o, struct err *e)
{
	if (!run)
		return 0; /* then the image says what to run */
	if (!json_object_is_type(run, json_type_object))
		return err_set(e, -EBADMSG, "\"app\" is not an object");
	o->instead_of_image = true;
	int r = take_exec(run, o, e);
	if (r == 0)
		r = take_env(run, &o->env, e);
	if (r == 0)
		r = isolators_read(run, &o->isolators, e);
	o->isolators.wished = 0; /* whoever hands the manifest in asks for all of it */
	if (r == 0)
		r = pod_manifest_read_handlers(run, &o->pre_start, &o->post_stop, e);
	if (r == 0)
		r = pod_tags_read(run, &o->tags, e);
	if (r == 0)
		r = app_ports_read(run, &o->ports, e);
	if (r == 0)
		r = mount_points_read(run, &o->points, e);
	if (r == 0)
		r = pod_manifest_read_groups(run, &o->groups, e);
	if (r == 0)
		r = take_text(run, "user", AGENT_USER_MAX, &o->user, e);
	if (r == 0)
		r = take_text(run, "group", AGENT_USER_MAX, &o->group, e);
	return r < 0 ? r : take_text(run, "workingDirectory", AGENT_PATH_MAX, &o->working_dir, e);
}

/* What names the image: its ID, if there is one, whatever it is called. */
static int take_image(struct json_object *image, const char **ret, struct err *e)
{
	const char *name = NULL, *id = NULL;
	int r = take_text(image, "name", IMAGE_PATH_MAX, &name, e);
	if (r == 0)
		r = take_text(image, "id", POD_IMAGE_ID_MAX, &id, e);
	if (r < 0)
		return r;
	if (!id && !name)
		return err_set(e, -EBADMSG, "\"image.id\" and \"image.name\" are missing");
	if (id && !str_starts(id, "sha512-") && !str_starts(id, "sha256-"))
		return err_set(e, -EBADMSG, "\"image.id\" is \"%.80s\", no ID (sha512-HEX)", id);
	if (!id && !is_empty(json_member(image, "labels")))
		return err_set(e, -EOPNOTSUPP,
			       "\"image.labels\" need an \"image.id\" (or give NAME:VERSION as the "
			       "\"image.name\")");
	*ret = id ? id : name;
	return 0;
}

/* User and group that are only there because a manifest must have them are not wanted. */
static int drop_unset(struct json_object *entry, struct app_options *o, struct err *e)
{
	bool user = false, group = false;
	int r = pod_manifest_read_unset(entry, &user, &group, e);
	if (user)
		o->user = NULL;
	if (group)
		o->group = NULL;
	return r;
}

static int take_app(struct json_object *entry, struct run_request *q, struct err *e)
{
	struct app_options *o = NULL;
	const char *name = NULL, *image = NULL;
	bool read_only = false;
	int r = take_text(entry, "name", AGENT_NAME_MAX, &name, e);
	if (r == 0 && !name)
		r = err_set(e, -EBADMSG, "\"name\" is missing");
	if (r == 0)
		r = take_image(json_member(entry, "image"), &image, e);
	if (r < 0)
		return r;
	r = json_get_bool(entry, "readOnlyRootFS", &read_only);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"readOnlyRootFS\" is neither true nor false");
	r = run_request_add_app(q, image, &o);
	if (r < 0)
		return err_sys(e, r, "at most %d apps", AGENT_APPS_MAX);
	o->read_only_root = read_only;
	r = pod_manifest_read_streams(entry, &o->streams, e);
	if (r < 0)
		return r;
	o->name = name;
	r = app_mounts_read(entry, &o->mounts, &o->volumes, e);
	if (r < 0)
		return r;
	r = take_run(json_member(entry, "app"), o, e);
	return r < 0 ? r : drop_unset(entry, o, e);
}

static int take_apps(struct json_object *list, struct run_request *q, struct err *e)
{
	if (list && !json_object_is_type(list, json_type_array))
		return err_set(e, -EBADMSG, "\"apps\" is not a list");
	if (is_empty(list))
		return err_set(e, -EBADMSG, "pod must contain at least one application");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		int r = take_app(json_object_array_get_idx(list, i), q, e);
		if (r < 0) {
			err_context(e, "app %zu", i);
			return r;
		}
	}
	return 0;
}

int declare_parse(const char *text, size_t len, struct run_request *q, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	const char *kind;
	int r = pod_manifest_json(text, len, &obj);
	if (r < 0)
		return err_set(e, r, "it is not valid JSON of at most %zu bytes",
			       POD_MANIFEST_SIZE_MAX);
	if (json_get_str(obj, "acKind", 32, &kind) < 0 || strcmp(kind, "PodManifest") != 0)
		return err_set(e, -EBADMSG, "\"acKind\" is not \"PodManifest\"");
	r = sysctls_read(obj, &q->sysctls, e);
	if (r == 0)
		r = pod_ports_read(obj, &q->ports, e);
	if (r == 0)
		r = volumes_read(obj, &q->volumes, e);
	if (r == 0)
		r = take_apps(json_member(obj, "apps"), q, e);
	if (r == 0)
		r = pod_tags_read(obj, &q->tags, e);
	json_object_put(q->manifest);
	q->manifest = TAKE_PTR(obj); /* what was taken so far borrows from it */
	return r;
}
