/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/rpc.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/frame.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static int decode(const char *text, struct rpc_msg *m)
{
	return rpc_decode(text, strlen(text), m);
}

/* Decodes the only frame of @b and empties it. */
static int decode_frame(struct buf *b, struct rpc_msg *m)
{
	int r = rpc_take(b, m);
	assert_int_equal(buf_len(b), 0);
	return r;
}

static struct json_object *body_of(int n)
{
	struct json_object *body = json_object_new_object();
	assert_int_equal(json_put_int(body, "n", n), 0);
	return body;
}

static void assert_body(const struct rpc_msg *m, int n)
{
	int64_t got;
	assert_int_equal(json_get_int(m->body, "n", n, n, &got), 0);
}

static void test_round_trip(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	struct rpc_msg m = { 0 };
	assert_int_equal(rpc_append_request(&b, RPC_ID_MAX, "app.start", body_of(1)), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_int_equal(m.kind, RPC_REQUEST);
	assert_true(m.id == RPC_ID_MAX);
	assert_string_equal(m.method, "app.start");
	assert_body(&m, 1);
	rpc_msg_deinit(&m);

	assert_int_equal(rpc_append_notification(&b, "app.exited", body_of(2)), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_int_equal(m.kind, RPC_NOTIFICATION);
	assert_body(&m, 2);
	rpc_msg_deinit(&m);

	assert_int_equal(rpc_append_result(&b, 0, body_of(3)), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_int_equal(m.kind, RPC_RESULT);
	assert_int_equal(m.id, 0);
	assert_body(&m, 3);
	rpc_msg_deinit(&m);

	assert_int_equal(rpc_append_error(&b, 7, -32602, "no \"such\"\n app"), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_int_equal(m.kind, RPC_ERROR);
	assert_int_equal(m.id, 7);
	assert_int_equal(m.code, -32602);
	assert_string_equal(m.text, "no \"such\"? app");
	rpc_msg_deinit(&m);
	rpc_msg_deinit(NULL);
}

static void test_null_body_is_empty_object(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	assert_int_equal(rpc_append_result(&b, 1, NULL), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_true(json_object_is_type(m.body, json_type_object));
	assert_int_equal(json_object_object_length(m.body), 0);
}

static void test_decode_accepts(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} good[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}", RPC_REQUEST },
		{ "{\"method\":\"m\",\"id\":0,\"jsonrpc\":\"2.0\",\"more\":[]}", RPC_REQUEST },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":null}", RPC_NOTIFICATION },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":false}", RPC_RESULT },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"\"}}",
		  RPC_ERROR },
	};
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
		if (decode(good[i].text, &m) != 0)
			fail_msg("refused: %s", good[i].text);
		assert_int_equal(m.kind, good[i].kind);
	}
}

static void test_decode_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"7",
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]",
		"{\"jsonrpc\":\"2.0\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1}",
		"{\"id\":1,\"method\":\"m\"}",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"m\"}",
		"{\"jsonrpc\":2.0,\"id\":1,\"method\":\"m\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"m\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":4294967296,\"method\":\"m\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"m\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"m\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}",
		"{\"jsonrpc\":\"2.0\",\"result\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":[]}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":2147483648,\"message\":\"\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":[]}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} {}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rpc_msg m = { .id = 4711 };
		if (decode(bad[i], &m) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(m.id, 4711); /* written on success only */
		assert_null(m.body);
	}
}

