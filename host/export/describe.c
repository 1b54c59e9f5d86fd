/* SPDX-License-Identifier: Apache-2.0 */
#include "host/export/describe.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"

#define APPC_VERSION "0.8.11"

#define CREATED "1970-01-01T00:00:00Z" /* equal pods give equal archives */

#define TYPE_CONFIG   "application/vnd.oci.image.config.v1+json"
#define TYPE_LAYER    "application/vnd.oci.image.layer.v1.tar+gzip"
#define TYPE_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define TYPE_INDEX    "application/vnd.oci.image.index.v1+json"

/* This machine's architecture as GOARCH has it. */
#if defined(__x86_64__)
#define ARCH_OCI "amd64"
#elif defined(__aarch64__)
#define ARCH_OCI "arm64"
#else
#error "unknown architecture: add its name here"
#endif

/* Appends @value to @list, also taking NULL for a failed allocation. */
static int append(struct json_object *list, struct json_object *value)
{
	if (list && value && json_object_array_add(list, value) == 0)
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

/* Appends @obj and says what went wrong with @what. */
static int write_document(struct json_object *obj, int r, const char *what, struct buf *out,
			  struct err *e)
{
	if (r == 0)
		r = json_write(obj, false, out);
	if (r == -EILSEQ)
		return err_set(e, r, "%s: a text of the app is not UTF-8, so JSON cannot hold it",
			       what);
	return r < 0 ? err_sys(e, r, "%s", what) : 0;
}

/* {"name": ..., "value": ...} */
static struct json_object *pair(const char *name, size_t name_len, const char *value)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put(obj, "name", json_object_new_string_len(name, (int)name_len)) < 0 ||
	    json_put_str(obj, "value", value) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

static int put_environment(struct json_object *obj, const struct strv *env)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < env->n; i++) {
		const char *text = env->v[i];
		size_t len = strcspn(text, "=");
		if (!str_is_utf8(text))
			return -EILSEQ;
		int r = append(list, pair(text, len, text + len + (text[len] == '=')));
		if (r < 0)
			return r;
	}
	return json_put(obj, "environment", TAKE_PTR(list));
}

static int put_app(struct json_object *obj, const struct pod_app *app)
{
	cleanup_json struct json_object *run = json_object_new_object();
	/* appc knows no primary group. Rather than root's, take the one that is usually named alike. */
	const char *user = app->user[0] ? app->user : "0";
	int r = json_put_strv(run, "exec", &app->exec);
	if (r == 0)
		r = json_put_str(run, "user", user);
	if (r == 0)
		r = json_put_str(run, "group", app->group[0] ? app->group : user);
	if (r == 0 && app->env.n > 0)
		r = put_environment(run, &app->env);
	if (r == 0 && app->cwd[0])
		r = json_put_str(run, "workingDirectory", app->cwd);
	return r == 0 ? json_put(obj, "app", TAKE_PTR(run)) : r;
}

int describe_aci(const struct pod_app *app, struct buf *out, struct err *e)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	struct pod_image_name name;
	pod_image_split(app->image_name, &name);
	int r = json_put_str(obj, "acKind", "ImageManifest");
	if (r == 0)
		r = json_put_str(obj, "acVersion", APPC_VERSION);
	if (r == 0)
		r = json_put_str(obj, "name", name.identifier[0] ? name.identifier : app->name);
	if (r == 0)
		r = json_put(obj, "labels", pod_image_labels(name.version));
	if (r == 0 && app->exec.n > 0) /* an image without a command has no app section */
		r = put_app(obj, app);
	return write_document(obj, r, "image manifest", out, e);
}

/* "USER", "USER:GROUP", or nothing for root. */
static int put_user(struct json_object *obj, const struct pod_app *app)
{
	char user[2 * AGENT_USER_MAX + 3];
	if (!app->user[0] && !app->group[0])
		return 0;
	snprintf(user, sizeof(user), "%s%s%s", app->user[0] ? app->user : "0",
		 app->group[0] ? ":" : "", app->group);
	return json_put_str(obj, "User", user);
}

/* The members @from to @to of the command, if there are any. */
static int put_command(struct json_object *config, const char *key, const struct strv *exec,
		       size_t from, size_t to)
{
	cleanup_json struct json_object *list = json_object_new_array();
	int r = 0;
	for (size_t i = from; r == 0 && i < to; i++)
		r = str_is_utf8(exec->v[i]) ? append(list, json_object_new_string(exec->v[i]))
					    : -EILSEQ;
	return r < 0 || from >= to ? r : json_put(config, key, TAKE_PTR(list));
}

