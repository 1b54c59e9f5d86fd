#include "host/render/render.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/render/squash.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/host/render/layers.h"
#include "tests/unit/host/render/listing.h"

#define LINES(...)  ((const char *const[]){ __VA_ARGS__, NULL })
#define LAYERS_MAX  4
#define WASTE_BYTES ((size_t)20 << 20) /* above the least that makes a second run */

/* A job on layers in memory. */
struct bench {
	struct render_layer layers[LAYERS_MAX];
	struct render_job job;
};

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .job = { .layers = b->layers, .where = "DIR" } };
	b->job.out = memfd_create("image", MFD_CLOEXEC);
	b->job.bytes_max = RENDER_BYTES_MAX;
}

static void bench_deinit(struct bench *b)
{
	for (size_t i = 0; i < b->job.n_layers; i++)
		span_deinit(&b->layers[i].span);
	fd_close(b->job.out);
}

static void add_blob(struct bench *b, const struct blob *tar)
{
	struct render_layer *l = &b->layers[b->job.n_layers++];
	*l = (struct render_layer){ .span = SPAN_INIT, .has_blob = true };
	layers_span(tar->data, tar->len, &l->span);
	digest_of(tar->data, tar->len, &l->diff_id);
	l->blob = l->diff_id;
}

static void add_lines(struct bench *b, const char *const *lines)
{
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(lines, "pax", &tar);
	add_blob(b, &tar);
}

/* A tar with one file of @size bytes that do not compress. */
static void add_noise(struct bench *b, const char *name, size_t size)
{
	struct blob tar = { NULL, 0 };
	char line[64];
	snprintf(line, sizeof(line), "f %s", name);
	layers_make(LINES(line), "ustar", &tar);
	struct blob big = { calloc(1, size + 2048), size + 1536 };
	assert_non_null(big.data);
	memcpy(big.data, tar.data, 512);
	char field[16];
	snprintf(field, sizeof(field), "%011zo", size & 0xffffffff);
	memcpy(big.data + 124, field, 12);
	unsigned int sum = 8 * ' ';
	for (size_t i = 0; i < 512; i++)
		sum += i >= 148 && i < 156 ? 0U : big.data[i];
	snprintf(field, sizeof(field), "%06o", sum);
	memcpy(big.data + 148, field, 7);
	uint64_t x = size;
	for (size_t i = 0; i < size; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		big.data[512 + i] = (unsigned char)(x >> 56);
	}
	add_blob(b, &big);
	blob_deinit(&tar);
	blob_deinit(&big);
}