static void test_method_limit(void **state)
{
	(void)state;
	char method[RPC_METHOD_MAX + 2];
	memset(method, 'm', sizeof(method));
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	method[RPC_METHOD_MAX + 1] = '\0';
	assert_int_equal(rpc_append_notification(&b, method, NULL), 0);
	assert_int_equal(decode_frame(&b, &m), -EBADMSG);
	method[RPC_METHOD_MAX] = '\0';
	assert_int_equal(rpc_append_notification(&b, method, NULL), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_string_equal(m.method, method);
}

static void test_error_text_is_cut(void **state)
{
	(void)state;
	char text[RPC_ERROR_TEXT_MAX + 2];
	memset(text, 'e', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	assert_int_equal(rpc_append_error(&b, 1, 1, text), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_int_equal(strlen(m.text), RPC_ERROR_TEXT_MAX);
	/* Never inside a character, which would make the peer refuse the message. */
	memcpy(text + RPC_ERROR_TEXT_MAX - 1, "\xc3\xa4", 3);
	assert_int_equal(rpc_append_error(&b, 1, 1, text), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_int_equal(strlen(m.text), RPC_ERROR_TEXT_MAX - 1);
	assert_int_equal(rpc_append_error(&b, 1, 1, "file \xff"), 0);
	assert_int_equal(decode_frame(&b, &m), 0);
	assert_string_equal(m.text, "file ?");
}

static void test_too_large(void **state)
{
	(void)state;
	static char big[FRAME_PAYLOAD_MAX + 1];
	memset(big, 'x', sizeof(big) - 1);
	cleanup_buf struct buf b, small;
	buf_init(&b, 2 * FRAME_MAX);
	buf_init(&small, 10);
	struct json_object *body = json_object_new_object();
	assert_int_equal(json_put_str(body, "s", big), 0);
	assert_int_equal(rpc_append_request(&b, 1, "m", body), -EMSGSIZE);
	assert_int_equal(rpc_append_request(&small, 1, "m", NULL), -EMSGSIZE);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_len(&small), 0);
}

#define ERROR_TEXT "a text that is longer than the first buffer of json-c's printer"

/* The four messages of append_all(), which came out whole in spite of a failed allocation. */
static int check_all(struct buf *b)
{
	static const enum rpc_kind kinds[] = { RPC_REQUEST, RPC_RESULT, RPC_NOTIFICATION,
					       RPC_ERROR };
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *p;
		size_t len;
		CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
		if (frame_peek(b, &p, &len) != 0)
			return 1;
		int r = rpc_decode(p, len, &m);
		if (r < 0)
			return r == -ENOMEM ? r : 2;
		if (m.kind != kinds[i] || (i == 3 && strcmp(m.text, ERROR_TEXT) != 0))
			return 3;
		frame_consume(b, len);
	}
	return buf_len(b) == 0 ? 0 : 4;
}

static int append_all(void *ctx)
{
	(void)ctx;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	struct json_object *body = json_object_new_object();
	if (!body)
		return -ENOMEM;
	int r = rpc_append_request(&b, 1, "m", body); /* consumed in any case */
	if (r == 0)
		r = rpc_append_result(&b, 1, NULL);
	if (r == 0)
		r = rpc_append_notification(&b, "n", NULL);
	if (r == 0)
		r = rpc_append_error(&b, 1, -1, ERROR_TEXT);
	if (r < 0)
		return r;
	return check_all(&b);
}

static int decode_request(void *ctx)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	return decode(ctx, &m);
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(append_all, NULL);
	char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{\"a\":[1,2]}}";
	for_each_failing_alloc(decode_request, text);
}

/* Brackets in strings do not count. */
static void test_container_limit(void **state)
{
	(void)state;
	char text[4096];
	for (int n = RPC_CONTAINERS_MAX; n <= RPC_CONTAINERS_MAX + 1; n++) {
		strcpy(text, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":[\"[{\\\"[\"");
		for (int i = 2; i < n; i++)
			strcat(text, i % 2 ? ",{}" : ",[]");
		strcat(text, "]}");
		struct rpc_msg m = { 0 };
		assert_int_equal(decode(text, &m), n == RPC_CONTAINERS_MAX ? 0 : -EBADMSG);
		rpc_msg_deinit(&m);
	}
}

/* Byte by byte, two messages, one that is none, and one that does not fit. */
static void test_take(void **state)
{
	(void)state;
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":{}}";
	cleanup_buf struct buf in, out;
	struct rpc_msg m = { 0 };
	buf_init(&out, FRAME_MAX);
	buf_init(&in, FRAME_HEADER_LEN + sizeof(text) - 1);
	assert_int_equal(rpc_append_notification(&out, "m", NULL), 0);
	for (size_t i = 0; i < buf_len(&out); i++) {
		assert_int_equal(rpc_take(&in, &m), FRAME_INCOMPLETE);
		assert_int_equal(buf_append(&in, buf_data(&out) + i, 1), 0);
	}
	assert_int_equal(rpc_take(&in, &m), 0);
	assert_string_equal(m.method, "m");
	rpc_msg_deinit(&m);
	assert_int_equal(rpc_take(&in, &m), FRAME_INCOMPLETE);

	assert_int_equal(rpc_append_notification(&out, "n", NULL), 0);
	assert_int_equal(rpc_take(&out, &m), 0);
	rpc_msg_deinit(&m);
	assert_int_equal(rpc_take(&out, &m), 0);
	assert_string_equal(m.method, "n");
	rpc_msg_deinit(&m);
	assert_int_equal(frame_append(&in, "x", 1), 0);
	assert_int_equal(rpc_take(&in, &m), -EBADMSG);
	assert_int_equal(buf_len(&in), 0);

	assert_int_equal(buf_append(&in, "\0\0\0\x7f", FRAME_HEADER_LEN), 0);
	while (buf_room(&in) > 0) {
		assert_int_equal(rpc_take(&in, &m), FRAME_INCOMPLETE);
		assert_int_equal(buf_append(&in, "{", 1), 0);
	}
	assert_int_equal(rpc_take(&in, &m), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trip),      fixture_test(test_null_body_is_empty_object),
		fixture_test(test_decode_accepts),  fixture_test(test_decode_refuses),
		fixture_test(test_method_limit),    fixture_test(test_error_text_is_cut),
		fixture_test(test_too_large),       fixture_test(test_short_of_memory),
		fixture_test(test_container_limit), fixture_test(test_take),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
