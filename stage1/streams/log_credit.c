/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/log_credit.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/os/clock.h"

void log_credit_init(struct log_credit *v, struct applog *log, enum crilog_stream stream,
		     int64_t now_ns)
{
	*v = (struct log_credit){
		.log = log, .stream = stream, .credit = LOG_CREDIT_CREDIT_MAX, .at_ns = now_ns
	};
	buf_init(&v->tail, LOG_CREDIT_TAIL_MAX);
}

/* After a second without a byte there is full credit again, or at least some. */
static void reckon(struct log_credit *v, int64_t now_ns)
{
	int64_t us = MIN((now_ns - v->at_ns) / 1000, INT64_C(1000000));
	if (us <= 0)
		return;
	v->credit = MIN(v->credit + LOG_CREDIT_CREDIT_MAX * us / 1000000, LOG_CREDIT_CREDIT_MAX);
	v->at_ns = now_ns;
}

static void log_bytes(struct log_credit *v, const char *data, size_t len)
{
	uint64_t before = v->log->fed;
	applog_feed(v->log, v->stream, data, len);
	v->credit -= (int64_t)(v->log->fed - before);
}

static void leave_out(struct log_credit *v, const char *data, size_t len)
{
	size_t keep = MIN(len, LOG_CREDIT_TAIL_MAX), waits = buf_len(&v->tail);
	size_t drop = waits + keep > LOG_CREDIT_TAIL_MAX ? waits + keep - LOG_CREDIT_TAIL_MAX : 0;
	buf_consume(&v->tail, drop);
	v->left_out += drop + len - keep;
	if (buf_append(&v->tail, data + len - keep, keep) < 0)
		v->left_out += keep;
}

static void log_tail(struct log_credit *v)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "[husk: %" PRIu64 " bytes are not in the log]\n",
			 v->left_out);
	if (v->left_out > 0)
		log_bytes(v, text, (size_t)n);
	v->left_out = 0;
	if (buf_len(&v->tail) > 0)
		log_bytes(v, buf_data(&v->tail), buf_len(&v->tail));
	buf_deinit(&v->tail);
}

void log_credit_feed(struct log_credit *v, int64_t now_ns, const char *data, size_t len)
{
	log_credit_catch_up(v, now_ns);
	if (v->credit > 0)
		log_bytes(v, data, len);
	else
		leave_out(v, data, len);
}

bool log_credit_is_behind(const struct log_credit *v)
{
	return v->left_out > 0 || buf_len(&v->tail) > 0;
}

void log_credit_catch_up(struct log_credit *v, int64_t now_ns)
{
	reckon(v, now_ns);
	if (v->credit > 0 && log_credit_is_behind(v))
		log_tail(v);
}

void log_credit_end(struct log_credit *v)
{
	if (log_credit_is_behind(v))
		log_tail(v);
	applog_end(v->log, v->stream);
}

void log_credit_deinit(struct log_credit *v)
{
	buf_deinit(&v->tail);
}
