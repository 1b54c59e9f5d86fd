/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

#define CONTENT_LEN ((size_t)700000) /* several chunks */
#define NO_LIMIT    UINT64_MAX

static const char *const filters[] = { "gzip", "zstd", "xz", "bzip2" };

static void cleanup_stream(struct stream **s)
{
	stream_free(*s);
}

/* Something that compresses, but not to nothing. */
static void make_content(struct blob *ret)
{
	ret->len = CONTENT_LEN;
	ret->data = malloc(CONTENT_LEN);
	assert_non_null(ret->data);
	for (size_t i = 0; i < CONTENT_LEN; i++)
		ret->data[i] = (unsigned char)(i * i >> 7);
}

static void check_content(struct stream *s, const struct blob *want)
{
	const void *data;
	size_t len, done = 0;
	struct err e = ERR_INIT;
	int r;
	while ((r = stream_next(s, &data, &len, &e)) == 0) {
		assert_true(len > 0 && len <= want->len - done);
		assert_memory_equal(want->data + done, data, len);
		done += len;
	}
	if (r < 0)
		fail_msg("%s", e.text);
	assert_int_equal(done, want->len);
	assert_int_equal(stream_bytes(s), done);
}

static void check_digests(struct stream *s, const struct blob *blob, const struct blob *content)
{
	struct digest got, want;
	struct err e = ERR_INIT;
	assert_int_equal(stream_drain(s, &e), 0);
	assert_int_equal(stream_blob_digest(s, &got, &e), 0);
	digest_of(blob->data, blob->len, &want);
	assert_true(digest_equal(&got, &want));
	stream_content_digest(s, &got);
	digest_of(content->data, content->len, &want);
	assert_true(digest_equal(&got, &want));
}

static void check_stream(const struct blob *blob, const struct blob *content)
{
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	CLEANUP(cleanup_stream) struct stream *s = NULL;
	struct err e = ERR_INIT;
	layers_span(blob->data, blob->len, &span);
	if (stream_new(&span, true, content->len, &s, &e) < 0)
		fail_msg("%s", e.text);
	check_content(s, content);
	check_digests(s, blob, content);
}

static void test_plain(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	check_stream(&content, &content);
	content.len = 0;
	check_stream(&content, &content);
	content.len = 1;
	check_stream(&content, &content);
}

static void test_compressed(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		cleanup_blob struct blob blob = { NULL, 0 };
		layers_compress(&content, filters[i], &blob);
		assert_int_equal(stream_detect(blob.data), STREAM_GZIP + i);
		check_stream(&blob, &content);
	}
	size_t full = content.len;
	content.len = 0;
	for (size_t i = 0; i < 2; i++) {
		cleanup_blob struct blob blob = { NULL, 0 };
		layers_compress(&content, filters[i], &blob);
		check_stream(&blob, &content);
	}
	content.len = full;
}

/* Seekable formats concatenate gzip members and zstd frames. */
static void test_members(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	struct blob half = { content.data, CONTENT_LEN / 2 };
	struct blob rest = { content.data + half.len, CONTENT_LEN - half.len };
	for (size_t i = 0; i < 2; i++) {
		cleanup_blob struct blob a = { NULL, 0 };
		cleanup_blob struct blob b = { NULL, 0 };
		layers_compress(&half, filters[i], &a);
		layers_compress(&rest, filters[i], &b);
		static unsigned char mem[2 * CONTENT_LEN];
		struct blob both = { mem, a.len + b.len };
		assert_true(both.len <= sizeof(mem));
		memcpy(both.data, a.data, a.len);
		memcpy(both.data + a.len, b.data, b.len);
		check_stream(&both, &content);
	}
}

static void test_layers_have_fewer_filters(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		cleanup_blob struct blob blob = { NULL, 0 };
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		CLEANUP(cleanup_stream) struct stream *s = NULL;
		struct err e = ERR_INIT;
		layers_compress(&content, filters[i], &blob);
		layers_span(blob.data, blob.len, &span);
		assert_int_equal(stream_new(&span, false, NO_LIMIT, &s, &e),
				 i < 2 ? 0 : -EOPNOTSUPP);
		if (i >= 2)
			assert_non_null(strstr(e.text, filters[i]));
	}
}

/* What is compressed twice is decompressed once: nobody would count the bytes in between. */
static void test_twice(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		cleanup_blob struct blob once = { NULL, 0 };
		cleanup_blob struct blob twice = { NULL, 0 };
		layers_compress(&content, filters[i], &once);
		layers_compress(&once, filters[i], &twice);
		check_stream(&twice, &once);
	}
}