static int put_config(struct json_object *obj, const struct pod_app *app)
{
	cleanup_json struct json_object *config = json_object_new_object();
	int r = put_user(config, app);
	if (r == 0 && app->env.n > 0)
		r = json_put_strv(config, "Env", &app->env);
	size_t n = MIN(app->n_entrypoint, app->exec.n);
	if (r == 0)
		r = put_command(config, "Entrypoint", &app->exec, 0, n);
	if (r == 0)
		r = put_command(config, "Cmd", &app->exec, n, app->exec.n);
	if (r == 0 && app->cwd[0])
		r = json_put_str(config, "WorkingDir", app->cwd);
	return r == 0 ? json_put(obj, "config", TAKE_PTR(config)) : r;
}

static struct json_object *digest_text(const struct digest *d)
{
	char text[sizeof("sha256:") + DIGEST_HEX_LEN];
	snprintf(text, sizeof(text), "sha256:%s", d->hex);
	return json_object_new_string(text);
}

static int put_rootfs(struct json_object *obj, const struct digest *diff_id)
{
	cleanup_json struct json_object *rootfs = json_object_new_object();
	cleanup_json struct json_object *list = json_object_new_array();
	int r = append(list, digest_text(diff_id));
	if (r == 0)
		r = json_put_str(rootfs, "type", "layers");
	if (r == 0)
		r = json_put(rootfs, "diff_ids", TAKE_PTR(list));
	return r == 0 ? json_put(obj, "rootfs", TAKE_PTR(rootfs)) : r;
}

/* One step for the one layer, with a time: umoci(1) takes both for granted. */
static int put_history(struct json_object *obj)
{
	cleanup_json struct json_object *step = json_object_new_object();
	cleanup_json struct json_object *list = json_object_new_array();
	int r = json_put_str(step, "created", CREATED);
	if (r == 0)
		r = json_put_str(step, "created_by", "husk export");
	if (r == 0)
		r = append(list, TAKE_PTR(step));
	return r == 0 ? json_put(obj, "history", TAKE_PTR(list)) : r;
}

int describe_oci_config(const struct pod_app *app, const struct digest *diff_id, struct buf *out,
			struct err *e)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = json_put_str(obj, "created", CREATED);
	if (r == 0)
		r = json_put_str(obj, "architecture", ARCH_OCI);
	if (r == 0)
		r = json_put_str(obj, "os", "linux");
	if (r == 0)
		r = put_config(obj, app);
	if (r == 0)
		r = put_rootfs(obj, diff_id);
	if (r == 0)
		r = put_history(obj);
	return write_document(obj, r, "image configuration", out, e);
}

static struct json_object *descriptor(const char *type, const struct blob_ref *blob)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "mediaType", type) < 0 ||
	    json_put(obj, "digest", digest_text(&blob->digest)) < 0 ||
	    json_put_int(obj, "size", (int64_t)blob->size) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

/* The head that manifest and index share. */
static int put_head(struct json_object *obj, const char *type)
{
	int r = json_put_int(obj, "schemaVersion", 2);
	return r == 0 ? json_put_str(obj, "mediaType", type) : r;
}

int describe_oci_manifest(const struct blob_ref *config, const struct blob_ref *layer,
			  struct buf *out, struct err *e)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_json struct json_object *layers = json_object_new_array();
	int r = put_head(obj, TYPE_MANIFEST);
	if (r == 0)
		r = json_put(obj, "config", descriptor(TYPE_CONFIG, config));
	if (r == 0)
		r = append(layers, descriptor(TYPE_LAYER, layer));
	if (r == 0)
		r = json_put(obj, "layers", TAKE_PTR(layers));
	return write_document(obj, r, "image manifest", out, e);
}

int describe_oci_index(const struct blob_ref *manifest, const char *type, const char *name,
		       struct buf *out, struct err *e)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_json struct json_object *list = json_object_new_array();
	cleanup_json struct json_object *image = descriptor(type ? type : TYPE_MANIFEST, manifest);
	cleanup_json struct json_object *notes = json_object_new_object();
	int r = put_head(obj, TYPE_INDEX);
	if (r == 0)
		r = json_put_str(notes, "org.opencontainers.image.ref.name", name);
	if (r == 0)
		r = json_put(image, "annotations", TAKE_PTR(notes));
	if (r == 0)
		r = append(list, TAKE_PTR(image));
	if (r == 0)
		r = json_put(obj, "manifests", TAKE_PTR(list));
	return write_document(obj, r, "image index", out, e);
}
