/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and string lists with named bounds. */
#ifndef LIB_BASE_STR_H
#define LIB_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/macros.h"

/* True if @s begins with @prefix. */
bool str_starts(const char *s, const char *prefix);

/*
 * True if the path @s is the directory @dir, or below it, by what is written: "/" is no such @dir.
 */
bool str_is_path_in(const char *s, const char *dir);

/* True if @s ends with @suffix. */
bool str_ends(const char *s, const char *suffix);

/* True if @s is one of the @n texts @list. */
bool str_is_one_of(const char *s, const char *const *list, size_t n);

/*
 * Copies @src with its NUL into @dst of @size bytes. -ENAMETOOLONG (and @dst empty) if it does not
 * fit: a name is never cut silently.
 */
int str_copy(char *dst, size_t size, const char *src);

/* True if @s is 1 to @max bytes, all of them printable ASCII (0x20..0x7e). */
bool str_is_printable(const char *s, size_t max);

/* True if @s is UTF-8 (RFC 3629: no overlong forms, no surrogates). */
bool str_is_utf8(const char *s);

/*
 * Copies text for people into @dst of @size bytes (at least 1), cut if need be. The result is UTF-8
 * whatever @src is: bytes that are not are replaced by '?', a character is never cut in two.
 */
void str_copy_text(char *dst, size_t size, const char *src);

/*
 * The bytes of the character at @s if it would steer a terminal or the order of what is read, else
 * 0: see str_make_printable().
 */
size_t str_steering_len(const char *s);

/*
 * Replaces each byte of what would steer a terminal or the order of what is read by '?': control
 * characters, U+0080 to U+009F among them, line separators (U+2028, U+2029), and the controls of
 * bidirectional text (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069).
 */
void str_make_printable(char *text);

/* True if @s is 1 to @max bytes of UTF-8 in which str_make_printable() has nothing to replace. */
bool str_is_text(const char *s, size_t max);

/* Copies as str_copy_text(), then makes it printable. */
void str_copy_printable(char *dst, size_t size, const char *src);

/* The characters of @s, UTF-8, whatever columns they take. */
size_t str_chars(const char *s);

/* The bytes that the first @n characters of @s, UTF-8, take; all if it has fewer. */
size_t str_chars_len(const char *s, size_t n);

/*
 * A list of strings that owns its members, bounded by a number of members. @v is always
 * NULL-terminated once something was added, so it serves as argv.
 */
struct strv {
	char **v;   /* owned, members owned; NULL while empty */
	size_t n;   /* members, without the terminating NULL */
	size_t max; /* most members ever held */
};

/* Prepares an empty list of at most @max members. Allocates nothing. */
void strv_init(struct strv *sv, size_t max);

/* Frees members and storage; usable again afterwards. Accepts NULL. */
void strv_deinit(struct strv *sv);

#define cleanup_strv CLEANUP(strv_deinit)

/* Appends a copy of @s. -E2BIG at the maximum, -ENOMEM. */
int strv_add(struct strv *sv, const char *s);

/* Appends formatted text as one member. Errors as strv_add(). */
int strv_addf(struct strv *sv, const char *fmt, ...) PRINTF_FORMAT(2, 3);

/* True if @s is a member. */
bool strv_has(const struct strv *sv, const char *s);

/* Appends copies of all members of @from. Errors as strv_add(); members added before it stay. */
int strv_extend(struct strv *sv, const struct strv *from);

/* The value of the first "NAME=value" member, or NULL. The list keeps ownership. */
const char *strv_env_get(const struct strv *sv, const char *name);

/* Sets NAME to value, replacing the first member "NAME=..." in place. Errors as strv_add(). */
int strv_env_set(struct strv *sv, const char *name, const char *value);

#endif
