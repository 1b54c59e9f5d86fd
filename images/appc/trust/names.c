/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/names.h"

#include <errno.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"

#define DIGITS_SHA1   ((size_t)40) /* fingerprint of a key of version 4 */
#define DIGITS_SHA256 TRUST_FINGERPRINT_MAX

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_component(const char *s, size_t len)
{
	if (len == 0 || !is_alnum(s[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_alnum(s[i]) && (!s[i] || !strchr("-._~:", s[i])))
			return false;
	return true;
}

int trust_check_name(const char *what, const char *name, struct err *e)
{
	const char *scheme = strstr(name, "://");
	if (scheme)
		return err_set(e, -EINVAL, "%s must not contain a URL scheme, omit %.*s://", what,
			       (int)MIN(scheme - name, (ptrdiff_t)TRUST_NAME_MAX), name);
	if (!*name || strlen(name) > TRUST_NAME_MAX)
		return err_set(e, -EINVAL, "%s has 1 to %zu bytes, like example.com/app", what,
			       TRUST_NAME_MAX);
	for (const char *at = name;; at++) {
		size_t len = strcspn(at, "/");
		if (!is_component(at, len))
			return err_set(
				e, -EINVAL,
				"%s \"%s\" is not a name like example.com/app (each part begins "
				"with a letter or digit and has only those and -._~:)",
				what, name);
		at += len;
		if (!*at)
			return 0;
	}
}

bool trust_is_fingerprint(const char *s)
{
	return hex_is_valid(s, DIGITS_SHA1) || hex_is_valid(s, DIGITS_SHA256);
}

int trust_copy_fingerprint(char out[TRUST_FINGERPRINT_MAX + 1], const char *s)
{
	char lower[TRUST_FINGERPRINT_MAX + 1];
	if (str_copy(lower, sizeof(lower), s) < 0)
		return -EINVAL;
	for (char *c = lower; *c; c++)
		if (*c >= 'A' && *c <= 'F')
			*c = (char)(*c - 'A' + 'a');
	if (!trust_is_fingerprint(lower))
		return -EINVAL;
	return str_copy(out, TRUST_FINGERPRINT_MAX + 1, lower);
}

void trust_format_fingerprint(const char *fingerprint, char out[TRUST_FORMATTED_MAX + 1])
{
	size_t len = strnlen(fingerprint, TRUST_FINGERPRINT_MAX), n = 0;
	for (size_t i = 0; i < len; i++) {
		char c = fingerprint[i];
		if (i > 0 && i % 4 == 0)
			out[n++] = ' ';
		if (i > 0 && i * 2 == len)
			out[n++] = ' ';
		out[n++] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
	}
	out[n] = '\0';
}

void trust_copy_identity(char out[TRUST_IDENTITY_MAX + 1], const char *s)
{
	char *to = out;
	str_copy_text(out, TRUST_IDENTITY_MAX + 1, s);
	for (const char *from = out; *from;) {
		size_t skip = str_steering_len(from);
		*to++ = skip ? '?' : *from;
		from += MAX(skip, (size_t)1);
	}
	*to = '\0';
}