static off_t size_of(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

/* Replaced content is left out if it is much, by a second run, and stays if it is little. */
static void test_waste(void **state)
{
	(void)state;
	for (int much = 0; much < 2; much++) {
		CLEANUP(bench_deinit) struct bench b;
		struct err e = ERR_INIT;
		size_t size = much ? WASTE_BYTES : WASTE_BYTES / 2;
		bench_init(&b);
		add_noise(&b, "big", size);
		add_lines(&b, LINES("f kept text=1", "h link to=big", "f big text=new"));
		add_lines(&b, LINES("f .wh.link", "f last text=2"));
		assert_int_equal(render_here(&b.job, NULL, &e), 0);
		assert_true(much ? size_of(b.job.out) < 1 << 20 : size_of(b.job.out) > (off_t)size);
		cleanup_free char *got = listing_of(b.job.out);
		assert_string_equal(got, "d 0755 0:0 0 2 /\n"
					 "f 0644 0:0 0 1 big =new\n"
					 "f 0644 0:0 0 1 kept =1\n"
					 "f 0644 0:0 0 1 last =2\n");
	}
}

/* Another name keeps the content alive through both runs. */
static void test_waste_with_link(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	struct err e = ERR_INIT;
	bench_init(&b);
	add_noise(&b, "one", WASTE_BYTES);
	add_noise(&b, "two", WASTE_BYTES + 1);
	add_lines(&b, LINES("h link to=two", "f .wh.two", "f .wh.one"));
	assert_int_equal(render_here(&b.job, NULL, &e), 0);
	assert_in_range(size_of(b.job.out), WASTE_BYTES, WASTE_BYTES + (1 << 20));
	size_t len;
	cleanup_free char *got = listing_content(b.job.out, "link", &len);
	assert_int_equal(len, WASTE_BYTES + 1);
	struct digest have, want;
	digest_of(got, len, &have);
	cleanup_free char *tar = malloc(len);
	assert_int_equal(pread(b.layers[1].span.fd, tar, len, 512), len);
	digest_of(tar, len, &want);
	assert_true(digest_equal(&have, &want));
}

static void test_messages(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	struct err e = ERR_INIT;
	bench_init(&b);
	add_lines(&b, LINES("f a text=1"));
	add_lines(&b, LINES("h b to=missing"));
	assert_int_equal(render_here(&b.job, NULL, &e), -ENOENT);
	char want[256];
	snprintf(
		want, sizeof(want),
		"layer 2 of 2 (sha256:%.12s...): entry \"b\": hard link to \"missing\", which does "
		"not exist",
		b.layers[1].blob.hex);
	assert_string_equal(e.text, want);
	/* Control characters of an image do not reach the terminal. */
	CLEANUP(bench_deinit) struct bench c;
	bench_init(&c);
	add_lines(&c, LINES("h %1b[31m%0a to=missing"));
	assert_int_equal(render_here(&c.job, NULL, &e), -ENOENT);
	assert_non_null(strstr(e.text, "entry \"?[31m?\""));
}

static void test_truncation(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	layers_make(LINES("d d", "f d/a text=1 zeros=5000 x:user.k=v", "f s hole=200000 text=2",
			  "h h to=s", "l l to=d"),
		    "pax", &tar);
	size_t len = tar.len;
	for (tar.len = 0; tar.len <= len; tar.len += 512) {
		CLEANUP(bench_deinit) struct bench b;
		struct err e = ERR_INIT;
		bench_init(&b);
		add_blob(&b, &tar);
		int r = render_here(&b.job, NULL, &e);
		assert_true(r == 0 || (r == -EBADMSG && e.text[0]));
		if (tar.len == len)
			assert_int_equal(r, 0);
		if (r == 0)
			free(listing_of(b.job.out));
	}
	tar.len = len;
}

/* What GNU and pax sparse members leave out is zeros. */
static void test_sparse(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	struct err e = ERR_INIT;
	bench_init(&b);
	add_lines(&b, LINES("f s hole=300000 text=end", "f t hole=131072 text=x zeros=200000"));
	assert_int_equal(render_here(&b.job, NULL, &e), 0);
	size_t len;
	cleanup_free char *s = listing_content(b.job.out, "s", &len);
	assert_int_equal(len, 300003);
	assert_memory_equal(s + 300000, "end", 3);
	for (size_t i = 0; i < 300000; i++)
		assert_int_equal(s[i], 0);
	cleanup_free char *t = listing_content(b.job.out, "t", &len);
	assert_int_equal(len, 331073);
	assert_true(t[131071] == 0 && t[131072] == 'x' && t[131073] == 0);
}

static void test_disk_full(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	struct err e = ERR_INIT;
	bench_init(&b);
	add_lines(&b, LINES("f a text=1"));
	fd_replace(&b.job.out, open("/dev/full", O_RDWR | O_CLOEXEC));
	assert_int_equal(render_here(&b.job, NULL, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "no space left in DIR (free some space or use --dir)"));
	e = ERR_INIT;
	assert_int_equal(render_confined(&b.job, NULL, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "no space left in DIR (free some space or use --dir)"));
}

/* The definition, in the words of a shell. */
static void want_digest(int fd, struct digest *ret)
{
	char command[256];
	snprintf(command, sizeof(command),
		 "f=/proc/%d/fd/%d; { tail -c +97 $f; head -c 96 $f; } | sha256sum", getpid(), fd);
	FILE *out = popen(command, "re");
	assert_non_null(out);
	assert_int_equal(fread(ret->hex, 1, DIGEST_HEX_LEN, out), DIGEST_HEX_LEN);
	ret->hex[DIGEST_HEX_LEN] = '\0';
	assert_int_equal(pclose(out), 0);
}

/* Reported by both ways of rendering, after one run or two; recomputed from the file. */
static void test_content_digest(void **state)
{
	(void)state;
	for (int much = 0; much < 2; much++) {
		CLEANUP(bench_deinit) struct bench b;
		struct err e = ERR_INIT;
		struct render_result here, confined;
		struct digest want, got;
		bench_init(&b);
		add_noise(&b, "big", much ? WASTE_BYTES : 300000);
		add_lines(&b, LINES("f big text=new x:user.k=v", "f z zeros=200000"));
		assert_int_equal(render_here(&b.job, &here, &e), 0);
		want_digest(b.job.out, &want);
		assert_string_equal(here.content.hex, want.hex);
		assert_int_equal(here.size, size_of(b.job.out));
		assert_int_equal(render_content_digest(b.job.out, &got, &e), 0);
		assert_string_equal(got.hex, want.hex);
		assert_int_equal(ftruncate(b.job.out, 0), 0);
		assert_int_equal(render_confined(&b.job, &confined, &e), 0);
		assert_string_equal(confined.content.hex, want.hex);
		assert_int_equal(confined.size, here.size);
	}
}

/* Every byte counts, also of the superblock and of the padding. */
static void test_content_digest_of_damage(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	struct err e = ERR_INIT;
	struct render_result result;
	struct digest got;
	bench_init(&b);
	add_lines(&b, LINES("d d", "f d/a text=1", "l l to=d"));
	assert_int_equal(render_here(&b.job, &result, &e), 0);
	for (off_t at = 0; at < (off_t)result.size; at++) {
		unsigned char byte;
		assert_int_equal(pread(b.job.out, &byte, 1, at), 1);
		byte ^= (unsigned char)(1 << at % 8);
		assert_int_equal(pwrite(b.job.out, &byte, 1, at), 1);
		assert_int_equal(render_content_digest(b.job.out, &got, &e), 0);
		if (digest_equal(&got, &result.content))
			fail_msg("byte %lld does not count", (long long)at);
		byte ^= (unsigned char)(1 << at % 8);
		assert_int_equal(pwrite(b.job.out, &byte, 1, at), 1);
	}
	assert_int_equal(ftruncate(b.job.out, (off_t)result.size + 1), 0);
	assert_int_equal(render_content_digest(b.job.out, &got, &e), 0);
	assert_false(digest_equal(&got, &result.content));
	assert_int_equal(ftruncate(b.job.out, SQUASH_SUPER_SIZE), 0);
	assert_int_equal(render_content_digest(b.job.out, &got, &e), 0);
	assert_int_equal(ftruncate(b.job.out, SQUASH_SUPER_SIZE - 1), 0);
	assert_int_equal(render_content_digest(b.job.out, &got, &e), -EBADMSG);
	assert_int_equal(render_content_digest(-EBADF, &got, &e), -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_waste),          fixture_test(test_waste_with_link),
		fixture_test(test_messages),       fixture_test(test_truncation),
		fixture_test(test_sparse),         fixture_test(test_disk_full),
		fixture_test(test_content_digest), fixture_test(test_content_digest_of_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
