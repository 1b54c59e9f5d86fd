/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/frame.h"

#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static char payload[FRAME_PAYLOAD_MAX + 1];

static void test_round_trip(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	const char *p = NULL;
	size_t len = 0;
	assert_int_equal(frame_peek(&b, &p, &len), FRAME_INCOMPLETE);
	assert_int_equal(frame_append(&b, "one", 3), 0);
	assert_int_equal(frame_append(&b, "2", 1), 0);
	assert_memory_equal(buf_data(&b), "\0\0\0\003one\0\0\0\0012", 12);
	assert_int_equal(frame_peek(&b, &p, &len), 0);
	assert_int_equal(len, 3);
	assert_memory_equal(p, "one", 3);
	frame_consume(&b, len);
	assert_int_equal(frame_peek(&b, &p, &len), 0);
	assert_int_equal(len, 1);
	frame_consume(&b, len);
	assert_int_equal(buf_len(&b), 0);
}

/* A frame that arrives byte by byte is whole with its last byte, not before. */
static void test_partial(void **state)
{
	(void)state;
	static const char bytes[] = "\0\0\0\005hello";
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	const char *p = NULL;
	size_t len = 4711;
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		assert_int_equal(frame_peek(&b, &p, &len), FRAME_INCOMPLETE);
		assert_int_equal(len, 4711);
		assert_int_equal(frame_missing(&b), i < 4 ? 4 - i : 9 - i);
		assert_int_equal(buf_append(&b, bytes + i, 1), 0);
	}
	assert_int_equal(frame_missing(&b), 0);
	assert_int_equal(frame_peek(&b, &p, &len), 0);
	assert_memory_equal(p, "hello", 5);
}

static void test_append_limit(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, 2 * FRAME_MAX);
	const char *p;
	size_t len;
	assert_int_equal(frame_append(&b, payload, 0), -EMSGSIZE);
	assert_int_equal(frame_append(&b, payload, FRAME_PAYLOAD_MAX + 1), -EMSGSIZE);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(frame_append(&b, payload, FRAME_PAYLOAD_MAX), 0);
	assert_int_equal(buf_len(&b), FRAME_MAX);
	assert_int_equal(frame_peek(&b, &p, &len), 0);
	assert_int_equal(len, FRAME_PAYLOAD_MAX);
}

/* A buffer with room for part of a frame takes none of it. */
static void test_append_all_or_nothing(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_HEADER_LEN + 3);
	assert_int_equal(frame_append(&b, "1234", 4), -EMSGSIZE);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(frame_append(&b, "123", 3), 0);
}

static void test_peek_refuses(void **state)
{
	(void)state;
	static const struct {
		unsigned char header[4];
		int r;
	} samples[] = {
		{ { 0, 0, 0, 0 }, -EBADMSG },
		{ { 0, 0x50, 0, 0 }, FRAME_INCOMPLETE }, /* FRAME_PAYLOAD_MAX */
		{ { 0, 0x50, 0, 1 }, -EBADMSG },
		{ { 0x80, 0, 0, 1 }, -EBADMSG },
		{ { 0xff, 0xff, 0xff, 0xff }, -EBADMSG },
	};
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		cleanup_buf struct buf b;
		buf_init(&b, FRAME_MAX);
		const char *p;
		size_t len;
		assert_int_equal(buf_append(&b, samples[i].header, 4), 0);
		assert_int_equal(frame_peek(&b, &p, &len), samples[i].r);
	}
}

static int append_some(void *ctx)
{
	(void)ctx;
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	int r = frame_append(&b, payload, 100);
	return r < 0 ? r : frame_append(&b, payload, 100000);
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(append_some, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trip),   fixture_test(test_partial),
		fixture_test(test_append_limit), fixture_test(test_append_all_or_nothing),
		fixture_test(test_peek_refuses), fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
