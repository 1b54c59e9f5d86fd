/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/app_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void put_frame(struct buf *b, const char *json)
{
	assert_int_equal(frame_append(b, json, strlen(json)), 0);
}

static int decode(const char *json, struct app_request *ret)
{
	cleanup_buf struct buf b;
	buf_init(&b, APP_REQUEST_FRAME_MAX);
	put_frame(&b, json);
	int r = app_request_decode(&b, ret);
	assert_int_equal(buf_len(&b), 0); /* it is consumed, whatever it is */
	return r;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int verb = 0; verb < APP_VERB_COUNT_; verb++) {
		cleanup_buf struct buf b;
		struct app_request q = { .verb = (enum app_verb)verb,
					 .grace_ms = 1234,
					 .signal = verb == APP_VERB_SIGNAL ? 15 : 0 };
		struct app_request back;
		memset(q.app, 'a', AGENT_NAME_MAX);
		buf_init(&b, APP_REQUEST_FRAME_MAX);
		assert_int_equal(app_request_encode(&q, &b), 0);
		assert_int_equal(app_request_decode(&b, &back), 0);
		assert_int_equal(back.verb, verb);
		assert_string_equal(back.app, q.app);
		assert_int_equal(back.grace_ms, 1234);
		assert_int_equal(back.signal, q.signal);
		assert_int_equal(app_request_decode(&b, &back), FRAME_INCOMPLETE);
	}
	assert_string_equal(app_verb_name(APP_VERB_ADD), "app/add");
	assert_string_equal(app_verb_name(APP_VERB_RM), "app/rm");
}

#define REQUEST(method, params) \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"" method "\",\"params\":" params "}"

static void test_limits(void **state)
{
	(void)state;
	char name[AGENT_NAME_MAX + 2], json[256];
	struct app_request q;
	for (size_t len = AGENT_NAME_MAX; len <= AGENT_NAME_MAX + 1; len++) {
		memset(name, 'x', len);
		name[len] = '\0';
		snprintf(json, sizeof(json), REQUEST("app/rm", "{\"app\":\"%s\",\"grace_ms\":0}"),
			 name);
		assert_int_equal(decode(json, &q), len <= AGENT_NAME_MAX ? 0 : -EBADMSG);
	}
	for (int64_t grace = -1; grace <= AGENT_GRACE_MS_MAX + 1;
	     grace += grace <= 0 ? 1 : AGENT_GRACE_MS_MAX - 1) {
		snprintf(json, sizeof(json),
			 REQUEST("app/stop", "{\"app\":\"a\",\"grace_ms\":%lld}"),
			 (long long)grace);
		bool fits = grace >= 0 && grace <= AGENT_GRACE_MS_MAX;
		assert_int_equal(decode(json, &q), fits ? 0 : -EBADMSG);
	}
	snprintf(json, sizeof(json), REQUEST("app/stop", "{\"app\":\"a\",\"grace_ms\":%d}"),
		 AGENT_GRACE_MS_MAX + 1);
	assert_int_equal(decode(json, &q), -EBADMSG);
}

/* Signals are those that Linux has; other verbs have none. */
static void test_signals(void **state)
{
	static const struct {
		const char *number;
		int64_t taken; /* 0: it is not */
	} cases[] = { { "0", 0 },   { "1", 1 },   { "64", AGENT_SIGNAL_MAX },
		      { "65", 0 },  { "-1", 0 },  { "\"9\"", 0 },
		      { "9.5", 0 }, { "null", 0 } };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct app_request q;
		char json[256];
		snprintf(json, sizeof(json),
			 REQUEST("app/signal", "{\"app\":\"a\",\"grace_ms\":0,\"signal\":%s}"),
			 cases[i].number);
		assert_int_equal(decode(json, &q), cases[i].taken ? 0 : -EBADMSG);
		if (cases[i].taken)
			assert_int_equal(q.signal, cases[i].taken);
		snprintf(json, sizeof(json),
			 REQUEST("app/rm", "{\"app\":\"a\",\"grace_ms\":0,\"signal\":%s}"),
			 cases[i].number);
		assert_int_equal(decode(json, &q), 0);
		assert_int_equal(q.signal, 0);
	}
}

