/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json_tokener.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

static void cleanup_tokener(struct json_tokener **t)
{
	if (*t)
		json_tokener_free(*t);
}

/*
 * json-c takes more than JSON even when strict: strings in single quotes, NaN, control characters
 * in strings. True if @text has none of that.
 */
static bool has_json_alphabet(const char *text, size_t len)
{
	static const bool outside[UCHAR_MAX + 1] = {
		[' '] = true, ['\t'] = true,        ['\r'] = true, ['\n'] = true, ['{'] = true,
		['}'] = true, ['['] = true,         [']'] = true,  [':'] = true,  [','] = true,
		['"'] = true, ['0' ... '9'] = true, ['+'] = true,  ['-'] = true,  ['.'] = true,
		['E'] = true, ['a'] = true,         ['e'] = true,  ['f'] = true,  ['l'] = true,
		['n'] = true, ['r'] = true,         ['s'] = true,  ['t'] = true,  ['u'] = true,
	};
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (in_string ? c < 0x20 : !outside[c])
			return false;
		if (c == '"')
			in_string = !in_string;
		else if (c == '\\')
			i++; /* whatever is escaped, it does not end the string */
	}
	return true;
}

static bool only_blanks(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == '\0' || !strchr(" \t\r\n", s[i]))
			return false;
	return true;
}

/* Feeds the tokener. 0 and the first value with the offset behind it, else as json_parse(). */
static int parse_value(struct json_tokener *tok, const char *text, size_t len,
		       struct json_object **ret, size_t *ret_end)
{
	cleanup_json struct json_object *obj = json_tokener_parse_ex(tok, text, (int)len);
	*ret_end = json_tokener_get_parse_end(tok);
	if (json_tokener_get_error(tok) == json_tokener_continue) {
		/* A number or word at the very end is complete only when a NUL follows. */
		*ret_end = len;
		obj = json_tokener_parse_ex(tok, "", 1);
	}
	if (json_tokener_get_error(tok) != json_tokener_success || !obj)
		return -EBADMSG;
	*ret = TAKE_PTR(obj);
	return 0;
}

int json_parse(const char *text, size_t len, struct json_object **ret)
{
	if (len == 0 || len > INT_MAX || !has_json_alphabet(text, len))
		return -EBADMSG;
	CLEANUP(cleanup_tokener) struct json_tokener *tok = json_tokener_new_ex(JSON_DEPTH_MAX);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	cleanup_json struct json_object *obj = NULL;
	size_t end;
	int r = parse_value(tok, text, len, &obj, &end);
	if (r < 0)
		return r;
	if (!only_blanks(text + end, len - end))
		return -EBADMSG;
	*ret = TAKE_PTR(obj);
	return 0;
}

size_t json_count_containers(const char *text, size_t len)
{
	size_t n = 0;
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			in_string = !in_string;
		else if (in_string && text[i] == '\\')
			i++;
		else if (!in_string && (text[i] == '{' || text[i] == '['))
			n++;
	}
	return n;
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
	int64_t n = json_object_get_int64(value);
	/* What is beyond int64_t was saturated: to an unsigned number, or to the smallest one. */
	if (json_object_get_uint64(value) > INT64_MAX || n == INT64_MIN || n < min || n > max)
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
	/* A copy of the key would be lost if the table of members cannot grow. */
	if (!obj || json_object_object_add_ex(obj, key, value, JSON_C_OBJECT_KEY_IS_CONSTANT) < 0) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

int json_append(struct json_object *list, struct json_object *value)
{
	if (list && value && json_object_array_add(list, value) == 0)
		return 0;
	json_object_put(value);
	return -ENOMEM;
}

struct json_object *json_pairs_strv(const struct strv *sv)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	for (size_t i = 0; obj && i < sv->n; i++) {
		size_t n = strcspn(sv->v[i], "=");
		cleanup_free char *name = strndup(sv->v[i], n);
		cleanup_json struct json_object *value =
			json_object_new_string(sv->v[i] + n + (sv->v[i][n] == '='));
		/* This one does copy the key. */
		if (!name || !value || json_object_object_add(obj, name, value) < 0)
			return NULL;
		value = NULL; /* the object has it now */
	}
	return TAKE_PTR(obj);
}

struct json_object *json_make(const char *key, struct json_object *value, ...)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	bool complete = true;
	va_list members;
	va_start(members, value);
	while (key) {
		complete = json_put(obj, key, value) == 0 && complete;
		key = va_arg(members, const char *);
		value = key ? va_arg(members, struct json_object *) : NULL;
	}
	va_end(members);
	return complete ? TAKE_PTR(obj) : NULL;
}

int json_put_str(struct json_object *obj, const char *key, const char *value)
{
	if (!str_is_utf8(value))
		return -EILSEQ;
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

struct json_object *json_list_strv(const struct strv *sv)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < sv->n; i++)
		if (json_append(list, json_object_new_string(sv->v[i])) < 0)
			return NULL;
	return TAKE_PTR(list);
}

int json_put_strv(struct json_object *obj, const char *key, const struct strv *sv)
{
	for (size_t i = 0; i < sv->n; i++)
		if (!str_is_utf8(sv->v[i]))
			return -EILSEQ;
	return json_put(obj, key, json_list_strv(sv));
}

