/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/aci.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"

/*
 * json-c spends some 800 bytes on an object that takes three bytes of text, so their number is
 * bounded before parsing: names and values of variables, labels, and what nobody reads.
 */
#define CONTAINERS_MAX ((size_t)32768)

#define WHAT "image manifest"

void aci_manifest_init(struct aci_manifest *m)
{
	*m = (struct aci_manifest){ .n_dependencies = 0 };
	strv_init(&m->exec, IMAGE_ARGS_MAX);
	strv_init(&m->env, IMAGE_ENV_MAX);
	strv_init(&m->whitelist, ACI_WHITELIST_MAX);
}

void aci_manifest_deinit(struct aci_manifest *m)
{
	if (!m)
		return;
	strv_deinit(&m->exec);
	strv_deinit(&m->env);
	strv_deinit(&m->whitelist);
	free(m->dependencies);
	aci_manifest_init(m);
}

static int bad_field(struct err *e, int r, const char *field)
{
	if (r == -ENOMEM)
		return err_set(e, r, "out of memory");
	if (r == -ENOENT)
		return err_set(e, -EBADMSG, WHAT " has no field \"%s\"", field);
	if (r == -E2BIG)
		return err_set(e, r, WHAT ": field \"%s\" has too many members", field);
	return err_set(e, -EBADMSG, WHAT ": field \"%s\" has a wrong type or is too long", field);
}

/* A list of objects, or NULL if the field is absent. -EBADMSG if it is something else, -E2BIG. */
static int get_list(struct json_object *o, const char *key, size_t max, struct json_object **ret,
		    size_t *ret_n)
{
	*ret = json_member(o, key);
	*ret_n = 0;
	if (!*ret)
		return 0;
	if (!json_object_is_type(*ret, json_type_array))
		return -EBADMSG;
	*ret_n = json_object_array_length(*ret);
	return *ret_n > max ? -E2BIG : 0;
}

/* [{"name": ..., "value": ...}] as labels. */
static int parse_labels(struct json_object *o, struct acname *name, struct err *e)
{
	struct json_object *list;
	size_t n;
	int r = get_list(o, "labels", ACNAME_LABELS_MAX, &list, &n);
	if (r < 0)
		return bad_field(e, r, "labels");
	for (size_t i = 0; i < n; i++) {
		struct json_object *label = json_object_array_get_idx(list, i);
		const char *key, *value;
		if (json_get_str(label, "name", ACNAME_LABEL_MAX, &key) < 0 ||
		    json_get_str(label, "value", ACNAME_VALUE_MAX, &value) < 0)
			return bad_field(e, -EBADMSG, "labels");
		r = acname_set(name, key, value, e);
		if (r < 0)
			return err_context(e, WHAT);
	}
	return 0;
}

/* The member @key of @o, with labels beside it. */
static int parse_name(struct json_object *o, const char *key, struct acname *ret, struct err *e)
{
	const char *name;
	int r = json_get_str(o, key, ACNAME_MAX, &name);
	if (r < 0)
		return bad_field(e, r, key);
	if (!acname_is_identifier(name, ACNAME_MAX))
		return err_set(e, -EBADMSG, WHAT ": \"%.80s\" is not a name of an image", name);
	*ret = (struct acname){ .n = 0 };
	str_copy(ret->name, sizeof(ret->name), name);
	return parse_labels(o, ret, e);
}

static int parse_environment(struct json_object *app, struct strv *ret, struct err *e)
{
	struct json_object *list;
	size_t n;
	int r = get_list(app, "environment", IMAGE_ENV_MAX, &list, &n);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct json_object *variable = json_object_array_get_idx(list, i);
		const char *name, *value;
		if (json_get_str(variable, "name", IMAGE_ARG_MAX, &name) < 0 || !*name ||
		    strchr(name, '=') || json_get_str(variable, "value", IMAGE_ARG_MAX, &value) < 0)
			return bad_field(e, -EBADMSG, "environment");
		r = strv_addf(ret, "%s=%s", name, value);
	}
	return r < 0 ? bad_field(e, r, "environment") : 0;
}

/* "USER:GROUP" of the fields user and group. */
static int parse_user(struct json_object *app, struct aci_manifest *ret, struct err *e)
{
	const char *user, *group;
	int r = json_get_str(app, "user", IMAGE_USER_MAX, &user);
	if (r < 0)
		return bad_field(e, r, "user");
	r = json_get_str(app, "group", IMAGE_USER_MAX, &group);
	if (r < 0)
		return bad_field(e, r, "group");
	int n = snprintf(ret->user, sizeof(ret->user), "%s:%s", user, group);
	if (!*user || !*group || strchr(user, ':') || strchr(group, ':') || n < 0 ||
	    (size_t)n >= sizeof(ret->user))
		return bad_field(e, -EBADMSG, "user");
	return 0;
}

