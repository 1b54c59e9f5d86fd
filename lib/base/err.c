/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* True if the bytes at @s are U+0080 to U+009F: control characters to a terminal. */
static bool is_c1_control(const unsigned char *s)
{
	return s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f;
}

static void make_printable(char *text)
{
	for (unsigned char *s = (unsigned char *)text; *s; s++) {
		if (is_c1_control(s))
			s[0] = s[1] = '?';
		else if (*s < 0x20 || *s == 0x7f)
			*s = '?';
	}
}

/* Appends ": " and @more to what e->text holds, cut at its end, and makes the line printable. */
static void finish_text(struct err *e, const char *more)
{
	const char *const parts[] = { ": ", more };
	size_t len = strlen(e->text);
	for (size_t i = 0; more && i < ARRAY_SIZE(parts); i++) {
		size_t n = strnlen(parts[i], sizeof(e->text) - 1 - len);
		memcpy(e->text + len, parts[i], n);
		len += n;
	}
	e->text[len] = '\0';
	make_printable(e->text);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	assert(code < 0);
	if (!e)
		return code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	finish_text(e, NULL);
	e->code = code;
	return code;
}

int err_sys(struct err *e, int code, const char *fmt, ...)
{
	assert(code < 0);
	if (!e)
		return code;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	finish_text(e, strerror(-code));
	e->code = code;
	return code;
}

int err_context(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -EINVAL;
	char old[ERR_TEXT_MAX];
	memcpy(old, e->text, sizeof(old));
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	finish_text(e, old);
	return e->code;
}
