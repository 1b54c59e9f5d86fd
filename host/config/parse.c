/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/parse.h"

#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/config/location.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

#define VERSION   "v1"
#define KIND_MAX  ((size_t)64) /* longest kind, type or version that is told apart; all are short */
#define KINDS_MAX 2            /* kinds of one directory */

/* What a file of one kind says goes into @layer. 0, or -errno and @e. */
typedef int (*parse_fn)(struct json_object *obj, struct config *layer, struct err *e);

static int parse_auth(struct json_object *obj, struct config *layer, struct err *e);
static int parse_docker_auth(struct json_object *obj, struct config *layer, struct err *e);
static int parse_paths(struct json_object *obj, struct config *layer, struct err *e);
static int parse_stage1(struct json_object *obj, struct config *layer, struct err *e);
static int parse_images(struct json_object *obj, struct config *layer, struct err *e);

static const struct part {
	unsigned part;
	const char *dir;
	const char *kinds_text;
	struct {
		const char *name;
		parse_fn parse;
	} kinds[KINDS_MAX];
} parts[] = {
	{ CONFIG_AUTH,
	  "auth.d",
	  "\"auth\" and \"dockerAuth\"",
	  { { "auth", parse_auth }, { "dockerAuth", parse_docker_auth } } },
	{ CONFIG_PATHS, "paths.d", "\"paths\"", { { "paths", parse_paths } } },
	{ CONFIG_STAGE1, "stage1.d", "\"stage1\"", { { "stage1", parse_stage1 } } },
	{ CONFIG_IMAGES, "images.d", "\"images\"", { { "images", parse_images } } },
};

static const struct part *find_part(unsigned part)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].part == part)
			return &parts[i];
	return NULL;
}

const char *config_part_dir(unsigned part)
{
	const struct part *p = find_part(part);
	return p ? p->dir : NULL;
}

/*
 * The string member @key of at most @max bytes, borrowed from @obj; NULL if absent or empty. 0, or
 * -EBADMSG and @e.
 */
static int get_string(struct json_object *obj, const char *key, size_t max, const char **ret,
		      struct err *e)
{
	const char *s = NULL;
	int r = json_get_str(obj, key, max, &s);
	if (r == -EBADMSG || (s && !str_is_utf8(s)))
		return err_set(e, -EBADMSG,
			       "\"%s\" is not a string of at most %zu bytes of UTF-8 (correct it)",
			       key, max);
	*ret = s && *s ? s : NULL;
	return 0;
}

/* As get_string(), but absence is an error, too. */
static int need_string(struct json_object *obj, const char *key, size_t max, const char **ret,
		       struct err *e)
{
	const char *s = NULL;
	int r = get_string(obj, key, max, &s, e);
	if (r == 0 && !s)
		r = err_set(e, -EBADMSG, "\"%s\" is missing (add it)", key);
	if (r == 0)
		*ret = s;
	return r;
}

/* Sets *@slot, which must be unset, to a copy of @value; nothing to do if that is NULL. */
static int set_once(char **slot, const char *value, const char *what, struct err *e)
{
	if (!value)
		return 0;
	if (*slot)
		return err_set(e, -EEXIST,
			       "%s is already specified in this directory (keep one of the two)",
			       what);
	*slot = strdup(value);
	return *slot ? 0 : err_sys(e, -ENOMEM, "%s", what);
}

/*
 * Moves the list in the member @key of texts that are @is_valid, @what in messages, to @list, as
 * many as fit there; an empty one as CONFIG_NONE.
 */
static int parse_list(struct json_object *obj, const char *key, bool (*is_valid)(const char *),
		      const char *what, struct strv *list, struct err *e)
{
	cleanup_strv struct strv said;
	strv_init(&said, list->max);
	int r = json_get_strv(obj, key, CONFIG_PATH_MAX, &said);
	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM)
		return err_sys(e, r, "\"%s\"", key);
	for (size_t i = 0; r == 0 && i < said.n; i++)
		if (!is_valid(said.v[i]))
			r = -EBADMSG;
	if (r < 0)
		return err_set(e, -EBADMSG, "\"%s\" is not a list of at most %zu %s (correct it)",
			       key, list->max, what);
	if (list->n > 0)
		return err_set(
			e, -EEXIST,
			"\"%s\" is already specified in this directory (keep one of the two)", key);
	r = said.n > 0 ? strv_extend(list, &said) : strv_add(list, CONFIG_NONE);
	return r < 0 ? err_sys(e, r, "\"%s\"", key) : 0;
}

