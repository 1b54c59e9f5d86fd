/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for the end of what they asked for. */
#ifndef STAGE1_APPS_WAITERS_H
#define STAGE1_APPS_WAITERS_H

#include <stdint.h>

#include "lib/base/err.h"
#include "stage1/apps/app_request.h"

#define WAITERS_MAX 32 /* as many as apps; a user has one or two */

struct waiters {
	struct {
		uint64_t token; /* 0: free */
		enum app_verb verb;
		const void *app; /* only compared */
	} v[WAITERS_MAX];
};

/* How a request that waited has ended; @why is NULL if it succeeded. */
typedef void (*waiters_done_fn)(void *ctx, uint64_t token, const struct err *why);

/* The request @token, not 0, waits for @verb of @app. 0, or -EAGAIN if too many do. */
int waiters_add(struct waiters *w, const void *app, enum app_verb verb, uint64_t token);

/* Ends those that wait for @verb of @app: of any verb, if it is APP_VERB_COUNT_. */
void waiters_end(struct waiters *w, const void *app, enum app_verb verb, const struct err *why,
		 waiters_done_fn done, void *ctx);

/* Nobody waits for the end of the request @token any more. */
void waiters_forget(struct waiters *w, uint64_t token);

#endif
