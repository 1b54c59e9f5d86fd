/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/ref.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/cmocka.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void fill(char *out, size_t len)
{
	memset(out, '"', len);
	out[len] = '\0';
}

/* All members at their limits, of bytes that JSON must escape. */
static void make_ref(struct ref *r)
{
	char text[REF_TEXT_MAX + 1];
	fill(text, REF_TEXT_MAX);
	assert_int_equal(ref_init(r, text), 0);
	digest_of("image", 5, &r->image);
	digest_of("source", 6, &r->source);
	r->fetched_ns = INT64_MAX;
	r->max_age_s = INT64_MAX;
	fill(r->etag, REF_VALIDATOR_MAX);
	fill(r->last_modified, REF_VALIDATOR_MAX);
	fill(r->stamp, REF_STAMP_MAX);
	fill(r->name, IMAGE_NAME_MAX);
}

static void test_round_trip(void **state)
{
	struct ref r, back;
	CLEANUP(buf_deinit) struct buf text;
	(void)state;
	make_ref(&r);
	buf_init(&text, REF_JSON_MAX);
	assert_int_equal(ref_format(&r, &text), 0);
	assert_int_equal(ref_parse(buf_data(&text), buf_len(&text), &back), 0);
	assert_string_equal(r.text, back.text);
	assert_true(digest_equal(&r.image, &back.image));
	assert_true(digest_equal(&r.source, &back.source));
	assert_int_equal(r.fetched_ns, back.fetched_ns);
	assert_int_equal(r.max_age_s, back.max_age_s);
	assert_string_equal(r.etag, back.etag);
	assert_string_equal(r.last_modified, back.last_modified);
	assert_string_equal(r.stamp, back.stamp);
	assert_string_equal(r.name, back.name);
}

/* What is not known is left out, and comes back as nothing. */
static void test_little(void **state)
{
	struct ref r, back;
	CLEANUP(buf_deinit) struct buf text;
	(void)state;
	buf_init(&text, REF_JSON_MAX);
	assert_int_equal(ref_init(&r, "name:\xff\xfe"), 0);
	digest_of("image", 5, &r.image);
	assert_int_equal(ref_format(&r, &text), 0);
	assert_null(memmem(buf_data(&text), buf_len(&text), "etag", 4));
	assert_int_equal(ref_parse(buf_data(&text), buf_len(&text), &back), 0);
	assert_string_equal(back.text, "name:??");
	assert_string_equal(back.source.hex, "");
	assert_string_equal(back.stamp, "");
}

static void test_limits(void **state)
{
	struct ref r;
	char text[REF_TEXT_MAX + 2];
	(void)state;
	fill(text, REF_TEXT_MAX + 1);
	assert_int_equal(ref_init(&r, text), -ENAMETOOLONG);
	static const char *const bad[] = {
		"",
		"{}",
		"{\"version\":1,\"fetched\":1,\"maxAge\":0,\"ref\":\"x\"}",
		"{\"version\":1,\"fetched\":1,\"maxAge\":0,\"ref\":\"x\",\"image\":\"00\"}",
		"{\"version\":1,\"fetched\":-1,\"maxAge\":0}",
		"{\"version\":0}",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ref_parse(bad[i], strlen(bad[i]), &r), -EBADMSG);
}

/* Content, time or identity: each change gives another stamp; a fresh file has none. */
static void test_stamp(void **state)
{
	char first[REF_STAMP_MAX + 1], second[REF_STAMP_MAX + 1];
	int64_t later = clock_realtime_ns() + 10 * NS_PER_SEC;
	fixture_write(state, "f", "content", 7);
	cleanup_fd int fd = openat(fixture_dir(state), "f", O_RDWR | O_CLOEXEC);
	assert_int_equal(ref_stamp(fd, clock_realtime_ns(), first), 0);
	assert_string_equal(first, "");
	assert_int_equal(ref_stamp(fd, later, first), 0);
	assert_string_not_equal(first, "");
	assert_int_equal(ref_stamp(fd, later, second), 0);
	assert_string_equal(first, second);
	/* The time that anybody can set is set back, the other one tells. */
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	const struct timespec old[] = { st.st_atim, st.st_mtim };
	do {
		assert_int_equal(pwrite(fd, "C", 1, 0), 1);
		assert_int_equal(futimens(fd, old), 0);
		assert_int_equal(ref_stamp(fd, later, second), 0);
	} while (strcmp(first, second) == 0 && clock_realtime_ns() < later);
	assert_string_not_equal(first, second);
	fixture_write(state, "g", "content", 7);
	cleanup_fd int other = openat(fixture_dir(state), "g", O_RDONLY | O_CLOEXEC);
	assert_int_equal(ref_stamp(other, later, second), 0);
	assert_string_not_equal(first, second);
	assert_int_equal(ref_stamp(-1, later, second), -EBADF);
}

static int parse_again(void *ctx)
{
	const struct buf *text = ctx;
	struct ref r;
	return ref_parse(buf_data(text), buf_len(text), &r);
}

static int format_again(void *ctx)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, REF_JSON_MAX);
	return ref_format(ctx, &text);
}

static void test_out_of_memory(void **state)
{
	struct ref r;
	CLEANUP(buf_deinit) struct buf text;
	(void)state;
	assert_int_equal(ref_init(&r, "name:x"), 0);
	digest_of("image", 5, &r.image);
	buf_init(&text, REF_JSON_MAX);
	assert_int_equal(ref_format(&r, &text), 0);
	for_each_failing_alloc_lenient(parse_again, &text);
	for_each_failing_alloc(format_again, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_round_trip),    fixture_test(test_little),
		fixture_test(test_limits),        fixture_test(test_stamp),
		fixture_test(test_out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