static void test_limit(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	for (size_t i = 0; i < 2; i++) {
		cleanup_blob struct blob blob = { NULL, 0 };
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		CLEANUP(cleanup_stream) struct stream *s = NULL;
		struct err e = ERR_INIT;
		struct digest got, want;
		layers_compress(&content, filters[i], &blob);
		layers_span(blob.data, blob.len, &span);
		assert_int_equal(stream_new(&span, false, CONTENT_LEN - 1, &s, &e), 0);
		assert_int_equal(stream_drain(s, &e), -EFBIG);
		assert_non_null(strstr(e.text, "more than 699999 bytes"));
		/* Nothing more comes. */
		assert_int_equal(stream_drain(s, &e), -EFBIG);
		assert_int_equal(span_digest(&span, &got), 0);
		digest_of(blob.data, blob.len, &want);
		assert_true(digest_equal(&got, &want));
	}
}

/* Cut or damaged anywhere: an error or the whole content, never other content. */
static void test_damage(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	make_content(&content);
	content.len = 20000;
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		cleanup_blob struct blob blob = { NULL, 0 };
		layers_compress(&content, filters[i], &blob);
		for (size_t at = 7; at < blob.len; at += at < 40 ? 1 : 97) {
			CLEANUP(span_deinit) struct span span = SPAN_INIT;
			CLEANUP(cleanup_stream) struct stream *s = NULL;
			struct err e = ERR_INIT;
			layers_span(blob.data, at, &span);
			int r = stream_new(&span, true, NO_LIMIT, &s, &e);
			if (r == 0)
				r = stream_drain(s, &e);
			assert_true(r < 0 && e.text[0]);
		}
	}
}

static void test_zstd_window(void **state)
{
	(void)state;
	static const struct {
		unsigned char head[STREAM_HEAD_LEN];
		uint64_t window;
	} cases[] = {
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x00 }, 1024 },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x88 }, STREAM_WINDOW_MAX },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x89 }, STREAM_WINDOW_MAX / 8 * 9 },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0xc3, 0xff }, (UINT64_C(1) << 41) / 8 * 15 },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0x20, 7 }, 7 },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0x61, 9, 1, 2 }, 0x201 + 256 },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0xa2, 9, 9, 1, 2, 3, 4 }, 0x04030201 },
		{ { 0x28, 0xb5, 0x2f, 0xfd, 0xe3, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 1 },
		  UINT64_C(1) << 56 },
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(stream_zstd_window(cases[i].head, STREAM_HEAD_LEN),
				 cases[i].window);
	assert_int_equal(stream_zstd_window(cases[0].head, 5), 0);
	assert_int_equal(stream_zstd_window(cases[7].head, 16), 0);
}

/* The bytes that a frame's window is said to be in, at the limit and beyond: 256 MiB is 0x90. */
static void test_large_windows(void **state)
{
	static const struct {
		unsigned char first, second; /* 0: there is no second frame */
		int result;
	} cases[] = {
		{ 0x68, 0, 0 },
		{ 0x88, 0, 0 },
		{ 0x89, 0, -EOPNOTSUPP },
		{ 0x90, 0, -EOPNOTSUPP },
		{ 0xf8, 0, -EOPNOTSUPP },
		{ 0x68, 0x88, 0 },
		{ 0x68, 0x90, -EOPNOTSUPP },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct blob text = { (unsigned char[]){ 't', 'e', 'x', 't' }, 4 };
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		CLEANUP(cleanup_stream) struct stream *s = NULL;
		struct err e = ERR_INIT;
		layers_span("", 0, &span);
		layers_frame(span.fd, &text, 1, cases[i].first);
		if (cases[i].second)
			layers_frame(span.fd, &text, 1, cases[i].second);
		span.size = (uint64_t)lseek(span.fd, 0, SEEK_END);
		int r = stream_new(&span, false, NO_LIMIT, &s, &e);
		if (r == 0)
			r = stream_drain(s, &e);
		if (r != cases[i].result)
			fail_msg("case %zu: %d %s", i, r, e.text);
		if (r < 0)
			assert_non_null(strstr(e.text, "a zstd window of more than 128 MiB"));
	}
}

/* @n skippable frames of @len bytes, then a frame with the content, unless it is NULL. */
static void make_skippable(size_t n, unsigned char len, const struct blob *content,
			   struct span *ret)
{
	unsigned char frame[8 + 255] = { 0x50, 0x2a, 0x4d, 0x18, len };
	layers_span("", 0, ret);
	for (size_t i = 0; i < n; i++) {
		frame[0] = (unsigned char)(0x50 + i % 16);
		assert_int_equal(fd_write_all(ret->fd, frame, 8U + len), 0);
	}
	if (content)
		layers_frame(ret->fd, content, 0, 0x68);
	ret->size = (uint64_t)lseek(ret->fd, 0, SEEK_END);
}

static int drain_span(const struct span *span, uint64_t *ret_bytes, struct err *e)
{
	CLEANUP(cleanup_stream) struct stream *s = NULL;
	int r = stream_new(span, false, NO_LIMIT, &s, e);
	if (r == 0)
		r = stream_drain(s, e);
	*ret_bytes = s ? stream_bytes(s) : 0;
	return r;
}

