/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/waiters.h"

#include <errno.h>

int waiters_add(struct waiters *w, const void *app, enum app_verb verb, uint64_t token)
{
	for (size_t i = 0; i < WAITERS_MAX; i++) {
		if (w->v[i].token != 0)
			continue;
		w->v[i].token = token;
		w->v[i].verb = verb;
		w->v[i].app = app;
		return 0;
	}
	return -EAGAIN;
}

void waiters_end(struct waiters *w, const void *app, enum app_verb verb, const struct err *why,
		 waiters_done_fn done, void *ctx)
{
	for (size_t i = 0; i < WAITERS_MAX; i++) {
		uint64_t token = w->v[i].token;
		bool is_meant = verb == APP_VERB_COUNT_ || w->v[i].verb == verb;
		if (token == 0 || w->v[i].app != app || !is_meant)
			continue;
		w->v[i].token = 0;
		done(ctx, token, why);
	}
}

void waiters_forget(struct waiters *w, uint64_t token)
{
	for (size_t i = 0; i < WAITERS_MAX; i++)
		if (w->v[i].token == token)
			w->v[i].token = 0;
}
