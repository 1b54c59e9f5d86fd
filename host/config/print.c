/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/print.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

/* A new entry of @kind; NULL if memory is short. */
static struct json_object *new_entry(const char *kind)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "rktVersion", "v1") < 0 || json_put_str(obj, "rktKind", kind) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

/* Appends @entry, which is consumed, to @list; its building failed with @r. */
static int add_entry(struct json_object *list, struct json_object *entry, int r)
{
	if (r == 0)
		return json_append(list, entry);
	json_object_put(entry);
	return r;
}

/* Puts a list with @host as its only member. */
static int put_host(struct json_object *obj, const char *key, const char *host)
{
	cleanup_strv struct strv hosts;
	strv_init(&hosts, 1);
	int r = strv_add(&hosts, host);
	return r < 0 ? r : json_put_strv(obj, key, &hosts);
}

static int put_credentials(struct json_object *obj, struct auth *a)
{
	const struct auth_form *form = &auth_forms[a->type];
	cleanup_json struct json_object *credentials = json_object_new_object();
	int r = 0;
	for (size_t i = 0; r == 0 && i < form->n; i++) {
		const char *value = *auth_value(a, &form->credentials[i]);
		if (value)
			r = json_put_str(credentials, form->credentials[i].key, value);
	}
	return r < 0 ? r : json_put(obj, "credentials", TAKE_PTR(credentials));
}

static int add_auth(struct json_object *list, struct auth *a)
{
	struct json_object *obj = new_entry("auth");
	int r = obj ? put_host(obj, "domains", a->host) : -ENOMEM;
	if (r == 0)
		r = json_put_str(obj, "type", auth_forms[a->type].name);
	if (r == 0)
		r = put_credentials(obj, a);
	return add_entry(list, obj, r);
}

static int add_docker_auth(struct json_object *list, struct auth *a)
{
	struct json_object *obj = new_entry("dockerAuth");
	int r = obj ? put_host(obj, "registries", a->host) : -ENOMEM;
	if (r == 0)
		r = put_credentials(obj, a);
	return add_entry(list, obj, r);
}

static int put_or_empty(struct json_object *obj, const char *key, const char *value)
{
	return json_put_str(obj, key, value ? value : "");
}

/* If there is one: rkt knows no such members. */
static int put_list(struct json_object *obj, const char *key, const struct strv *list)
{
	static const struct strv none;
	if (list->n == 0)
		return 0;
	return json_put_strv(obj, key, strcmp(list->v[0], CONFIG_NONE) == 0 ? &none : list);
}

static int add_paths(struct json_object *list, const struct config *c)
{
	struct json_object *obj = new_entry("paths");
	int r = obj ? put_or_empty(obj, "data", c->data) : -ENOMEM;
	if (r == 0)
		r = put_or_empty(obj, "stage1-images", c->stage1_images);
	if (r == 0)
		r = put_list(obj, CONFIG_CNI_PLUGINS, &c->cni_plugins);
	return add_entry(list, obj, r);
}

static int put_options(struct json_object *entry, const struct strv *options)
{
	cleanup_json struct json_object *all = json_object_new_object();
	int r = all ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < options->n; i++) {
		const char *value = strchr(options->v[i], '=');
		cleanup_free char *name = strndup(options->v[i], (size_t)(value - options->v[i]));
		struct json_object *text = name ? json_object_new_string(value + 1) : NULL;
		r = text && json_object_object_add(all, name, text) == 0 ? 0 : -ENOMEM;
	}
	return r < 0 ? r : json_put(entry, "options", TAKE_PTR(all));
}

static int add_stage1(struct json_object *list, const struct config *c)
{
	struct json_object *obj = new_entry("stage1");
	int r = obj ? put_or_empty(obj, "name", c->stage1_name) : -ENOMEM;
	if (r == 0)
		r = put_or_empty(obj, "version", c->stage1_version);
	if (r == 0)
		r = put_or_empty(obj, "location", c->stage1_location);
	if (r == 0 && c->stage1_options.n > 0) /* rkt knows no such member */
		r = put_options(obj, &c->stage1_options);
	if (r == 0)
		r = put_list(obj, CONFIG_ANNOTATIONS, &c->stage1_annotations);
	if (r == 0 && c->stage1_roots)
		r = json_put_str(obj, CONFIG_ROOTS, c->stage1_roots);
	return add_entry(list, obj, r);
}

/* Only if it says something: rkt knows no such kind. */
static int add_images(struct json_object *list, const struct config *c)
{
	if (!c->images_compression && !c->images_max_bytes)
		return 0;
	struct json_object *obj = new_entry("images");
	int r = obj ? put_or_empty(obj, "compression", c->images_compression) : -ENOMEM;
	if (r == 0)
		r = put_or_empty(obj, "maxBytes", c->images_max_bytes);
	return add_entry(list, obj, r);
}

static int add_all(struct json_object *list, const struct config *c)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->auth.n; i++)
		r = add_auth(list, &c->auth.v[i]);
	for (size_t i = 0; r == 0 && i < c->docker_auth.n; i++)
		r = add_docker_auth(list, &c->docker_auth.v[i]);
	if (r == 0)
		r = add_paths(list, c);
	if (r == 0)
		r = add_stage1(list, c);
	return r < 0 ? r : add_images(list, c);
}

int config_print(const struct config *c, bool pretty, struct buf *out)
{
	cleanup_json struct json_object *root = json_object_new_object();
	cleanup_json struct json_object *list = json_object_new_array();
	int r = root && list ? add_all(list, c) : -ENOMEM;
	if (r == 0)
		r = json_put(root, "stage0", TAKE_PTR(list));
	if (r == 0)
		r = json_write(root, pretty, out);
	return r < 0 ? r : buf_puts(out, "\n");
}
