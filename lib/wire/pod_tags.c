/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_tags.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"

void pod_tags_init(struct pod_tags *t)
{
	strv_init(&t->annotations, POD_TAGS_MAX);
	strv_init(&t->labels, POD_TAGS_MAX);
	strv_init(&t->notes, POD_TAGS_MAX);
}

void pod_tags_deinit(struct pod_tags *t)
{
	if (!t)
		return;
	strv_deinit(&t->annotations);
	strv_deinit(&t->labels);
	strv_deinit(&t->notes);
}

int pod_tags_copy(struct pod_tags *t, const struct pod_tags *from)
{
	int r = strv_extend(&t->annotations, &from->annotations);
	if (r == 0)
		r = strv_extend(&t->notes, &from->notes);
	return r < 0 ? r : strv_extend(&t->labels, &from->labels);
}

int pod_tags_add(struct strv *list, const char *text, struct err *e)
{
	size_t len = strcspn(text, "=");
	if (len == 0 || text[len] != '=' || len > POD_TAG_NAME_MAX ||
	    strlen(text + len + 1) > POD_TAG_VALUE_MAX || !str_is_utf8(text))
		return err_set(
			e, -EINVAL,
			"\"%.80s\" is not of the form NAME=VALUE, with at most %d and %d bytes of "
			"UTF-8",
			text, POD_TAG_NAME_MAX, POD_TAG_VALUE_MAX);
	for (size_t i = 0; i < list->n; i++)
		if (strncmp(list->v[i], text, len + 1) == 0)
			return err_set(e, -EEXIST, "\"%.*s\" is there twice",
				       (int)MIN(len, (size_t)80), text);
	int r = strv_add(list, text);
	return r < 0 ? err_sys(e, r, "at most %d of a kind", POD_TAGS_MAX) : 0;
}

int pod_tags_write(const struct pod_tags *t, struct json_object *obj)
{
	int r = 0;
	if (t->annotations.n > 0)
		r = json_put(obj, "userAnnotations", json_pairs_strv(&t->annotations));
	if (r == 0 && t->labels.n > 0)
		r = json_put(obj, "userLabels", json_pairs_strv(&t->labels));
	return r;
}

static int read_list(struct json_object *obj, const char *key, struct strv *list, struct err *e)
{
	struct json_object *tags = json_member(obj, key);
	if (!tags)
		return 0;
	if (!json_object_is_type(tags, json_type_object))
		return err_set(e, -EBADMSG, "\"%s\" is not an object", key);
	json_object_object_foreach(tags, name, value)
	{
		char text[POD_TAG_NAME_MAX + POD_TAG_VALUE_MAX + 2];
		const char *s;
		(void)value;
		int r = strlen(name) > POD_TAG_NAME_MAX || strchr(name, '=') ? -EBADMSG : 0;
		if (r == 0)
			r = json_get_str(tags, name, POD_TAG_VALUE_MAX, &s);
		if (r < 0)
			return err_set(
				e, -EBADMSG,
				"\"%s\": \"%.80s\" is not a text, or too long, or has a \"=\" in its name",
				key, name);
		snprintf(text, sizeof(text), "%s=%s", name, s);
		r = pod_tags_add(list, text, e);
		if (r < 0) {
			err_context(e, "\"%s\"", key);
			return r == -ENOMEM ? r : -EBADMSG;
		}
	}
	return 0;
}

int pod_tags_read(struct json_object *obj, struct pod_tags *t, struct err *e)
{
	int r = read_list(obj, "userAnnotations", &t->annotations, e);
	return r < 0 ? r : read_list(obj, "userLabels", &t->labels, e);
}
