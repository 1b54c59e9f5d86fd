/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/ttrpc/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ttrpc/frame.h"
#include "tests/support/fixture.h"

/* Takes the only frame of @out apart. */
static const uint8_t *only_frame(const struct buf *out, struct ttrpc_header *ret)
{
	const uint8_t *bytes = (const uint8_t *)buf_data(out);
	assert_true(buf_len(out) >= TTRPC_HEADER_LEN);
	ret->len = (uint32_t)(buf_len(out) - TTRPC_HEADER_LEN);
	ret->stream = bytes[7];
	ret->type = bytes[8];
	return bytes + TTRPC_HEADER_LEN;
}

static void test_request(void **state)
{
	cleanup_buf struct buf out;
	CLEANUP(ttrpc_request_deinit) struct ttrpc_request q;
	struct ttrpc_header h;
	(void)state;
	buf_init(&out, TTRPC_FRAME_MAX);
	assert_int_equal(
		ttrpc_request_append(&out, 3, "a.Service", "Method", (const uint8_t *)"payload", 7),
		0);
	const uint8_t *data = only_frame(&out, &h);
	assert_int_equal(h.type, TTRPC_REQUEST);
	assert_int_equal(h.stream, 3);
	assert_int_equal(ttrpc_request_decode(data, h.len, &q), 0);
	assert_string_equal(q.service, "a.Service");
	assert_string_equal(q.method, "Method");
	assert_int_equal(q.len, 7);
	assert_memory_equal(q.payload, "payload", 7);
}

/* As ttrpc of Go writes one: with a time and metadata, which are not looked at. */
static void test_foreign_request(void **state)
{
	static const uint8_t bytes[] = {
		0x0a, 1, 's',  0x12, 1,   'm',  0x1a, 2,   1,    2, 0x20, 0x80, 0x01,
		0x2a, 6, 0x0a, 1,    'k', 0x12, 1,    'v', 0x32, 1, 'x', /* one that is not known */
	};
	CLEANUP(ttrpc_request_deinit) struct ttrpc_request q;
	(void)state;
	assert_int_equal(ttrpc_request_decode(bytes, sizeof(bytes), &q), 0);
	assert_string_equal(q.service, "s");
	assert_string_equal(q.method, "m");
	assert_int_equal(q.len, 2);
}

static void test_garbage(void **state)
{
	static const uint8_t half[] = { 0x0a, 5, 's' };
	struct ttrpc_request q;
	char why[TTRPC_ERROR_MAX + 1];
	int code;
	(void)state;
	assert_int_equal(ttrpc_request_decode(half, sizeof(half), &q), -EBADMSG);
	ttrpc_request_deinit(&q);
	assert_int_equal(ttrpc_response_decode(half, sizeof(half), &code, why), -EBADMSG);
}

/*
 * Members of two bytes become structures: what a short text makes of memory is bounded, and what is
 * refused leaves nothing.
 */
static void test_swollen(void **state)
{
	size_t len = TTRPC_DATA_MAX;
	cleanup_free uint8_t *bytes = malloc(len);
	struct ttrpc_request q;
	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < len; i += 2) { /* empty metadata */
		bytes[i] = 0x2a;
		bytes[i + 1] = 0;
	}
	assert_int_equal(ttrpc_request_decode(bytes, len, &q), -EBADMSG);
	ttrpc_request_deinit(&q);
}

static void test_response(void **state)
{
	cleanup_buf struct buf out, error;
	struct ttrpc_header h;
	char why[TTRPC_ERROR_MAX + 1];
	int code = -1;
	(void)state;
	buf_init(&out, TTRPC_FRAME_MAX);
	buf_init(&error, TTRPC_FRAME_MAX);
	assert_int_equal(ttrpc_response_append(&out, 9, TTRPC_OK, NULL, NULL, 0), 0);
	const uint8_t *data = only_frame(&out, &h);
	assert_int_equal(h.type, TTRPC_RESPONSE);
	assert_int_equal(h.len, 0);
	assert_int_equal(ttrpc_response_decode(data, h.len, &code, why), 0);
	assert_int_equal(code, TTRPC_OK);
	assert_int_equal(
		ttrpc_response_append(&error, 9, TTRPC_NOT_FOUND, "no such process", NULL, 0), 0);
	data = only_frame(&error, &h);
	assert_int_equal(ttrpc_response_decode(data, h.len, &code, why), 0);
	assert_int_equal(code, TTRPC_NOT_FOUND);
	assert_string_equal(why, "no such process");
}

/* The longest payload that fits, one more, and a text that is cut. */
static void test_limits(void **state)
{
	cleanup_free uint8_t *payload = calloc(1, TTRPC_DATA_MAX);
	cleanup_free char *text = malloc(2 * TTRPC_ERROR_MAX);
	const size_t head = 5; /* the member's number, and its length in four bytes */
	cleanup_buf struct buf out;
	(void)state;
	buf_init(&out, 2 * TTRPC_FRAME_MAX);
	assert_true(payload && text);
	assert_int_equal(
		ttrpc_response_append(&out, 1, TTRPC_OK, NULL, payload, TTRPC_DATA_MAX - head), 0);
	assert_int_equal(buf_len(&out), TTRPC_FRAME_MAX);
	assert_int_equal(
		ttrpc_response_append(&out, 1, TTRPC_OK, NULL, payload, TTRPC_DATA_MAX - head + 1),
		-EMSGSIZE);
	assert_int_equal(buf_len(&out), TTRPC_FRAME_MAX); /* nothing of it is there */
	memset(text, 't', 2 * TTRPC_ERROR_MAX - 1);
	text[2 * TTRPC_ERROR_MAX - 1] = '\0';
	assert_int_equal(ttrpc_response_append(&out, 1, TTRPC_UNKNOWN, text, NULL, 0), 0);
	assert_true(buf_len(&out) < TTRPC_FRAME_MAX + TTRPC_ERROR_MAX + 64);
	buf_consume(&out, TTRPC_FRAME_MAX);
	/* One that the buffer has no room for. */
	cleanup_buf struct buf small;
	buf_init(&small, TTRPC_HEADER_LEN + 8);
	assert_int_equal(ttrpc_response_append(&small, 1, TTRPC_OK, NULL, payload, 7), -EMSGSIZE);
	assert_int_equal(ttrpc_response_append(&small, 1, TTRPC_OK, NULL, payload, 6), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_request),  fixture_test(test_foreign_request),
		fixture_test(test_garbage),  fixture_test(test_swollen),
		fixture_test(test_response), fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
