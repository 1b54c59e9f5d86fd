/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/describe.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/signame.h"

#define APPC_VERSION "0.8.11"

#define CREATED "1970-01-01T00:00:00Z" /* equal pods give equal archives */

/* True if JSON can hold all texts of the app. */
static bool is_utf8(const struct pod_app *app)
{
	bool is = str_is_utf8(app->name) && str_is_utf8(app->user) && str_is_utf8(app->group) &&
		  str_is_utf8(app->cwd);
	for (size_t i = 0; i < app->exec.n; i++)
		is = is && str_is_utf8(app->exec.v[i]);
	for (size_t i = 0; i < app->env.n; i++)
		is = is && str_is_utf8(app->env.v[i]);
	return is;
}

/* Appends @obj, which may be NULL, and says what went wrong with @what. */
static int write_document(struct json_object *obj, const char *what, struct buf *out, struct err *e)
{
	int r = obj ? json_write(obj, false, out) : -ENOMEM;
	return r < 0 ? err_sys(e, r, "%s", what) : 0;
}

static int not_utf8(const char *what, struct err *e)
{
	return err_set(e, -EILSEQ, "%s: a text of the app is not UTF-8, so JSON cannot hold it",
		       what);
}

static struct json_object *text(const char *s)
{
	return json_object_new_string(s);
}

/* All that follow return NULL if memory is short. */

/* The list of one member, which is taken over. */
static struct json_object *list_of(struct json_object *member)
{
	cleanup_json struct json_object *list = json_object_new_array();
	return json_append(list, member) == 0 ? TAKE_PTR(list) : NULL;
}

/* The members @from to @to of the list. */
static struct json_object *texts(const struct strv *sv, size_t from, size_t to)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = from; i < to; i++)
		if (json_append(list, text(sv->v[i])) < 0)
			return NULL;
	return TAKE_PTR(list);
}

static struct json_object *make_environment(const struct strv *env)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < env->n; i++) {
		const char *s = env->v[i];
		size_t len = strcspn(s, "=");
		struct json_object *name = json_object_new_string_len(s, (int)len);
		const char *value = s + len + (s[len] == '=');
		if (json_append(list, json_make("name", name, "value", text(value), NULL)) < 0)
			return NULL;
	}
	return TAKE_PTR(list);
}

static struct json_object *make_app(const struct pod_app *app)
{
	/*
	 * appc knows no primary group. Rather than root's, take the one that is usually named
	 * alike.
	 */
	const char *user = app->user[0] ? app->user : "0";
	cleanup_json struct json_object *run =
		json_make("exec", json_list_strv(&app->exec), "user", text(user), "group",
			  text(app->group[0] ? app->group : user), NULL);
	int r = 0;
	if (app->env.n > 0)
		r = json_put(run, "environment", make_environment(&app->env));
	if (r == 0)
		r = app_ports_write(&app->ports, run);
	if (r == 0 && app->cwd[0])
		r = json_put(run, "workingDirectory", text(app->cwd));
	return r == 0 ? TAKE_PTR(run) : NULL;
}

int describe_aci(const struct pod_app *app, struct buf *out, struct err *e)
{
	static const char what[] = "image manifest";
	struct pod_image_name name;
	if (app->exec.n > 0 && !is_utf8(app))
		return not_utf8(what, e);
	pod_image_split(app->image_name, &name);
	cleanup_json struct json_object *obj =
		json_make("acKind", text("ImageManifest"), "acVersion", text(APPC_VERSION), "name",
			  text(name.identifier[0] ? name.identifier : app->name), "labels",
			  pod_image_labels(name.version), NULL);
	/* An image without a command has no app section. */
	int r = app->exec.n > 0 ? json_put(obj, "app", make_app(app)) : 0;
	return write_document(r == 0 ? obj : NULL, what, out, e);
}