static void test_garbage(void **state)
{
	static const char *const cases[] = {
		"{}",
		"[]",
		"x",
		REQUEST("app/list", "{\"app\":\"a\",\"grace_ms\":0}"),
		REQUEST("app/add", "{}"),
		REQUEST("app/add", "[]"),
		REQUEST("app/add", "{\"app\":\"a\"}"),
		REQUEST("app/add", "{\"grace_ms\":0}"),
		REQUEST("app/add", "{\"app\":\"../a\",\"grace_ms\":0}"),
		REQUEST("app/add", "{\"app\":\"\",\"grace_ms\":0}"),
		REQUEST("app/add", "{\"app\":7,\"grace_ms\":0}"),
		REQUEST("app/add", "{\"app\":\"a\",\"grace_ms\":\"0\"}"),
		REQUEST("app/signal", "{\"app\":\"a\",\"grace_ms\":0}"),
		REQUEST("app/signal", "{\"app\":\"a\",\"grace_ms\":0,\"signal\":9,\"all\":1}"),
		"{\"jsonrpc\":\"2.0\",\"method\":\"app/add\",\"params\":{\"app\":\"a\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct app_request q;
		if (decode(cases[i], &q) != -EBADMSG)
			fail_msg("taken: %s", cases[i]);
	}
}

/* The largest frame is one that fills the buffer; one that announces more never becomes whole. */
static void test_frame_limit(void **state)
{
	static const char json[] = REQUEST("app/add", "{\"app\":\"a\",\"grace_ms\":0}");
	(void)state;
	char text[APP_REQUEST_FRAME_MAX];
	struct app_request q;
	memset(text, ' ', sizeof(text));
	memcpy(text, json, sizeof(json) - 1);
	cleanup_buf struct buf b;
	buf_init(&b, APP_REQUEST_FRAME_MAX);
	assert_int_equal(frame_append(&b, text, APP_REQUEST_FRAME_MAX - FRAME_HEADER_LEN), 0);
	assert_int_equal(app_request_decode(&b, &q), 0);
	const size_t beyond = APP_REQUEST_FRAME_MAX - FRAME_HEADER_LEN + 1;
	const unsigned char header[FRAME_HEADER_LEN] = { 0, 0, (unsigned char)(beyond >> 8),
							 (unsigned char)beyond };
	assert_int_equal(buf_append(&b, header, sizeof(header)), 0);
	assert_int_equal(app_request_decode(&b, &q), FRAME_INCOMPLETE);
	assert_int_equal(buf_append(&b, text, APP_REQUEST_FRAME_MAX - FRAME_HEADER_LEN), 0);
	assert_int_equal(app_request_decode(&b, &q), -EBADMSG);
}

/* What a reply of @why carries. */
static int64_t reply_code(const struct err *why, char text[RPC_ERROR_TEXT_MAX + 1])
{
	cleanup_buf struct buf b;
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	const char *payload;
	size_t len;
	buf_init(&b, APP_REQUEST_FRAME_MAX);
	assert_int_equal(app_request_encode_reply(why, &b), 0);
	assert_int_equal(frame_peek(&b, &payload, &len), 0);
	assert_int_equal(rpc_decode(payload, len, &msg), 0);
	assert_int_equal(msg.kind, why ? RPC_ERROR : RPC_RESULT);
	memcpy(text, msg.text, sizeof(msg.text));
	return why ? msg.code : 0;
}

static void test_replies(void **state)
{
	(void)state;
	char text[RPC_ERROR_TEXT_MAX + 1];
	struct err e = ERR_INIT;
	assert_int_equal(reply_code(NULL, text), 0);
	err_set(&e, -EIO, "because");
	assert_int_equal(reply_code(&e, text), APP_REQUEST_E_FAILED);
	assert_string_equal(text, "because");
	err_set(&e, -ESRCH, "not running");
	assert_int_equal(reply_code(&e, text), APP_REQUEST_E_NOT_RUNNING);
	err_set(&e, -EBADMSG, "what?");
	assert_int_equal(reply_code(&e, text), APP_REQUEST_E_REQUEST);
	/* The longest error there is, of what JSON has to escape, fits a reply. */
	e.code = -EIO;
	memset(e.text, '"', sizeof(e.text) - 1);
	assert_int_equal(reply_code(&e, text), APP_REQUEST_E_FAILED);
	assert_int_equal(strlen(text), RPC_ERROR_TEXT_MAX);
}

static int round_trip(void *ctx)
{
	(void)ctx;
	cleanup_buf struct buf b;
	struct app_request q = { .verb = APP_VERB_RM, .app = "a" }, back;
	buf_init(&b, APP_REQUEST_FRAME_MAX);
	int r = app_request_encode(&q, &b);
	return r < 0 ? r : app_request_decode(&b, &back);
}

static void test_out_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(round_trip, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trip),    fixture_test(test_limits),
		fixture_test(test_signals),       fixture_test(test_garbage),
		fixture_test(test_frame_limit),   fixture_test(test_replies),
		fixture_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
