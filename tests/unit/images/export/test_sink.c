/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/sink.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/render/stream.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define LEN ((size_t)3 << 20)

static void cleanup_sink(struct sink **s)
{
	sink_free(*s);
}

/* Writes LEN bytes in uneven pieces. */
static void write_all(int fd, uint64_t offset, bool gzip, struct sink_sums *ret)
{
	CLEANUP(cleanup_sink) struct sink *s = NULL;
	cleanup_free char *data = calloc(1, LEN);
	struct err e = ERR_INIT;
	memset(data, 'x', LEN / 2);
	assert_int_equal(sink_new(fd, offset, gzip, &s, &e), 0);
	for (size_t done = 0, n = 1; done < LEN; done += n, n = 3 * n + 1) {
		n = n < LEN - done ? n : LEN - done;
		assert_int_equal(sink_write(s, data + done, n, &e), 0);
	}
	assert_int_equal(sink_finish(s, ret, &e), 0);
}

static void test_plain(void **state)
{
	cleanup_fd int fd = memfd_create("out", MFD_CLOEXEC);
	struct sink_sums sums;
	struct digest d;
	(void)state;
	write_all(fd, 100, false, &sums);
	assert_int_equal(sums.plain_size, LEN);
	assert_int_equal(sums.stored_size, LEN);
	assert_true(digest_equal(&sums.plain, &sums.stored));
	const struct span span = { fd, 100, LEN };
	assert_int_equal(span_digest(&span, &d), 0);
	assert_true(digest_equal(&sums.plain, &d));
}

/* The image store's reader gets the same bytes and the same digests; equal input, equal output. */
static void test_gzip(void **state)
{
	cleanup_fd int fd = memfd_create("out", MFD_CLOEXEC);
	struct sink_sums sums, again;
	struct stream *in;
	struct err e = ERR_INIT;
	struct digest d;
	(void)state;
	write_all(fd, 7, true, &sums);
	write_all(fd, 7, true, &again);
	assert_true(digest_equal(&sums.stored, &again.stored));
	assert_true(sums.stored_size < LEN / 100);
	const struct span span = { fd, 7, sums.stored_size };
	assert_int_equal(stream_new(&span, false, LEN, &in, &e), 0);
	assert_int_equal(stream_drain(in, &e), 0);
	stream_content_digest(in, &d);
	assert_true(digest_equal(&sums.plain, &d));
	assert_int_equal(stream_blob_digest(in, &d, &e), 0);
	assert_true(digest_equal(&sums.stored, &d));
	stream_free(in);
}

static void test_write_fails(void **state)
{
	cleanup_fd int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	CLEANUP(cleanup_sink) struct sink *s = NULL;
	struct err e = ERR_INIT;
	struct sink_sums sums;
	(void)state;
	assert_int_equal(sink_new(fd, 0, true, &s, &e), 0);
	assert_int_equal(sink_write(s, "x", 1, &e), 0);
	assert_int_equal(sink_finish(s, &sums, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "no space left for the archive"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_plain),
		fixture_test(test_gzip),
		fixture_test(test_write_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