/*
 * The text of @c inside a string if it cannot stand for itself, else NULL. @space has room for
 * "\u0000" and a NUL.
 */
static const char *escape(unsigned char c, char *space)
{
	static const char named[][2] = { "\bb", "\tt", "\nn", "\ff", "\rr", "\"\"", "\\\\" };
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		if ((unsigned char)named[i][0] != c)
			continue;
		space[0] = '\\';
		space[1] = named[i][1];
		space[2] = '\0';
		return space;
	}
	if (c >= 0x20)
		return NULL;
	memcpy(space, "\\u00", 4);
	space[4] = digits[c >> 4];
	space[5] = digits[c & 15];
	space[6] = '\0';
	return space;
}

size_t json_text_len(const char *s)
{
	size_t len = 2;
	for (; *s; s++) {
		char space[7];
		const char *escaped = escape((unsigned char)*s, space);
		len += escaped ? strlen(escaped) : 1;
	}
	return len;
}

/* How many bytes of @s stand for themselves, up to the first that does not. */
static size_t plain_len(const char *s, size_t len)
{
	size_t n = 0;
	while (n < len && (unsigned char)s[n] >= 0x20 && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

static int write_string(const char *s, size_t len, struct buf *out)
{
	int r = buf_puts(out, "\"");
	while (r == 0 && len > 0) {
		char space[7];
		size_t n = plain_len(s, len);
		r = buf_append(out, s, n);
		if (r == 0 && n < len)
			r = buf_puts(out, escape((unsigned char)s[n++], space));
		s += n;
		len -= n;
	}
	return r < 0 ? r : buf_puts(out, "\"");
}

/* Where the printer is: nesting, and whether lines are broken. */
struct printer {
	struct buf *out;
	bool pretty;
	int depth;
};

/* Ends the line, if lines are broken, and indents the next one. */
static int write_break(const struct printer *p)
{
	if (!p->pretty)
		return 0;
	int r = buf_puts(p->out, "\n");
	for (int i = 0; r == 0 && i < p->depth; i++)
		r = buf_puts(p->out, "  ");
	return r;
}

static int write_value(struct printer *p, struct json_object *value);

/* What stands before a member: a comma unless it is the first, a new line. */
static int write_separator(const struct printer *p, bool first)
{
	int r = first ? 0 : buf_puts(p->out, ",");
	return r < 0 ? r : write_break(p);
}

static int write_members(struct printer *p, struct json_object *obj)
{
	bool first = true;
	const struct lh_entry *e = lh_table_head(json_object_get_object(obj));
	for (; e; e = lh_entry_next(e)) {
		const char *key = lh_entry_k(e);
		int r = write_separator(p, first);
		if (r == 0)
			r = write_string(key, strlen(key), p->out);
		if (r == 0)
			r = buf_puts(p->out, ":");
		if (r == 0)
			r = write_value(p, lh_entry_v(e));
		if (r < 0)
			return r;
		first = false;
	}
	return 0;
}

static int write_elements(struct printer *p, struct json_object *list)
{
	size_t n = json_object_array_length(list);
	for (size_t i = 0; i < n; i++) {
		int r = write_separator(p, i == 0);
		if (r == 0)
			r = write_value(p, json_object_array_get_idx(list, i));
		if (r < 0)
			return r;
	}
	return 0;
}

/* An object or a list between its brackets. */
static int write_nested(struct printer *p, struct json_object *value, bool is_list)
{
	size_t n = is_list ? json_object_array_length(value)
			   : (size_t)json_object_object_length(value);
	if (n == 0)
		return buf_puts(p->out, is_list ? "[]" : "{}");
	if (p->depth >= JSON_DEPTH_MAX)
		return -EINVAL;
	int r = buf_puts(p->out, is_list ? "[" : "{");
	p->depth++;
	if (r == 0)
		r = is_list ? write_elements(p, value) : write_members(p, value);
	p->depth--;
	if (r == 0)
		r = write_break(p);
	return r < 0 ? r : buf_puts(p->out, is_list ? "]" : "}");
}

static int write_int(struct json_object *value, struct buf *out)
{
	int64_t n = json_object_get_int64(value);
	uint64_t u = json_object_get_uint64(value);
	return n >= 0 && u > INT64_MAX ? buf_printf(out, "%" PRIu64, u)
				       : buf_printf(out, "%" PRId64, n);
}

static int write_value(struct printer *p, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return buf_puts(p->out, "null");
	case json_type_boolean:
		return buf_puts(p->out, json_object_get_boolean(value) ? "true" : "false");
	case json_type_int:
		return write_int(value, p->out);
	case json_type_string:
		return write_string(json_object_get_string(value),
				    (size_t)json_object_get_string_len(value), p->out);
	case json_type_object:
		return write_nested(p, value, false);
	case json_type_array:
		return write_nested(p, value, true);
	case json_type_double:
		break;
	}
	return -EINVAL;
}

int json_write(struct json_object *obj, bool pretty, struct buf *out)
{
	struct printer p = { .out = out, .pretty = pretty };
	return write_value(&p, obj);
}
