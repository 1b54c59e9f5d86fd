/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/document.h"

#include <errno.h>
#include <json-c/linkhash.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"

/* Counts levels by descending: the parser had its own limit, so this ends. */
static size_t depth_of(struct json_object *value)
{
	size_t deepest = 0;
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member)
		{
			(void)key;
			size_t depth = depth_of(member);
			deepest = MAX(deepest, depth);
		}
		return deepest + 1;
	}
	if (!json_object_is_type(value, json_type_array))
		return 0;
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		size_t depth = depth_of(json_object_array_get_idx(value, i));
		deepest = MAX(deepest, depth);
	}
	return deepest + 1;
}

int cni_document_check(struct json_object *doc, struct err *e)
{
	cleanup_buf struct buf text;
	buf_init(&text, CNI_DOCUMENT_MAX);
	if (!json_object_is_type(doc, json_type_object))
		return err_set(e, -EBADMSG, "it is not a JSON object");
	if (depth_of(doc) > CNI_DEPTH_MAX)
		return err_set(e, -EBADMSG, "it is nested deeper than %d levels", CNI_DEPTH_MAX);
	int r = json_write(doc, false, &text);
	if (r == -EINVAL)
		return err_set(e, -EBADMSG,
			       "it has floating-point numbers, which husk cannot keep");
	if (r == -EMSGSIZE)
		return err_set(e, -EBADMSG, "it is larger than %zu KiB", CNI_DOCUMENT_MAX / 1024);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

int cni_document_parse(const char *text, size_t len, struct json_object **ret, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	if (len > CNI_DOCUMENT_MAX)
		return err_set(e, -EBADMSG, "it is larger than %zu KiB", CNI_DOCUMENT_MAX / 1024);
	if (json_count_containers(text, len) > CNI_CONTAINERS_MAX)
		return err_set(e, -EBADMSG, "it has more than %d objects and lists",
			       CNI_CONTAINERS_MAX);
	int r = json_parse(text, len, &doc);
	if (r == -EBADMSG)
		return err_set(e, r, "it is not JSON");
	if (r < 0)
		return err_set(e, r, "out of memory");
	r = cni_document_check(doc, e);
	if (r == 0)
		*ret = TAKE_PTR(doc);
	return r;
}
