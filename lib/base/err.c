/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/err.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

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
	str_make_printable(e->text);
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

int err_lower_reason(struct err *e)
{
	const char *reason = strerror(-e->code);
	size_t len = strlen(e->text), n = strlen(reason);
	if (len >= n && strcmp(e->text + len - n, reason) == 0)
		e->text[len - n] = (char)tolower((unsigned char)*reason);
	return e->code;
}
