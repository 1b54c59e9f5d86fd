/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anybody who may open control.sock sends to the supervisor. A request that is taken keeps the
 * limits and survives encoding; the bytes come to an end, as a request, as nonsense, or as too few.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/frame.h"
#include "stage1/apps/app_request.h"

static void check(bool property)
{
	if (!property)
		abort();
}

static void check_request(const struct app_request *q)
{
	struct app_request back;
	cleanup_buf struct buf out;
	buf_init(&out, APP_REQUEST_FRAME_MAX);
	check(q->verb >= 0 && q->verb < APP_VERB_COUNT_ && agent_name_is_valid(q->app));
	check(q->grace_ms >= 0 && q->grace_ms <= AGENT_GRACE_MS_MAX);
	check(q->signal >= (q->verb == APP_VERB_SIGNAL) && q->signal <= AGENT_SIGNAL_MAX);
	check(app_request_encode(q, &out) == 0 && app_request_decode(&out, &back) == 0);
	check(back.verb == q->verb && back.grace_ms == q->grace_ms && back.signal == q->signal);
	check(strcmp(back.app, q->app) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf in;
	struct app_request q;
	buf_init(&in, APP_REQUEST_FRAME_MAX);
	if (buf_append(&in, data, MIN(size, APP_REQUEST_FRAME_MAX)) < 0)
		return 0;
	size_t before = buf_len(&in);
	int r = app_request_decode(&in, &q);
	check(r == 0 || r == FRAME_INCOMPLETE || r == -EBADMSG);
	check(r != FRAME_INCOMPLETE || buf_len(&in) == before);
	if (r == 0)
		check_request(&q);
	return 0;
}
