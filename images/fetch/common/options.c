/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/common/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/os/clock.h"

#define TELL_NS (NS_PER_SEC / 10)

static const char *const policies[PULL_POLICIES] = {
	[PULL_NEVER] = "never",
	[PULL_NEW] = "new",
	[PULL_UPDATE] = "update",
};

int pull_policy_parse(const char *text, enum pull_policy *ret, struct err *e)
{
	for (enum pull_policy p = 0; p < PULL_POLICIES; p++) {
		if (strcmp(policies[p], text) == 0) {
			*ret = p;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "invalid pull policy \"%s\" (never, new or update)", text);
}

int fetch_load_credentials(struct fetch_options *o, struct err *e)
{
	return o->credentials ? o->credentials(o->config_ctx, &o->auth, &o->docker_auth, e) : 0;
}

void fetch_tell(const struct fetch_options *o, const struct fetch_progress *p)
{
	if (o->progress)
		o->progress(o->ctx, p);
}

void fetch_meter_begin(struct fetch_meter *m, const struct fetch_options *o, const char *what,
		       uint64_t total)
{
	*m = (struct fetch_meter){
		.options = o,
		.state = { .what = what, .total = total },
		.told_ns = clock_monotonic_ns(),
	};
}

void fetch_meter_update(struct fetch_meter *m, uint64_t done)
{
	m->state.done = done;
	if (!m->options->progress)
		return;
	int64_t now = clock_monotonic_ns();
	if (now - m->told_ns < TELL_NS)
		return;
	m->told_ns = now;
	fetch_tell(m->options, &m->state);
}

void fetch_meter_add(void *meter, const void *data, size_t len)
{
	struct fetch_meter *m = meter;
	(void)data;
	fetch_meter_update(m, m->state.done + len);
}

void fetch_meter_end(struct fetch_meter *m)
{
	m->state.ended = true;
	fetch_tell(m->options, &m->state);
}

void fetch_note(const struct fetch_options *o, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	if (!o->note)
		return;
	va_list ap;
	va_start(ap, fmt);
	int n = snprintf(text, sizeof(text), "image: ");
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	o->note(o->ctx, text);
}
