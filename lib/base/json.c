#include "lib/base/json.h"

#include <errno.h>
#include <json-c/json_tokener.h>
#include <limits.h>
#include <string.h>

static void cleanup_tokener(struct json_tokener **t)
{
	if (*t)
		json_tokener_free(*t);
}

static bool only_blanks(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\r\n", s[i]) || s[i] == '\0')
			return false;
	return true;
}

int json_parse(const char *text, size_t len, struct json_object **ret)
{
	if (len == 0 || len > INT_MAX)
		return -EBADMSG;
	CLEANUP(cleanup_tokener) struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH_MAX);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	cleanup_json struct json_object *obj = json_tokener_parse_ex(tok, text, (int)len);
	enum json_tokener_error e = json_tokener_get_error(tok);
	if (e == json_tokener_continue) /* a bare number ends only with the text */
		obj = json_tokener_parse_ex(tok, "", 1), e = json_tokener_get_error(tok);
	size_t end = json_tokener_get_parse_end(tok);
	if (e != json_tokener_success || !obj)
		return -EBADMSG;
	if (end < len && !only_blanks(text + end, len - end))
		return -EBADMSG;
	*ret = TAKE_PTR(obj);
	return 0;
}

struct json_object *json_member(struct json_object *obj, const char *key)
{
	struct json_object *value;
	if (!obj || !json_object_is_type(obj, json_type_object))
		return NULL;
	return json_object_object_get_ex(obj, key, &value) ? value : NULL;
}

/* The text of a JSON string if it is one, at most @max bytes long and without NUL. */
static int checked_string(struct json_object *value, size_t max, const char **ret)
{
	if (!json_object_is_type(value, json_type_string))
		return -EBADMSG;
	const char *s = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value);
	if (len > max || memchr(s, '\0', len))
		return -EBADMSG;
	*ret = s;
	return 0;
}

int json_get_str(struct json_object *obj, const char *key, size_t max, const char **ret)
{
	struct json_object *value = json_member(obj, key);
	return value ? checked_string(value, max, ret) : -ENOENT;
}

int json_get_int(struct json_object *obj, const char *key, int64_t min, int64_t max, int64_t *ret)
{
	struct json_object *value = json_member(obj, key);
	if (!value)
		return -ENOENT;
	if (!json_object_is_type(value, json_type_int))
		return -EBADMSG;
	errno = 0;
	int64_t n = json_object_get_int64(value);
	if (errno != 0 || n < min || n > max)
		return -EBADMSG;
	*ret = n;
	return 0;
}

int json_get_bool(struct json_object *obj, const char *key, bool *ret)
{
	struct json_object *value = json_member(obj, key);
	if (!value)
		return -ENOENT;
	if (!json_object_is_type(value, json_type_boolean))
		return -EBADMSG;
	*ret = json_object_get_boolean(value);
	return 0;
}

int json_get_strv(struct json_object *obj, const char *key, size_t max, struct strv *sv)
{
	struct json_object *list = json_member(obj, key);
	if (!list)
		return -ENOENT;
	if (!json_object_is_type(list, json_type_array))
		return -EBADMSG;
	size_t n = json_object_array_length(list);
	if (n > sv->max - sv->n)
		return -E2BIG;
	for (size_t i = 0; i < n; i++) {
		const char *s;
		int r = checked_string(json_object_array_get_idx(list, i), max, &s);
		if (r == 0)
			r = strv_add(sv, s);
		if (r < 0)
			return r;
	}
	return 0;
}

int json_put(struct json_object *obj, const char *key, struct json_object *value)
{
	if (!value)
		return -ENOMEM;
	if (!obj || json_object_object_add(obj, key, value) < 0) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

int json_put_str(struct json_object *obj, const char *key, const char *value)
{
	return json_put(obj, key, json_object_new_string(value));
}

int json_put_int(struct json_object *obj, const char *key, int64_t value)
{
	return json_put(obj, key, json_object_new_int64(value));
}

int json_put_bool(struct json_object *obj, const char *key, bool value)
{
	return json_put(obj, key, json_object_new_boolean(value));
}

int json_put_strv(struct json_object *obj, const char *key, const struct strv *sv)
{
	cleanup_json struct json_object *list = json_object_new_array();
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < sv->n; i++) {
		struct json_object *s = json_object_new_string(sv->v[i]);
		if (!s)
			return -ENOMEM;
		if (json_object_array_add(list, s) < 0) {
			json_object_put(s);
			return -ENOMEM;
		}
	}
	return json_put(obj, key, TAKE_PTR(list));
}
