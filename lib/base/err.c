#include "lib/base/err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void make_printable(char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < 0x20 || c == 0x7f)
			*s = '?';
	}
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
	make_printable(e->text);
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
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", strerror(-code));
	make_printable(e->text);
	e->code = code;
	return code;
}

int err_context(struct err *e, const char *fmt, ...)
{
	if (!e)
		return -1;
	char old[ERR_TEXT_MAX];
	memcpy(old, e->text, sizeof(old));
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", old);
	make_printable(e->text);
	return e->code;
}
