/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/ttrpc/frame.h"

#include <string.h>

#include "tests/support/fixture.h"

static void put(struct ttrpc_reader *r, const void *data, size_t len)
{
	assert_int_equal(buf_append(&r->in, data, len), 0);
}

/* The bytes of a header as the protocol's text has them. */
static void test_header(void **state)
{
	static const uint8_t want[] = { 0, 0, 1, 2, 0, 0, 0, 7, 1, 0 };
	const struct ttrpc_header h = { .len = 258, .stream = 7, .type = TTRPC_REQUEST };
	cleanup_buf struct buf out;
	(void)state;
	buf_init(&out, TTRPC_FRAME_MAX);
	assert_int_equal(ttrpc_header_append(&out, &h), 0);
	assert_int_equal(buf_len(&out), TTRPC_HEADER_LEN);
	assert_memory_equal(buf_data(&out), want, sizeof(want));
}

/* Frames that come one byte after the other, and how much is missing each time. */
static void test_pieces(void **state)
{
	static const uint8_t bytes[] = { 0,   0, 0, 2, 0, 0, 0, 1, 1, 0, 'h',
					 'i', 0, 0, 0, 0, 0, 0, 0, 3, 2, 9 };
	CLEANUP(ttrpc_reader_deinit) struct ttrpc_reader r;
	struct ttrpc_header h;
	const uint8_t *data;
	(void)state;
	ttrpc_reader_init(&r);
	for (size_t i = 0; i < 12; i++) {
		assert_int_equal(ttrpc_reader_next(&r, &h, &data), TTRPC_INCOMPLETE);
		assert_int_equal(ttrpc_reader_missing(&r), i < 10 ? 10 - i : 12 - i);
		put(&r, &bytes[i], 1);
	}
	put(&r, &bytes[12], sizeof(bytes) - 12);
	assert_int_equal(ttrpc_reader_next(&r, &h, &data), 0);
	assert_int_equal(h.len, 2);
	assert_int_equal(h.stream, 1);
	assert_int_equal(h.type, TTRPC_REQUEST);
	assert_memory_equal(data, "hi", 2);
	ttrpc_reader_drop(&r, h.len);
	assert_int_equal(ttrpc_reader_next(&r, &h, &data), 0);
	assert_int_equal(h.len, 0);
	assert_int_equal(h.stream, 3);
	assert_int_equal(h.type, TTRPC_RESPONSE);
	assert_int_equal(h.flags, 9);
	ttrpc_reader_drop(&r, h.len);
	assert_int_equal(buf_len(&r.in), 0);
	assert_int_equal(ttrpc_reader_missing(&r), TTRPC_HEADER_LEN);
}

/* Appends @n bytes that nobody looks at, as they are asked for. Returns how many were taken. */
static size_t put_wanted(struct ttrpc_reader *r, size_t n)
{
	char *where;
	size_t len = MIN(ttrpc_reader_missing(r), n);
	assert_true(len > 0);
	assert_int_equal(buf_reserve(&r->in, len, &where), 0);
	memset(where, 'x', len);
	buf_commit(&r->in, len);
	return len;
}

/* The longest frame is one; the data of a longer one is dropped, and the next one is found. */
static void test_longest(void **state)
{
	for (uint32_t more = 0; more <= 1; more++) {
		CLEANUP(ttrpc_reader_deinit) struct ttrpc_reader r;
		struct ttrpc_header h = { .len = (uint32_t)TTRPC_DATA_MAX + more, .stream = 5 },
				    got;
		const uint8_t *data;
		(void)state;
		ttrpc_reader_init(&r);
		assert_int_equal(ttrpc_header_append(&r.in, &h), 0);
		if (more)
			assert_int_equal(ttrpc_reader_next(&r, &got, &data), TTRPC_TOO_LONG);
		for (size_t left = h.len; left > 0;) {
			left -= put_wanted(&r, left);
			if (left > 0)
				assert_int_equal(ttrpc_reader_next(&r, &got, &data),
						 TTRPC_INCOMPLETE);
		}
		if (!more) {
			assert_int_equal(ttrpc_reader_next(&r, &got, &data), 0);
			ttrpc_reader_drop(&r, got.len);
		}
		h = (struct ttrpc_header){ .len = 0, .stream = 7 };
		assert_int_equal(ttrpc_header_append(&r.in, &h), 0);
		assert_int_equal(ttrpc_reader_next(&r, &got, &data), 0);
		assert_int_equal(got.stream, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_header),
		fixture_test(test_pieces),
		fixture_test(test_longest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