/* The @type of an "auth" file from its name. */
static int get_type(struct json_object *obj, enum auth_type *ret, struct err *e)
{
	const char *name = NULL;
	int r = need_string(obj, "type", KIND_MAX, &name, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < AUTH_TYPES; i++) {
		if (strcmp(auth_forms[i].name, name) != 0)
			continue;
		*ret = (enum auth_type)i;
		return 0;
	}
	return err_set(e, -EBADMSG,
		       "unknown auth type \"%s\" (use \"basic\", \"oauth\" or \"aws\")", name);
}

/* Checks the credentials of @type in @obj; borrows them to @values. */
static int get_credentials(struct json_object *obj, enum auth_type type,
			   const char *values[AUTH_CREDENTIALS_MAX], struct err *e)
{
	const struct auth_form *form = &auth_forms[type];
	struct json_object *credentials = json_member(obj, "credentials");
	if (!json_object_is_type(credentials, json_type_object))
		return err_set(e, -EBADMSG, "\"credentials\" is not an object (add it)");
	for (size_t i = 0; i < form->n; i++) {
		const struct auth_credential *c = &form->credentials[i];
		int r = c->optional
				? get_string(credentials, c->key, AUTH_SECRET_MAX, &values[i], e)
				: need_string(credentials, c->key, AUTH_SECRET_MAX, &values[i], e);
		if (r < 0) {
			err_context(e, "\"credentials\"");
			return r;
		}
	}
	return 0;
}

/* Adds an entry for @host to @list. @what names the list in messages. */
static int add_host(struct auths *list, const char *what, const char *host, enum auth_type type,
		    const char *values[AUTH_CREDENTIALS_MAX], struct err *e)
{
	const struct auth_form *form = &auth_forms[type];
	CLEANUP(auth_deinit) struct auth a = { .host = strdup(host), .type = type };
	int r = a.host ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < form->n; i++) {
		char **value = auth_value(&a, &form->credentials[i]);
		*value = values[i] ? strdup(values[i]) : NULL;
		if (values[i] && !*value)
			r = -ENOMEM;
	}
	if (r == 0)
		r = auths_add(list, &a);
	if (r == AUTHS_TWICE)
		return err_set(e, -EEXIST,
			       "%s \"%s\" is already specified in this directory (keep one of the "
			       "two)",
			       what, host);
	if (r == AUTHS_FULL)
		return err_set(e, -E2BIG, "%s \"%s\" is one more than %zu (remove some)", what,
			       host, AUTHS_MAX);
	return r < 0 ? err_sys(e, r, "%s \"%s\"", what, host) : 0;
}

/* Adds an entry for each host in the member @key of @obj. */
static int add_hosts(struct json_object *obj, const char *key, struct auths *list, const char *what,
		     enum auth_type type, const char *values[AUTH_CREDENTIALS_MAX], struct err *e)
{
	cleanup_strv struct strv hosts;
	strv_init(&hosts, CONFIG_DOMAINS_MAX);
	int r = json_get_strv(obj, key, AUTH_HOST_MAX, &hosts);
	if (r == -ENOMEM)
		return err_sys(e, r, "\"%s\"", key);
	for (size_t i = 0; r == 0 && i < hosts.n; i++)
		if (!str_is_printable(hosts.v[i], AUTH_HOST_MAX))
			r = -EBADMSG;
	if (r < 0 || hosts.n == 0)
		return err_set(
			e, -EBADMSG,
			"\"%s\" is not a list of 1 to %zu names of hosts, each of at most %zu "
			"bytes (correct it)",
			key, CONFIG_DOMAINS_MAX, AUTH_HOST_MAX);
	for (size_t i = 0; r == 0 && i < hosts.n; i++)
		r = add_host(list, what, hosts.v[i], type, values, e);
	return r;
}

