/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void make_printable(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

int fault_set(struct fault *f, enum agent_error code, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	make_printable(f->text);
	f->code = code;
	return FAULT_SET;
}

int fault_sys(struct fault *f, enum agent_error code, int err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
	const char *why = strerrordesc_np(err < 0 ? -err : err);
	if (n >= 0 && (size_t)n < sizeof(f->text))
		snprintf(f->text + n, sizeof(f->text) - (size_t)n, ": %s", why ? why : "unknown");
	make_printable(f->text);
	f->code = code;
	return FAULT_SET;
}

int fault_err(struct fault *f, const struct err *e)
{
	return fault_set(f, e->code == -EBUSY ? AGENT_E_STATE : AGENT_E_INTERNAL, "%s", e->text);
}
