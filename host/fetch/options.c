#include "host/fetch/options.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/base/err.h"

void fetch_tell(const struct fetch_options *o, const struct fetch_progress *p)
{
	if (o->progress)
		o->progress(o->ctx, p);
}

void fetch_note(const struct fetch_options *o, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	if (!o->note)
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->note(o->ctx, text);
}
