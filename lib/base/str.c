/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_is_path_in(const char *s, const char *dir)
{
	size_t n = strlen(dir);
	return str_starts(s, dir) && (s[n] == '/' || s[n] == '\0');
}

bool str_is_one_of(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(s, list[i]) == 0)
			return true;
	return false;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);
	return n >= m && strcmp(s + n - m, suffix) == 0;
}

int str_copy(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);
	if (n >= size) {
		if (size > 0)
			dst[0] = '\0';
		return -ENAMETOOLONG;
	}
	memcpy(dst, src, n + 1);
	return 0;
}

bool str_is_printable(const char *s, size_t max)
{
	size_t n = strnlen(s, max + 1);
	if (n == 0 || n > max)
		return false;
	for (size_t i = 0; i < n; i++)
		if (s[i] < 0x20 || s[i] > 0x7e)
			return false;
	return true;
}

/* Bytes of the sequence that begins with @c, and the bounds of the byte behind it. 0: none does. */
static size_t utf8_sequence(unsigned char c, unsigned char *ret_min, unsigned char *ret_max)
{
	*ret_min = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80; /* else it would be overlong */
	*ret_max = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf; /* surrogates; beyond U+10FFFF */
	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Bytes of the character at @s, which is not its end; 0 if there is no valid one. */
static size_t utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char min, max;
	size_t n = utf8_sequence(s[0], &min, &max);
	for (size_t i = 1; i < n; i++) {
		if (s[i] < min || s[i] > max)
			return 0;
		min = 0x80;
		max = 0xbf;
	}
	return n;
}

bool str_is_utf8(const char *s)
{
	for (size_t n; *s; s += n) {
		n = utf8_len(s);
		if (n == 0)
			return false;
	}
	return true;
}

size_t str_steering_len(const char *s)
{
	const unsigned char *c = (const unsigned char *)s;
	if (c[0] < 0x20 || c[0] == 0x7f)
		return 1;
	if (c[0] == 0xc2)
		return c[1] >= 0x80 && c[1] <= 0x9f ? 2 : 0;
	if (c[0] == 0xd8)
		return c[1] == 0x9c ? 2 : 0;
	if (c[0] != 0xe2)
		return 0;
	if (c[1] == 0x80) /* U+200E, U+200F, U+2028 to U+202E */
		return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae) ? 3 : 0;
	return c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9 ? 3 : 0;
}

void str_make_printable(char *text)
{
	for (char *s = text; *s;) {
		size_t n = str_steering_len(s);
		memset(s, '?', n);
		s += MAX(n, (size_t)1);
	}
}

void str_copy_text(char *dst, size_t size, const char *src)
{
	size_t used = 0;
	while (*src) {
		size_t n = utf8_len(src);
		if (MAX(n, (size_t)1) > size - 1 - used)
			break;
		memcpy(dst + used, n ? src : "?", MAX(n, (size_t)1));
		used += MAX(n, (size_t)1);
		src += MAX(n, (size_t)1);
	}
	dst[used] = '\0';
}

bool str_is_text(const char *s, size_t max)
{
	size_t len = strnlen(s, max + 1);
	if (len == 0 || len > max || !str_is_utf8(s))
		return false;
	while (*s && str_steering_len(s) == 0)
		s++;
	return !*s;
}

void str_copy_printable(char *dst, size_t size, const char *src)
{
	str_copy_text(dst, size, src);
	str_make_printable(dst);
}

static bool is_continued(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t str_chars(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += !is_continued(*s);
	return n;
}

size_t str_chars_len(const char *s, size_t n)
{
	size_t len = 0;
	for (; s[len]; len++)
		if (!is_continued(s[len]) && n-- == 0)
			break;
	return len;
}

void strv_init(struct strv *sv, size_t max)
{
	*sv = (struct strv){ .max = max };
}

void strv_deinit(struct strv *sv)
{
	if (!sv)
		return;
	for (size_t i = 0; i < sv->n; i++)
		free(sv->v[i]);
	free(sv->v);
	strv_init(sv, sv->max);
}

/* Appends @s and takes ownership of it, also on failure. */
static int strv_add_owned(struct strv *sv, char *s)
{
	if (!s)
		return -ENOMEM;
	if (sv->n >= sv->max) {
		free(s);
		return -E2BIG;
	}
	if (!GROW(sv->v, sv->n + 1)) { /* the NULL behind it is a member, too */
		free(s);
		return -ENOMEM;
	}
	sv->v[sv->n++] = s;
	sv->v[sv->n] = NULL;
	return 0;
}

int strv_add(struct strv *sv, const char *s)
{
	return strv_add_owned(sv, strdup(s));
}

int strv_addf(struct strv *sv, const char *fmt, ...)
{
	char *s;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return strv_add_owned(sv, n < 0 ? NULL : s);
}

bool strv_has(const struct strv *sv, const char *s)
{
	return str_is_one_of(s, (const char *const *)sv->v, sv->n);
}

int strv_extend(struct strv *sv, const struct strv *from)
{
	for (size_t i = 0; i < from->n; i++) {
		int r = strv_add(sv, from->v[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Index of the first member "NAME=...", or sv->n. */
static size_t env_index(const struct strv *sv, const char *name)
{
	size_t len = strlen(name);
	size_t i;
	for (i = 0; i < sv->n; i++)
		if (strncmp(sv->v[i], name, len) == 0 && sv->v[i][len] == '=')
			break;
	return i;
}

const char *strv_env_get(const struct strv *sv, const char *name)
{
	size_t i = env_index(sv, name);
	return i < sv->n ? sv->v[i] + strlen(name) + 1 : NULL;
}

int strv_env_set(struct strv *sv, const char *name, const char *value)
{
	size_t i = env_index(sv, name);
	if (i == sv->n)
		return strv_addf(sv, "%s=%s", name, value);
	char *s;
	if (asprintf(&s, "%s=%s", name, value) < 0)
		return -ENOMEM;
	free(sv->v[i]);
	sv->v[i] = s;
	return 0;
}