static int parse_auth(struct json_object *obj, struct config *layer, struct err *e)
{
	enum auth_type type = AUTH_BASIC;
	const char *values[AUTH_CREDENTIALS_MAX] = { NULL };
	int r = get_type(obj, &type, e);
	if (r == 0)
		r = get_credentials(obj, type, values, e);
	return r < 0 ? r
		     : add_hosts(obj, "domains", &layer->auth, "auth for domain", type, values, e);
}

static int parse_docker_auth(struct json_object *obj, struct config *layer, struct err *e)
{
	const char *values[AUTH_CREDENTIALS_MAX] = { NULL };
	int r = get_credentials(obj, AUTH_BASIC, values, e);
	return r < 0 ? r
		     : add_hosts(obj, "registries", &layer->docker_auth, "auth for registry",
				 AUTH_BASIC, values, e);
}

/* Sets *@slot to the absolute path in the member @key, if there is one. */
static int parse_path(struct json_object *obj, const char *key, char **slot, struct err *e)
{
	char what[KIND_MAX];
	const char *path = NULL;
	int r = get_string(obj, key, CONFIG_PATH_MAX, &path, e);
	if (r == 0 && path && path[0] != '/')
		return err_set(e, -EINVAL, "\"%s\" is not an absolute path (write it as /PATH)",
			       key);
	snprintf(what, sizeof(what), "\"%s\"", key);
	return r < 0 ? r : set_once(slot, path, what, e);
}

static bool is_plugin_dir(const char *path)
{
	return path[0] == '/' && str_is_utf8(path);
}

static int parse_paths(struct json_object *obj, struct config *layer, struct err *e)
{
	int r = parse_path(obj, "data", &layer->data, e);
	if (r == 0)
		r = parse_path(obj, "stage1-images", &layer->stage1_images, e);
	return r < 0 ? r
		     : parse_list(obj, CONFIG_CNI_PLUGINS, is_plugin_dir, "absolute paths",
				  &layer->cni_plugins, e);
}

/* Sets *@slot to the member @key, if there is one. */
static int parse_setting(struct json_object *obj, const char *key, char **slot, struct err *e)
{
	char what[KIND_MAX];
	const char *value = NULL;
	int r = get_string(obj, key, CONFIG_SETTING_MAX, &value, e);
	snprintf(what, sizeof(what), "\"%s\"", key);
	return r < 0 ? r : set_once(slot, value, what, e);
}

/* The value of option @name. Each once in all files of a directory. */
static int add_option(struct strv *options, const char *name, struct json_object *value,
		      struct err *e)
{
	const char *text = json_object_get_string(value);
	if (!*name || strchr(name, '=') || !json_object_is_type(value, json_type_string) ||
	    json_object_get_string_len(value) > (int)CONFIG_SETTING_MAX ||
	    !str_is_printable(text, CONFIG_SETTING_MAX))
		return err_set(e, -EBADMSG, "option \"%.40s\" of stage1 is not a short text", name);
	if (strv_env_get(options, name))
		return err_set(e, -EEXIST, "option \"%.40s\" of stage1 is already set", name);
	int r = strv_addf(options, "%s=%s", name, text);
	return r < 0 ? err_sys(e, r, "options of stage1: at most %zu", options->max) : 0;
}

static int parse_options(struct json_object *obj, struct strv *options, struct err *e)
{
	struct json_object *all = json_member(obj, "options");
	int r = 0;
	if (!all)
		return 0;
	if (!json_object_is_type(all, json_type_object))
		return err_set(e, -EBADMSG, "\"options\" is not an object");
	json_object_object_foreach(all, name, value)
	{
		if (r == 0)
			r = add_option(options, name, value, e);
	}
	return r;
}

/* What pods can ask for: see OCI_SPEC_WISHES_MAX. */
static bool is_annotation(const char *name)
{
	return strcmp(name, "cpus") == 0 || strcmp(name, "kernel") == 0 ||
	       strcmp(name, "memory") == 0;
}

static int parse_roots(struct json_object *obj, struct config *layer, struct err *e)
{
	int r = parse_setting(obj, CONFIG_ROOTS, &layer->stage1_roots, e);
	const char *roots = layer->stage1_roots;
	return r == 0 && roots && strcmp(roots, CONFIG_ROOTS_LIVE) != 0 &&
			       strcmp(roots, CONFIG_ROOTS_PACKED) != 0
		       ? err_set(e, -EINVAL,
				 "\"" CONFIG_ROOTS "\" is neither \"" CONFIG_ROOTS_LIVE
				 "\" nor \"" CONFIG_ROOTS_PACKED "\"")
		       : r;
}

