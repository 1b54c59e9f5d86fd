/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/copy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/export/tar_head.h"
#include "images/spec/oci.h"
#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define LARGE ((size_t)600 * 1024) /* more than is copied at a time */

struct bench {
	struct blob_file blobs[2];
	struct copy_job job;
	struct err e;
	char *large;
};

static void put_blob(struct blob_file *b, const void *data, size_t len)
{
	*b = (struct blob_file){ .size = len, .fd = memfd_create("blob", MFD_CLOEXEC) };
	digest_of(data, len, &b->digest);
	assert_int_equal(fd_write_all(b->fd, data, len), 0);
}

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .large = malloc(LARGE) };
	assert_non_null(b->large);
	for (size_t i = 0; i < LARGE; i++)
		b->large[i] = (char)(i / 1000);
	put_blob(&b->blobs[0], "{}", 2);
	put_blob(&b->blobs[1], b->large, LARGE);
	b->job = (struct copy_job){ .blobs = b->blobs,
				    .n = 2,
				    .type = "application/x",
				    .name = "the/name:1",
				    .out = memfd_create("out", MFD_CLOEXEC) };
}

static void bench_deinit(struct bench *b)
{
	fd_close(b->blobs[0].fd);
	fd_close(b->blobs[1].fd);
	fd_close(b->job.out);
	free(b->large);
}

/* Checks the member at @at; *ret_size is what its head says. Where the next one is. */
static off_t check_member(const struct bench *b, off_t at, const char *name, const void *want,
			  size_t len)
{
	unsigned char head[TAR_HEAD_SIZE], should[TAR_HEAD_SIZE];
	cleanup_free char *got = malloc(len);
	assert_int_equal(tar_head_fill(should, name, len), 0);
	assert_int_equal(pread(b->job.out, head, sizeof(head), at), sizeof(head));
	assert_memory_equal(head, should, sizeof(head));
	at += (off_t)TAR_HEAD_SIZE;
	assert_int_equal(pread(b->job.out, got, len, at), len);
	if (want)
		assert_memory_equal(got, want, len);
	return at + (off_t)(len + tar_head_padding(len));
}

static void test_copy(void **state)
{
	(void)state;
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	CLEANUP(bench_deinit) struct bench b;
	char name[TAR_HEAD_NAME_MAX + 1], size[13] = "", *end;
	bench_init(&b);
	if (copy_image(&b.job, &b.e) < 0)
		fail_msg("%s", b.e.text);
	snprintf(name, sizeof(name), "blobs/sha256/%s", b.blobs[0].digest.hex);
	off_t at = check_member(&b, 0, name, "{}", 2);
	snprintf(name, sizeof(name), "blobs/sha256/%s", b.blobs[1].digest.hex);
	at = check_member(&b, at, name, b.large, LARGE);
	assert_int_equal(pread(b.job.out, size, 12, at + 124), 12);
	size_t len = strtoul(size, &end, 8);
	cleanup_free char *text = calloc(1, len + 1);
	assert_int_equal(pread(b.job.out, text, len, at + (off_t)TAR_HEAD_SIZE), len);
	CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
	assert_int_equal(oci_index_parse(text, len, &index, &b.e), 0);
	assert_int_equal(index.n, 1);
	assert_true(digest_equal(&index.manifests[0].digest, &b.blobs[0].digest));
	assert_int_equal(index.manifests[0].size, 2);
	assert_string_equal(index.manifests[0].media_type, "application/x");
	assert_string_equal(index.manifests[0].tag, "the/name:1");
	at = check_member(&b, at, "index.json", text, len);
	at = check_member(&b, at, "oci-layout", layout, sizeof(layout) - 1);
	assert_int_equal(lseek(b.job.out, 0, SEEK_END), at + (off_t)TAR_END_SIZE);
}

static void test_damaged(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b);
	assert_int_equal(pwrite(b.blobs[1].fd, "x", 1, LARGE - 1), 1);
	assert_int_equal(copy_image(&b.job, &b.e), -EBADMSG);
	assert_non_null(strstr(b.e.text, "... is damaged (fetch the image again)"));
	assert_int_equal(ftruncate(b.blobs[1].fd, LARGE - 1), 0);
	assert_int_equal(copy_image(&b.job, &b.e), -EBADMSG);
}

static void test_blob(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b);
	if (copy_blob(&b.blobs[1], b.job.out, &b.e) < 0)
		fail_msg("%s", b.e.text);
	cleanup_free char *got = malloc(LARGE);
	assert_int_equal(lseek(b.job.out, 0, SEEK_END), LARGE);
	assert_int_equal(pread(b.job.out, got, LARGE, 0), LARGE);
	assert_memory_equal(got, b.large, LARGE);
	b.blobs[1].digest = b.blobs[0].digest;
	assert_int_equal(copy_blob(&b.blobs[1], b.job.out, &b.e), -EBADMSG);
	assert_non_null(strstr(b.e.text, "... is damaged (fetch the image again)"));
}

static int copy_again(void *ctx)
{
	return copy_image(&((struct bench *)ctx)->job, NULL);
}

static void test_short_memory(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b);
	for_each_failing_alloc_lenient(copy_again, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_copy),
		fixture_test(test_damaged),
		fixture_test(test_blob),
		fixture_test(test_short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
