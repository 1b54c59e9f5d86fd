/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_image.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

#define LABELS_MAX ((size_t)64) /* of an image, that are looked at */

/* What appc's tools take for an identifier, whatever stands between the edges. */
static bool is_identifier(const char *name, size_t len)
{
	static const char edges[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	return len > 0 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-._~/") >= len &&
	       strchr(edges, name[0]) && strchr(edges, name[len - 1]);
}

static void make_identifier(const char *name, size_t len, char out[POD_IMAGE_NAME_MAX + 1])
{
	size_t n = 0;
	char separator = '\0';
	if (is_identifier(name, len)) {
		memcpy(out, name, len);
		out[len] = '\0';
		return;
	}
	for (size_t i = 0; i < len && n + (separator != '\0') < POD_IMAGE_NAME_MAX; i++) {
		char c = (char)tolower((unsigned char)name[i]);
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
			if (separator && n > 0)
				out[n++] = separator;
			separator = '\0';
			out[n++] = c;
		} else if (!separator) {
			separator = c && strchr("-._~/", c) ? c : '-';
		}
	}
	out[n] = '\0';
}

/* "NAME:VERSION", or what there is of it. 0 or -ENAMETOOLONG. */
static int pod_image_join(const char *name, const char *version, char out[POD_IMAGE_NAME_MAX + 1])
{
	int n = snprintf(out, POD_IMAGE_NAME_MAX + 1, "%s%s%s", name, *version ? ":" : "", version);
	return n < 0 || n > POD_IMAGE_NAME_MAX ? -ENAMETOOLONG : 0;
}

void pod_image_split(const char *name, struct pod_image_name *ret)
{
	char again[POD_IMAGE_NAME_MAX + 1];
	size_t len = strcspn(name, "@"), colon = len;
	for (size_t i = 0; i < len; i++)
		if (name[i] == ':' || name[i] == '/')
			colon = name[i] == ':' ? i : len;
	make_identifier(name, colon, ret->identifier);
	ret->version[0] = '\0';
	if (colon < len)
		snprintf(ret->version, sizeof(ret->version), "%.*s", (int)(len - colon - 1),
			 name + colon + 1);
	ret->whole = (*ret->identifier || !*name) &&
		     pod_image_join(ret->identifier, ret->version, again) == 0 &&
		     strcmp(again, name) == 0;
}

static int add_label(struct json_object *list, const char *name, const char *value)
{
	cleanup_json struct json_object *label = json_object_new_object();
	if (json_put_str(label, "name", name) < 0 || json_put_str(label, "value", value) < 0)
		return -ENOMEM;
	return json_append(list, TAKE_PTR(label));
}

struct json_object *pod_image_labels(const char *version)
{
	cleanup_json struct json_object *list = json_object_new_array();
	if ((*version && add_label(list, "version", version) < 0) ||
	    add_label(list, "os", POD_HOST_OS) < 0 || add_label(list, "arch", POD_HOST_ARCH) < 0)
		return NULL;
	return TAKE_PTR(list);
}

struct json_object *pod_image_format(const char *id, const char *name)
{
	struct pod_image_name parts;
	cleanup_json struct json_object *image = json_object_new_object();
	pod_image_split(name, &parts);
	if (json_put_str(image, "id", id) < 0)
		return NULL;
	if (*parts.identifier && (json_put_str(image, "name", parts.identifier) < 0 ||
				  json_put(image, "labels", pod_image_labels(parts.version)) < 0))
		return NULL;
	return TAKE_PTR(image);
}

/* The value of the label "version", borrowed; "" if there is none. */
static int find_version(struct json_object *image, const char **ret)
{
	struct json_object *list = json_member(image, "labels");
	*ret = "";
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > LABELS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *label = json_object_array_get_idx(list, i);
		const char *name;
		if (json_get_str(label, "name", POD_IMAGE_NAME_MAX, &name) < 0)
			return -EBADMSG;
		if (strcmp(name, "version") == 0)
			return json_get_str(label, "value", POD_IMAGE_NAME_MAX, ret);
	}
	return 0;
}

int pod_image_read(struct json_object *image, char id[POD_IMAGE_ID_MAX + 1],
		   char name[POD_IMAGE_NAME_MAX + 1], struct err *e)
{
	const char *text, *version;
	if (json_get_str(image, "id", POD_IMAGE_ID_MAX, &text) < 0)
		return err_set(e, -EBADMSG, "\"id\" is missing, no string or longer than %d bytes",
			       POD_IMAGE_ID_MAX);
	str_copy(id, POD_IMAGE_ID_MAX + 1, text);
	int r = json_get_str(image, "name", POD_IMAGE_NAME_MAX, &text);
	if (r < 0 && r != -ENOENT)
		return err_set(e, -EBADMSG, "\"name\" is not a string of at most %d bytes",
			       POD_IMAGE_NAME_MAX);
	if (find_version(image, &version) < 0)
		return err_set(e, -EBADMSG,
			       "\"labels\" of the image is not a list of at most %zu labels",
			       LABELS_MAX);
	if (pod_image_join(r == 0 ? text : "", r == 0 ? version : "", name) < 0)
		return err_set(e, -EBADMSG,
			       "name and version of the image are longer than %d bytes",
			       POD_IMAGE_NAME_MAX);
	return 0;
}