/* "80/tcp" for each, also of several in a row; as many as somebody would read. */
static struct json_object *make_exposed(const struct pod_ports *ports)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	size_t n = 0;
	for (size_t i = 0; i < ports->n; i++)
		for (unsigned int k = 0; k < ports->v[i].count && n < IMAGE_PORTS_MAX; k++, n++) {
			char key[sizeof("65535/sctp")];
			snprintf(key, sizeof(key), "%u/%s", (ports->v[i].port + k) & UINT16_MAX,
				 port_protocol_name(ports->v[i].protocol));
			struct json_object *nothing = json_object_new_object();
			/* json_put() borrows the key. */
			if (!obj || !nothing || json_object_object_add(obj, key, nothing) < 0) {
				json_object_put(nothing);
				return NULL;
			}
		}
	return TAKE_PTR(obj);
}

static struct json_object *make_config(const struct pod_app *app)
{
	cleanup_json struct json_object *config = json_object_new_object();
	char user[2 * AGENT_USER_MAX + 3], name[SIGNAME_MAX + 1];
	const struct strv *exec = &app->exec;
	size_t n = MIN(app->n_entrypoint, exec->n);
	int r = 0;
	snprintf(user, sizeof(user), "%s%s%s", app->user[0] ? app->user : "0",
		 app->group[0] ? ":" : "", app->group);
	if (app->user[0] || app->group[0]) /* nothing for root */
		r = json_put(config, "User", text(user));
	if (r == 0 && app->env.n > 0)
		r = json_put(config, "Env", json_list_strv(&app->env));
	if (r == 0 && n > 0)
		r = json_put(config, "Entrypoint", texts(exec, 0, n));
	if (r == 0 && n < exec->n)
		r = json_put(config, "Cmd", texts(exec, n, exec->n));
	if (r == 0 && app->ports.n > 0)
		r = json_put(config, "ExposedPorts", make_exposed(&app->ports));
	if (r == 0 && app->cwd[0])
		r = json_put(config, "WorkingDir", text(app->cwd));
	if (r == 0 && isolators_has(&app->isolators, ISOLATOR_STOP_SIGNAL))
		r = json_put(config, "StopSignal",
			     text(signame_format((int)app->isolators.stop_signal, name)));
	return r == 0 ? TAKE_PTR(config) : NULL;
}

int describe_oci_config(const struct pod_app *app, const struct digest *diff_id, struct buf *out,
			struct err *e)
{
	static const char what[] = "image configuration";
	if (!is_utf8(app))
		return not_utf8(what, e);
	/* One step for the one layer, with a time: umoci(1) takes both for granted. */
	struct json_object *step =
		json_make("created", text(CREATED), "created_by", text("husk export"), NULL);
	cleanup_json struct json_object *obj = json_make(
		"created", text(CREATED), "architecture", text(oci_host_platform.architecture),
		"os", text("linux"), "config", make_config(app), "rootfs",
		oci_make_rootfs(diff_id, 1), "history", list_of(step), NULL);
	return write_document(obj, what, out, e);
}

int describe_oci_manifest(const struct blob_ref *config, const struct blob_ref *layer,
			  struct buf *out, struct err *e)
{
	struct oci_descriptor l = { .media_type = OCI_TYPE_LAYER_GZIP,
				    .digest = layer->digest,
				    .size = layer->size };
	struct oci_manifest m = { .layers = &l, .n_layers = 1 };
	m.config = (struct oci_descriptor){ .media_type = OCI_TYPE_CONFIG,
					    .digest = config->digest,
					    .size = config->size };
	int r = oci_manifest_format(&m, out);
	return r < 0 ? err_sys(e, r, "image manifest") : 0;
}

int describe_oci_index(const struct blob_ref *manifest, const char *type, const char *name,
		       struct buf *out, struct err *e)
{
	static const char what[] = "image index";
	if (!str_is_utf8(name))
		return not_utf8(what, e);
	int r = oci_index_format(
		list_of(oci_make_descriptor(type ? type : OCI_TYPE_MANIFEST, &manifest->digest,
					    manifest->size, name)),
		out);
	return r < 0 ? err_sys(e, r, "%s", what) : 0;
}
