/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded JSON: json-c behind limits on size and depth, and typed accessors that bound every field.
 *
 * All texts that husk parses come from somebody else (guest, image, registry, user), so nothing
 * here trusts a type, a length or a count. Accessors on a parsed object borrow from it.
 */
#ifndef LIB_BASE_JSON_H
#define LIB_BASE_JSON_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/macros.h"
#include "lib/base/str.h"

/* Deeper nesting than this is refused; the deepest document husk defines has 6 levels. */
#define JSON_DEPTH_MAX 24

static inline void cleanup_json_(struct json_object **o)
{
	json_object_put(*o);
}

/* Declares a struct json_object * that gives up its reference at the end of its scope. */
#define cleanup_json CLEANUP(cleanup_json_)

/*
 * Parses exactly one JSON value of @len bytes; blanks may follow it, anything else may not. Strict:
 * no comments, no trailing commas, UTF-8 checked. -EBADMSG if it is not such a value or too deep,
 * -ENOMEM. The caller owns *ret (json_object_put()). A lone null is refused, too.
 *
 * json-c does not check every allocation of its tokener: when memory is short there, the process
 * may end with a fault. Bounded texts (FRAME_PAYLOAD_MAX, ...) keep that far away.
 */
int json_parse(const char *text, size_t len, struct json_object **ret);

/*
 * How many objects and lists the text opens. json-c spends some 800 bytes on an empty one, which
 * takes three bytes of text, so who parses long texts bounds their number first.
 */
size_t json_count_containers(const char *text, size_t len);

/*
 * The member @key of @obj, or NULL if @obj is not an object or has no such member (or it is null).
 */
struct json_object *json_member(struct json_object *obj, const char *key);

/*
 * A string member without embedded NUL, of at most @max bytes. 0 and *ret borrowed from @obj;
 * -ENOENT if absent, -EBADMSG if it is not a string, too long or holds a NUL.
 */
int json_get_str(struct json_object *obj, const char *key, size_t max, const char **ret);

/*
 * An integer member between @min and @max, INT64_MIN excepted. -ENOENT, -EBADMSG as above.
 */
int json_get_int(struct json_object *obj, const char *key, int64_t min, int64_t max, int64_t *ret);

/* A boolean member. -ENOENT, -EBADMSG as above. */
int json_get_bool(struct json_object *obj, const char *key, bool *ret);

/*
 * Appends the members of a list of strings to @sv, each of at most @max bytes; the list's own
 * maximum bounds their number. -ENOENT, -EBADMSG as above, -E2BIG, -ENOMEM.
 */
int json_get_strv(struct json_object *obj, const char *key, size_t max, struct strv *sv);

/*
 * Building: each adds a member to @obj and returns 0 or -ENOMEM; @key is not copied: a constant.
 * Those that take strings return -EILSEQ if one is not UTF-8, which JSON cannot carry. json_put()
 * takes ownership of @value, also on failure; a NULL @obj or @value is taken for a failed
 * allocation.
 */
int json_put(struct json_object *obj, const char *key, struct json_object *value);
int json_put_str(struct json_object *obj, const char *key, const char *value);
int json_put_int(struct json_object *obj, const char *key, int64_t value);
int json_put_bool(struct json_object *obj, const char *key, bool value);
int json_put_strv(struct json_object *obj, const char *key, const struct strv *sv);

/* Appends @value to @list, as json_put() does. 0 or -ENOMEM. */
int json_append(struct json_object *list, struct json_object *value);

/* A list of texts, which are UTF-8. NULL if memory is short. */
struct json_object *json_list_strv(const struct strv *sv);

/* An object of texts, of "NAME=VALUE" of UTF-8 each; the last of a name counts. NULL likewise. */
struct json_object *json_pairs_strv(const struct strv *sv);

/*
 * An object of the given members, pairs of a key and a value as json_put() takes them, with a NULL
 * behind the last one. NULL if memory is short, or was for one of the values.
 */
struct json_object *json_make(const char *key, struct json_object *value, ...)
	__attribute__((sentinel));

/* How many bytes json_write() makes of a text, quotes and escapes included. */
size_t json_text_len(const char *s);

/*
 * Appends @obj as text: on one line without blanks, or @pretty, with a line for each member and an
 * indentation of two. json-c's own printer loses bytes when memory is short. Knows all types but
 * floating-point numbers, which husk does not use: -EINVAL for those and beyond JSON_DEPTH_MAX. On
 * failure @out has part of the text. Else errors as buf_append().
 */
int json_write(struct json_object *obj, bool pretty, struct buf *out);

#endif