static int parse_stage1(struct json_object *obj, struct config *layer, struct err *e)
{
	const char *name = NULL, *version = NULL, *location = NULL;
	int r = get_string(obj, "name", CONFIG_NAME_MAX, &name, e);
	if (r == 0)
		r = get_string(obj, "version", CONFIG_NAME_MAX, &version, e);
	if (r == 0)
		r = get_string(obj, "location", CONFIG_PATH_MAX, &location, e);
	if (r == 0 && !name != !version)
		return err_set(e, -EINVAL, "\"%s\" without \"%s\" (give both or none)",
			       name ? "name" : "version", name ? "version" : "name");
	if (r == 0 && location)
		r = location_check(location, e);
	if (r == 0)
		r = set_once(&layer->stage1_name, name, "the \"name\" of stage1", e);
	if (r == 0)
		r = set_once(&layer->stage1_version, version, "the \"version\" of stage1", e);
	if (r == 0)
		r = set_once(&layer->stage1_location, location, "the \"location\" of stage1", e);
	if (r == 0)
		r = parse_options(obj, &layer->stage1_options, e);
	if (r == 0)
		r = parse_roots(obj, layer, e);
	return r < 0 ? r
		     : parse_list(obj, CONFIG_ANNOTATIONS, is_annotation,
				  "of \"cpus\", \"kernel\" and \"memory\"",
				  &layer->stage1_annotations, e);
}

static int parse_images(struct json_object *obj, struct config *layer, struct err *e)
{
	int r = parse_setting(obj, "compression", &layer->images_compression, e);
	return r < 0 ? r : parse_setting(obj, "maxBytes", &layer->images_max_bytes, e);
}

/* The directory that files of the kind @kind belong to, or NULL if there is no such kind. */
static const char *dir_of_kind(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		for (size_t k = 0; k < KINDS_MAX && parts[i].kinds[k].name; k++)
			if (strcmp(parts[i].kinds[k].name, kind) == 0)
				return parts[i].dir;
	return NULL;
}

/* Finds how to read what is of kind @kind in the directory of @p. */
static int find_parser(const struct part *p, const char *kind, parse_fn *ret, struct err *e)
{
	for (size_t k = 0; k < KINDS_MAX && p->kinds[k].name; k++) {
		if (strcmp(p->kinds[k].name, kind) != 0)
			continue;
		*ret = p->kinds[k].parse;
		return 0;
	}
	const char *right = dir_of_kind(kind);
	if (right)
		return err_set(e, -EBADMSG, "kind \"%s\" does not belong into %s (move it to %s)",
			       kind, p->dir, right);
	return err_set(e, -EBADMSG, "unknown kind \"%s\" (%s takes %s)", kind, p->dir,
		       p->kinds_text);
}

int config_parse(const char *text, size_t len, unsigned part, struct config *layer, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	const char *kind = NULL, *version = NULL;
	parse_fn parse = NULL;
	const struct part *p = find_part(part);
	if (!p)
		return err_set(e, -EINVAL, "no such part of the configuration");
	if (len > CONFIG_FILE_MAX)
		return err_set(e, -EFBIG, "it has more than %zu bytes (split it)", CONFIG_FILE_MAX);
	int r = json_parse(text, len, &obj);
	if (r == -ENOMEM)
		return err_sys(e, r, "cannot read it");
	if (r < 0 || !json_object_is_type(obj, json_type_object))
		return err_set(e, -EBADMSG, "it is not an object in valid JSON (correct it)");
	r = need_string(obj, "rktKind", KIND_MAX, &kind, e);
	if (r == 0)
		r = find_parser(p, kind, &parse, e);
	if (r == 0)
		r = need_string(obj, "rktVersion", KIND_MAX, &version, e);
	if (r == 0 && strcmp(version, VERSION) != 0)
		return err_set(e, -EBADMSG, "unknown version \"%s\" (write \"%s\")", version,
			       VERSION);
	return r < 0 ? r : parse(obj, layer, e);
}