/* What pzstd and eStargz's relatives put in front of, between and behind the frames. */
static void test_skippable_frames(void **state)
{
	static const struct {
		size_t n;
		unsigned char len;
		bool has_content;
		int result;
	} cases[] = {
		{ 1, 4, true, 0 },    { 1, 0, true, 0 },
		{ 20, 255, true, 0 }, { STREAM_SKIPPABLE_MAX, 0, true, 0 },
		{ 1, 255, false, 0 }, { STREAM_SKIPPABLE_MAX + 1, 0, true, -EBADMSG },
		{ 3, 255, false, 0 },
	};
	const struct blob text = { (unsigned char[]){ 't', 'e', 'x', 't' }, 4 };
	enum stream_compression c;
	struct err e = ERR_INIT;
	uint64_t bytes;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		make_skippable(cases[i].n, cases[i].len, cases[i].has_content ? &text : NULL,
			       &span);
		assert_int_equal(stream_detect_span(&span, &c), 0);
		assert_int_equal(c, STREAM_ZSTD);
		if (drain_span(&span, &bytes, &e) != cases[i].result)
			fail_msg("case %zu: %s", i, e.text);
		if (cases[i].result == 0)
			assert_int_equal(bytes, cases[i].has_content ? 4 : 0);
	}
	/* Cut within the frame, and something else behind it. */
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	make_skippable(1, 255, NULL, &span);
	span.size -= 100;
	assert_int_equal(drain_span(&span, &bytes, &e), -EBADMSG);
	span.size += 100;
	layers_frame(span.fd, &text, 0, 0x90); /* the window of the first frame with content */
	span.size = (uint64_t)lseek(span.fd, 0, SEEK_END);
	assert_int_equal(drain_span(&span, &bytes, &e), -EOPNOTSUPP);
	assert_int_equal(pwrite(span.fd, "tar", 3, 8 + 255), 3);
	assert_int_equal(drain_span(&span, &bytes, &e), -EBADMSG);
}

static void test_detect_span(void **state)
{
	static const struct {
		const char *bytes;
		enum stream_compression want;
	} cases[] = {
		{ "", STREAM_PLAIN },
		{ "\x1f\x8b\x08", STREAM_GZIP },
		{ "\x1f\x8b", STREAM_PLAIN },
		{ "\x5f\x2a\x4d\x18", STREAM_ZSTD },
		{ "\x28\xb5\x2f\xfd", STREAM_ZSTD },
		{ "\x60\x2a\x4d\x18", STREAM_PLAIN },
		{ "\x50\x2a\x4d", STREAM_PLAIN },
		{ "usr/bin/", STREAM_PLAIN },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(span_deinit) struct span span = SPAN_INIT;
		enum stream_compression c;
		layers_span(cases[i].bytes, strlen(cases[i].bytes), &span);
		assert_int_equal(stream_detect_span(&span, &c), 0);
		assert_int_equal(c, cases[i].want);
	}
}

static void test_file_became_shorter(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	CLEANUP(cleanup_stream) struct stream *s = NULL;
	struct err e = ERR_INIT;
	make_content(&content);
	layers_span(content.data, content.len, &span);
	assert_int_equal(stream_new(&span, false, NO_LIMIT, &s, &e), 0);
	assert_int_equal(ftruncate(span.fd, CONTENT_LEN / 2), 0);
	assert_int_equal(stream_drain(s, &e), -ENODATA);
	assert_non_null(strstr(e.text, "became shorter"));
}

static void test_decompress_file(void **state)
{
	(void)state;
	cleanup_blob struct blob content = { NULL, 0 };
	cleanup_blob struct blob blob = { NULL, 0 };
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	cleanup_fd int out = memfd_create("out", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	struct digest digest, want;
	make_content(&content);
	layers_compress(&content, "xz", &blob);
	layers_span(blob.data, blob.len, &span);
	assert_int_equal(stream_decompress_file(span.fd, span.size, out, CONTENT_LEN, &digest, &e),
			 0);
	cleanup_free char *got = malloc(CONTENT_LEN);
	assert_int_equal(pread(out, got, CONTENT_LEN, 0), CONTENT_LEN);
	assert_memory_equal(got, content.data, CONTENT_LEN);
	digest_of(content.data, CONTENT_LEN, &want);
	assert_true(digest_equal(&digest, &want));
	assert_int_equal(
		stream_decompress_file(span.fd, span.size, out, CONTENT_LEN - 1, &digest, &e),
		-EFBIG);
	cleanup_fd int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(stream_decompress_file(span.fd, span.size, full, CONTENT_LEN, &digest, &e),
			 -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_plain),           fixture_test(test_compressed),
		fixture_test(test_members),         fixture_test(test_layers_have_fewer_filters),
		fixture_test(test_twice),           fixture_test(test_limit),
		fixture_test(test_damage),          fixture_test(test_zstd_window),
		fixture_test(test_large_windows),   fixture_test(test_skippable_frames),
		fixture_test(test_detect_span),     fixture_test(test_file_became_shorter),
		fixture_test(test_decompress_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