static int parse_app(struct json_object *app, struct aci_manifest *ret, struct err *e)
{
	const char *dir;
	if (!app)
		return 0;
	int r = json_get_strv(app, "exec", IMAGE_ARG_MAX, &ret->exec);
	if (r < 0 && r != -ENOENT)
		return bad_field(e, r, "exec");
	r = json_get_str(app, "workingDirectory", IMAGE_PATH_MAX, &dir);
	if (r == 0)
		str_copy(ret->working_dir, sizeof(ret->working_dir), dir);
	if (r < 0 && r != -ENOENT)
		return bad_field(e, r, "workingDirectory");
	r = parse_user(app, ret, e);
	return r < 0 ? r : parse_environment(app, &ret->env, e);
}

/* "sha512-HEX", which may be cut. */
static int parse_key(const char *text, char ret[ACI_KEY_LEN + 1])
{
	static const char prefix[] = "sha512-";
	const char *hex = text + sizeof(prefix) - 1;
	if (!str_starts(text, prefix) || !*hex || strspn(hex, "0123456789abcdef") != strlen(hex))
		return -EBADMSG;
	return str_copy(ret, ACI_KEY_LEN + 1, hex) < 0 ? -EBADMSG : 0;
}

static int parse_dependency(struct json_object *o, struct aci_dependency *ret, struct err *e)
{
	const char *key;
	int r = parse_name(o, "imageName", &ret->name, e);
	if (r < 0)
		return r;
	r = json_get_str(o, "imageID", sizeof("sha512-") + ACI_KEY_LEN, &key);
	ret->key[0] = '\0';
	if (r == 0)
		r = parse_key(key, ret->key);
	return r < 0 && r != -ENOENT ? bad_field(e, r, "imageID") : 0;
}

static int parse_dependencies(struct json_object *o, struct aci_manifest *ret, struct err *e)
{
	struct json_object *list;
	size_t n;
	int r = get_list(o, "dependencies", ACI_DEPENDENCIES_MAX, &list, &n);
	if (r < 0)
		return bad_field(e, r, "dependencies");
	if (n == 0)
		return 0;
	ret->dependencies = calloc(n, sizeof(*ret->dependencies));
	if (!ret->dependencies)
		return bad_field(e, -ENOMEM, "dependencies");
	ret->n_dependencies = n;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = parse_dependency(json_object_array_get_idx(list, i), &ret->dependencies[i], e);
	return r;
}

static int parse_whitelist(struct json_object *o, struct strv *ret, struct err *e)
{
	int r = json_get_strv(o, "pathWhitelist", IMAGE_PATH_MAX, ret);
	for (size_t i = 0; r == 0 && i < ret->n; i++)
		if (ret->v[i][0] != '/')
			r = -EBADMSG;
	return r < 0 && r != -ENOENT ? bad_field(e, r, "pathWhitelist") : 0;
}

/* The kind of document, and that its version is one of appc's first. */
static int check_kind(struct json_object *o, struct err *e)
{
	const char *kind, *version;
	if (json_get_str(o, "acKind", IMAGE_NAME_MAX, &kind) < 0 ||
	    strcmp(kind, "ImageManifest") != 0)
		return err_set(e, -EBADMSG, WHAT ": field \"acKind\" is not \"ImageManifest\"");
	if (json_get_str(o, "acVersion", IMAGE_NAME_MAX, &version) < 0)
		return bad_field(e, -ENOENT, "acVersion");
	if (!str_starts(version, "0."))
		return err_set(e, -EOPNOTSUPP, WHAT " of appc %.40s, husk reads 0.x", version);
	return 0;
}

int aci_manifest_parse(const char *text, size_t len, struct aci_manifest *ret, struct err *e)
{
	cleanup_json struct json_object *o = NULL;
	if (len > ACI_JSON_MAX)
		return err_set(e, -E2BIG, WHAT " is larger than %zu bytes", ACI_JSON_MAX);
	if (json_count_containers(text, len) > CONTAINERS_MAX)
		return err_set(e, -E2BIG, WHAT " has more than %zu objects and lists",
			       CONTAINERS_MAX);
	int r = json_parse(text, len, &o);
	if (r == -ENOMEM)
		return err_set(e, r, "out of memory");
	if (r < 0 || !json_object_is_type(o, json_type_object))
		return err_set(e, -EBADMSG, WHAT " is not a JSON object");
	r = check_kind(o, e);
	if (r == 0)
		r = parse_name(o, "name", &ret->name, e);
	if (r == 0)
		r = parse_app(json_member(o, "app"), ret, e);
	if (r == 0)
		r = parse_dependencies(o, ret, e);
	return r < 0 ? r : parse_whitelist(o, &ret->whitelist, e);
}

int aci_check_platform(const struct aci_manifest *m, struct err *e)
{
	const char *os = acname_get(&m->name, "os"), *arch = acname_get(&m->name, "arch");
	if (!os || !arch)
		return err_set(e, -EOPNOTSUPP, "missing %s label in the image manifest",
			       os ? "arch" : "os");
	if (strcmp(os, ACNAME_HOST_OS) != 0)
		return err_set(e, -EOPNOTSUPP, "bad os \"%s\" (must be one of: [%s])", os,
			       ACNAME_HOST_OS);
	if (strcmp(arch, acname_host_arch) != 0)
		return err_set(e, -EOPNOTSUPP, "bad arch \"%s\" for %s (must be one of: [%s])",
			       arch, os, acname_host_arch);
	return 0;
}
