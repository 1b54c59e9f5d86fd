/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/config.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "stage1/net/cni/document.h"

#define VERSION_MAX 16 /* bytes: "0.3.1" */

/* What files may say, and in which version plugins are asked then. */
static const struct {
	const char *written, *asked;
} versions[] = {
	{ "", "0.3.1" },      { "0.1.0", "0.3.1" }, { "0.2.0", "0.3.1" }, { "0.3.0", "0.3.1" },
	{ "0.3.1", "0.3.1" }, { "0.4.0", "0.4.0" }, { "1.0.0", "1.0.0" },
};

void cni_config_deinit(struct cni_config *c)
{
	if (!c)
		return;
	json_object_put(c->plugins);
	c->plugins = NULL;
}

void cni_config_share(const struct cni_config *c, struct cni_config *ret)
{
	*ret = *c;
	ret->plugins = json_object_get(c->plugins);
}

static bool is_alphanumeric(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool cni_name_is_valid(const char *s)
{
	size_t len = 0;
	for (; s[len]; len++)
		if (!is_alphanumeric(s[len]) && (len == 0 || !strchr("_.-", s[len])))
			return false;
	return len > 0 && len <= CNI_NAME_MAX;
}

static int read_name(struct json_object *doc, struct cni_config *c, struct err *e)
{
	const char *name;
	if (json_get_str(doc, "name", CNI_NAME_MAX, &name) < 0 || !cni_name_is_valid(name))
		return err_set(e, -EBADMSG,
			       "it has no \"name\", or not one of letters, digits and \"_.-\"");
	return str_copy(c->name, sizeof(c->name), name);
}

static int read_version(struct json_object *doc, struct cni_config *c, struct err *e)
{
	const char *text = "";
	int r = json_get_str(doc, "cniVersion", VERSION_MAX, &text);
	for (size_t i = 0; r != -EBADMSG && i < ARRAY_SIZE(versions); i++) {
		if (strcmp(versions[i].written, text) != 0)
			continue;
		c->version = versions[i].asked;
		return 0;
	}
	return err_set(e, -EBADMSG, "its \"cniVersion\" %s is not known (0.3.1, 0.4.0 or 1.0.0)",
		       text);
}

/* A type becomes the name of a file in directories of plugins (section 2 of the specification). */
static bool type_is_valid(const char *s)
{
	return str_is_printable(s, CNI_TYPE_MAX) && !strchr(s, '/') && strcmp(s, ".") != 0 &&
	       strcmp(s, "..") != 0;
}

static int check_plugin(struct json_object *plugin, struct err *e)
{
	const char *type;
	if (json_get_str(plugin, "type", CNI_TYPE_MAX, &type) < 0 || !type_is_valid(type))
		return err_set(e, -EBADMSG, "a plugin has no \"type\" that is the name of a file");
	struct json_object *capabilities = json_member(plugin, "capabilities");
	if (capabilities && !json_object_is_type(capabilities, json_type_object))
		return err_set(e, -EBADMSG, "plugin \"%s\": \"capabilities\" is not an object",
			       type);
	return 0;
}

static int check_plugins(struct json_object *list, struct err *e)
{
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
	if (n == 0 || n > CNI_PLUGINS_MAX)
		return err_set(e, -EBADMSG, "its \"plugins\" are not a list of 1 to %d",
			       CNI_PLUGINS_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = check_plugin(json_object_array_get_idx(list, i), e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The list of plugins, of a single configuration, too: a reference for the caller. */
static int read_plugins(struct json_object *doc, struct json_object **ret, struct err *e)
{
	cleanup_json struct json_object *list = json_object_get(json_member(doc, "plugins"));
	if (!list) {
		list = json_object_new_array();
		if (json_append(list, json_object_get(doc)) < 0)
			return err_set(e, -ENOMEM, "out of memory");
	}
	int r = check_plugins(list, e);
	if (r == 0)
		*ret = TAKE_PTR(list);
	return r;
}

/* What cni_config_read() reads after the name. */
static int read_members(struct json_object *doc, struct cni_config *c, struct err *e)
{
	if (json_get_bool(doc, "disableCheck", &c->disable_check) == -EBADMSG)
		return err_set(e, -EBADMSG, "its \"disableCheck\" is not true or false");
	int r = read_version(doc, c, e);
	if (r == 0)
		r = read_plugins(doc, &c->plugins, e);
	if (r < 0)
		return r;
	cleanup_json struct json_object *again = cni_config_write(c);
	return again ? cni_document_check(again, e) : err_set(e, -ENOMEM, "out of memory");
}

int cni_config_read(struct json_object *doc, struct cni_config *ret, struct err *e)
{
	CLEANUP(cni_config_deinit) struct cni_config c = { .name = "" };
	*ret = c;
	int r = read_name(doc, &c, e);
	if (r < 0)
		return r;
	memcpy(ret->name, c.name, sizeof(c.name));
	r = read_members(doc, &c, e);
	if (r == 0)
		cni_config_share(&c, ret);
	return r;
}

int cni_config_parse(const char *text, size_t len, struct cni_config *ret, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	*ret = (struct cni_config){ .name = "" };
	int r = cni_document_parse(text, len, &doc, e);
	return r < 0 ? r : cni_config_read(doc, ret, e);
}

struct json_object *cni_config_write(const struct cni_config *c)
{
	return json_make("name", json_object_new_string(c->name), "cniVersion",
			 json_object_new_string(c->version), "disableCheck",
			 json_object_new_boolean(c->disable_check), "plugins",
			 json_object_get(c->plugins), NULL);
}

size_t cni_config_plugins(const struct cni_config *c)
{
	return c->plugins ? json_object_array_length(c->plugins) : 0;
}

struct json_object *cni_config_plugin(const struct cni_config *c, size_t i)
{
	return json_object_array_get_idx(c->plugins, i);
}

const char *cni_config_type(const struct cni_config *c, size_t i)
{
	return json_object_get_string(json_member(cni_config_plugin(c, i), "type"));
}

bool cni_config_has_dhcp(const struct cni_config *c)
{
	for (size_t i = 0; i < cni_config_plugins(c); i++) {
		const char *type = "";
		json_get_str(json_member(cni_config_plugin(c, i), "ipam"), "type", CNI_TYPE_MAX,
			     &type);
		if (strcmp(type, "dhcp") == 0)
			return true;
	}
	return false;
}

bool cni_config_has_check(const struct cni_config *c)
{
	return strcmp(c->version, "0.3.1") != 0;
}
