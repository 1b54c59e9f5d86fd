/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/render.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/merge.h"
#include "images/render/squash.h"
#include "images/spec/oci.h"
#include "lib/base/hex.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"
#include "tests/unit/images/render/listing.h"

#define LINES(...)  ((const char *const[]){ __VA_ARGS__, NULL })
#define LAYERS_MAX  4
#define BYTES_MAX   ((uint64_t)1 << 30)
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

/* Renders one layer; yields the listing, which the caller frees, or NULL with the error in @e. */
static char *render_as(enum layer_kind kind, const char *const *lines, const char *const *paths,
		       size_t n_paths, struct err *e)
{
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b);
	add_lines(&b, lines);
	b.layers[0].kind = kind;
	b.job.paths = paths;
	b.job.n_paths = n_paths;
	*e = ERR_INIT;
	return render_here(&b.job, NULL, e) == 0 ? listing_of(b.job.out) : NULL;
}

static void check_kind(enum layer_kind kind, const char *const *lines, const char *want)
{
	struct err e;
	cleanup_free char *got = render_as(kind, lines, NULL, 0, &e);
	assert_string_equal(got ? got : e.text, want);
}

static void check_kind_fails(enum layer_kind kind, const char *const *lines, const char *want)
{
	struct err e;
	assert_null(render_as(kind, lines, NULL, 0, &e));
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

/* Whiteouts mean nothing; all else is as in changesets. */
static void test_plain(void **state)
{
	(void)state;
	check_kind(LAYER_PLAIN,
		   LINES("f a text=1", "f .wh.a text=2", "d d", "f d/.wh..wh..opq text=3",
			 "f .wh. text=4", "d .wh..wh.plnk", "f ../x text=5", "h h to=./a"),
		   "d 0755 0:0 0 4 /\n"
		   "f 0644 0:0 0 1 .wh. =4\n"
		   "d 0755 0:0 0 2 .wh..wh.plnk\n"
		   "f 0644 0:0 0 1 .wh.a =2\n"
		   "f 0644 0:0 0 2 a =1\n"
		   "d 0755 0:0 0 2 d\n"
		   "f 0644 0:0 0 1 d/.wh..wh..opq =3\n"
		   "f 0644 0:0 0 2 h =1\n"
		   "f 0644 0:0 0 1 x =5\n");
}

static void test_aci(void **state)
{
	(void)state;
	check_kind(LAYER_ACI,
		   LINES("d ./", "f ./manifest text={}", "d ./rootfs/ mode=0711 uid=5",
			 "f rootfs/a text=1", "h rootfs/h to=rootfs/a", "h /rootfs/i to=./rootfs/h",
			 "l rootfs/l to=rootfs/a", "l rootfs/m to=/rootfs", "f rootfs/.wh.a text=2",
			 "f rootfs/rootfs/b text=3", "f rootfs/manifest text=4"),
		   "d 0711 5:0 0 3 /\n"
		   "f 0644 0:0 0 1 .wh.a =2\n"
		   "f 0644 0:0 0 3 a =1\n"
		   "f 0644 0:0 0 3 h =1\n"
		   "f 0644 0:0 0 3 i =1\n"
		   "l 0777 0:0 0 1 l ->rootfs/a\n"
		   "l 0777 0:0 0 1 m ->/rootfs\n"
		   "f 0644 0:0 0 1 manifest =4\n"
		   "d 0755 0:0 0 2 rootfs\n"
		   "f 0644 0:0 0 1 rootfs/b =3\n");
	static const char where[] = "an ACI has one file manifest and the directory rootfs";
	static const char nowhere[] = "a hard link that leads to nothing in the directory rootfs";
	check_kind_fails(LAYER_ACI, LINES("f manifest", "d rootfs", "f other"), where);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "d rootfs", "f rootfs2/a"), where);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "d rootfs", "f rootfs/../etc/a"), where);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "f ./manifest", "d rootfs"), where);
	check_kind_fails(LAYER_ACI, LINES("d manifest", "d rootfs"), where);
	check_kind_fails(LAYER_ACI, LINES("l manifest to=x", "d rootfs"), where);
	check_kind_fails(LAYER_ACI, LINES("f rootfs/x", "h manifest to=rootfs/x"), where);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "h rootfs/x to=manifest"), nowhere);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "h rootfs/x to=rootfs"), nowhere);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "h rootfs/x to=rootfs/../manifest"),
			 nowhere);
	check_kind_fails(LAYER_ACI, LINES("f manifest", "l rootfs to=/"),
			 "the top of the tree is not a directory");
	check_kind_fails(LAYER_ACI, LINES("f manifest"), "no ACI: it has no rootfs");
	check_kind_fails(LAYER_ACI, LINES("d rootfs"), "no ACI: it has no manifest");
}

/* Changesets are plain or with gzip or zstd; other kinds with all that is known. */
static void test_compressions(void **state)
{
	(void)state;
	static const char *const filters[] = { "gzip", "zstd", "xz", "bzip2" };
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		for (enum layer_kind kind = 0; kind < LAYER_KIND_COUNT_; kind++) {
			cleanup_blob struct blob tar = { NULL, 0 };
			cleanup_blob struct blob packed = { NULL, 0 };
			CLEANUP(bench_deinit) struct bench b;
			struct err e = ERR_INIT;
			bench_init(&b);
			layers_make(LINES("f manifest", "f rootfs/a text=1"), "ustar", &tar);
			layers_compress(&tar, filters[i], &packed);
			add_blob(&b, &packed);
			digest_of(tar.data, tar.len, &b.layers[0].diff_id);
			b.layers[0].kind = kind;
			int want = kind == LAYER_OCI && i >= 2 ? -EOPNOTSUPP : 0;
			assert_int_equal(render_here(&b.job, NULL, &e), want);
		}
	}
}

/* As many layers as there may be. */
static void test_layer_limit(void **state)
{
	(void)state;
	cleanup_blob struct blob tar = { NULL, 0 };
	static struct render_layer layers[OCI_LAYERS_MAX + 1];
	CLEANUP(bench_deinit) struct bench b;
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	struct err e = ERR_INIT;
	bench_init(&b);
	layers_make(LINES("f a text=1"), "ustar", &tar);
	layers_span(tar.data, tar.len, &span);
	for (size_t i = 0; i <= OCI_LAYERS_MAX; i++) {
		layers[i] = (struct render_layer){ .span = span };
		digest_of(tar.data, tar.len, &layers[i].diff_id);
	}
	struct render_job job = b.job;
	job.layers = layers;
	job.n_layers = OCI_LAYERS_MAX;
	assert_int_equal(render_confined(&job, NULL, &e), 0);
	job.n_layers++;
	assert_int_equal(render_confined(&job, NULL, &e), -E2BIG);
	assert_int_equal(render_here(&job, NULL, &e), -E2BIG);
	job.n_layers = 0;
	assert_int_equal(ftruncate(b.job.out, 0), 0);
	assert_int_equal(render_here(&job, NULL, &e), 0);
	cleanup_free char *got = listing_of(b.job.out);
	assert_string_equal(got, "d 0755 0:0 0 2 /\n");
}

static void test_whitelist(void **state)
{
	(void)state;
	static const char *const paths[] = { "/a/b/c",     "/d/", "/l/x", "//e/../f",
					     "/missing/x", "/h",  "/l" };
	static const char *const lines[] = {
		"d a mode=0700", "f a/b/c text=1", "f a/b/other", "f a/other",
		"f d/gone",      "l l to=a",       "f f text=2",  "f g text=3",
		"h h to=g",      "f e/gone",       NULL
	};
	struct err e;
	cleanup_free char *got = render_as(LAYER_OCI, lines, paths, ARRAY_SIZE(paths), &e);
	assert_string_equal(got ? got : e.text, "d 0755 0:0 0 4 /\n"
						"d 0700 0:0 0 3 a\n"
						"d 0755 0:0 0 2 a/b\n"
						"f 0644 0:0 0 1 a/b/c =1\n"
						"d 0755 0:0 0 2 d\n"
						"f 0644 0:0 0 1 f =2\n"
						"f 0644 0:0 0 1 h =3\n"
						"l 0777 0:0 0 1 l ->a\n");
	static const char *const relative[] = { "a" };
	assert_null(render_as(LAYER_OCI, lines, relative, 1, &e));
	assert_non_null(strstr(e.text, "\"a\" in the whitelist is not an absolute path"));
	static const char *const root[] = { "/" };
	cleanup_free char *empty = render_as(LAYER_OCI, lines, root, 1, &e);
	assert_string_equal(empty, "d 0755 0:0 0 2 /\n");
}

static void test_whitelist_limits(void **state)
{
	(void)state;
	static const char *paths[MERGE_PATHS_MAX + 1];
	static char longest[LAYER_PATH_MAX + 1];
	const char *const *lines = LINES("f a text=1", "f b text=2");
	struct err e;
	for (size_t i = 0; i <= MERGE_PATHS_MAX; i++)
		paths[i] = i % 2 ? "/a" : "/x/y/z";
	cleanup_free char *got = render_as(LAYER_OCI, lines, paths, MERGE_PATHS_MAX, &e);
	assert_string_equal(got ? got : e.text, "d 0755 0:0 0 2 /\nf 0644 0:0 0 1 a =1\n");
	assert_null(render_as(LAYER_OCI, lines, paths, MERGE_PATHS_MAX + 1, &e));
	assert_non_null(strstr(e.text, "more than 65536 paths"));
	memset(longest, '/', LAYER_PATH_MAX);
	paths[0] = longest;
	assert_null(render_as(LAYER_OCI, lines, paths, 1, &e));
	longest[LAYER_PATH_MAX - 1] = '\0';
	free(render_as(LAYER_OCI, lines, paths, 1, &e));
	assert_int_equal(e.code, 0);
}

/* What a whitelist leaves out is not in the file, if it is much. */
static void test_whitelist_saves_space(void **state)
{
	(void)state;
	CLEANUP(bench_deinit) struct bench b;
	struct err e = ERR_INIT;
	static const char *const paths[] = { "/small" };
	bench_init(&b);
	add_noise(&b, "big", WASTE_BYTES);
	add_lines(&b, LINES("f small text=1"));
	b.job.paths = paths;
	b.job.n_paths = 1;
	assert_int_equal(render_here(&b.job, NULL, &e), 0);
	assert_true(size_of(b.job.out) < 1 << 20);
	cleanup_free char *got = listing_of(b.job.out);
	assert_string_equal(got, "d 0755 0:0 0 2 /\nf 0644 0:0 0 1 small =1\n");
}

/* Checking without rendering. */
static const char *const sample_lines[] = { "d d", "f d/f text=content", NULL };

/* One layer in memory and what its digests are. */
struct sample {
	struct blob tar;
	struct blob stored;
	struct render_layer layer;
};

static void sample_init(struct sample *s, const char *filter, enum layer_kind kind)
{
	*s = (struct sample){ .layer = { .kind = kind, .span = SPAN_INIT, .has_blob = true } };
	layers_make(sample_lines, "pax", &s->tar);
	if (filter)
		layers_compress(&s->tar, filter, &s->stored);
	const struct blob *b = filter ? &s->stored : &s->tar;
	layers_span(b->data, b->len, &s->layer.span);
	digest_of(b->data, b->len, &s->layer.blob);
	digest_of(s->tar.data, s->tar.len, &s->layer.diff_id);
}

static void sample_deinit(struct sample *s)
{
	blob_deinit(&s->tar);
	blob_deinit(&s->stored);
	span_deinit(&s->layer.span);
}

static int check(const struct render_layer *layers, size_t n, uint64_t bytes_max, struct err *e)
{
	const struct render_job job = {
		.layers = layers,
		.n_layers = n,
		.out = -EBADF,
		.where = "nowhere",
		.bytes_max = bytes_max,
	};
	*e = ERR_INIT;
	int r = render_check_confined(&job, e);
	assert_int_equal(r < 0, e->text[0] != '\0');
	return r;
}

static void check_fails(const struct render_layer *layers, size_t n, uint64_t bytes_max, int code,
			const char *want)
{
	struct err e;
	assert_int_equal(check(layers, n, bytes_max, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

/* Each compression that a layer of its kind may have. */
static void test_check_good(void **state)
{
	static const struct {
		const char *filter;
		enum layer_kind kind;
	} cases[] = {
		{ NULL, LAYER_OCI },     { "gzip", LAYER_OCI }, { "zstd", LAYER_OCI },
		{ NULL, LAYER_PLAIN },   { "xz", LAYER_PLAIN }, { "bzip2", LAYER_PLAIN },
		{ "gzip", LAYER_PLAIN },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(sample_deinit) struct sample s;
		struct err e;
		sample_init(&s, cases[i].filter, cases[i].kind);
		if (check(&s.layer, 1, BYTES_MAX, &e) < 0)
			fail_msg("%s", e.text);
		/* Twice, as the descriptor's offset does not count. */
		assert_int_equal(check(&s.layer, 1, BYTES_MAX, &e), 0);
	}
}

/* Either digest is enough; a blob whose digest nobody knows is only what its content says. */
static void test_check_mismatch(void **state)
{
	CLEANUP(sample_deinit) struct sample s;
	struct err e;
	struct digest right;
	(void)state;
	sample_init(&s, "gzip", LAYER_OCI);
	right = s.layer.blob;
	digest_of("wrong", 5, &s.layer.blob);
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "layer 1 of 1 (sha256:");
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "): digest mismatch: it is sha256:");
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "(fetch the image again)");
	s.layer.has_blob = false;
	assert_int_equal(check(&s.layer, 1, BYTES_MAX, &e), 0);
	s.layer.has_blob = true;
	s.layer.blob = right;
	digest_of("wrong", 5, &s.layer.diff_id);
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "diff_id mismatch");
	s.layer.has_blob = false;
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "diff_id mismatch");
}

/* The second of two is named. */
static void test_check_which(void **state)
{
	CLEANUP(sample_deinit) struct sample a;
	CLEANUP(sample_deinit) struct sample b;
	struct err e;
	(void)state;
	sample_init(&a, "gzip", LAYER_OCI);
	sample_init(&b, NULL, LAYER_OCI);
	struct render_layer layers[] = { a.layer, b.layer };
	assert_int_equal(check(layers, 2, BYTES_MAX, &e), 0);
	digest_of("wrong", 5, &layers[1].diff_id);
	check_fails(layers, 2, BYTES_MAX, -EBADMSG, "layer 2 of 2");
	assert_int_equal(check(layers, 0, BYTES_MAX, &e), 0);
}

/* All layers together have at most so many bytes. */
static void test_check_limit(void **state)
{
	CLEANUP(sample_deinit) struct sample s;
	struct err e;
	(void)state;
	sample_init(&s, "gzip", LAYER_OCI);
	const struct render_layer layers[] = { s.layer, s.layer };
	assert_int_equal(check(layers, 2, 2 * s.tar.len, &e), 0);
	check_fails(layers, 2, 2 * s.tar.len - 1, -EFBIG, "layer 2 of 2");
	check_fails(layers, 1, 0, -EFBIG, "raise HUSK_IMAGE_BYTES_MAX");
}

/* What is cut, damaged or compressed as no layer may be. */
static void test_check_damaged(void **state)
{
	CLEANUP(sample_deinit) struct sample s;
	CLEANUP(sample_deinit) struct sample xz;
	(void)state;
	sample_init(&s, "gzip", LAYER_OCI);
	s.layer.span.size /= 2;
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "layer 1 of 1");
	s.layer.span.size = s.stored.len + 1; /* the file is shorter than it was */
	struct err e;
	assert_true(check(&s.layer, 1, BYTES_MAX, &e) < 0);
	sample_init(&xz, "xz", LAYER_OCI);
	assert_true(check(&xz.layer, 1, BYTES_MAX, &e) < 0);
}

static void test_check_number(void **state)
{
	static struct render_layer layers[OCI_LAYERS_MAX + 1];
	CLEANUP(sample_deinit) struct sample s;
	struct err e;
	(void)state;
	sample_init(&s, NULL, LAYER_OCI);
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		layers[i] = s.layer;
	assert_int_equal(check(layers, OCI_LAYERS_MAX, BYTES_MAX, &e), 0);
	check_fails(layers, OCI_LAYERS_MAX + 1, BYTES_MAX, -E2BIG, "more than 128 layers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_waste),
		fixture_test(test_waste_with_link),
		fixture_test(test_messages),
		fixture_test(test_truncation),
		fixture_test(test_sparse),
		fixture_test(test_disk_full),
		fixture_test(test_content_digest),
		fixture_test(test_content_digest_of_damage),
		fixture_test(test_plain),
		fixture_test(test_aci),
		fixture_test(test_compressions),
		fixture_test(test_layer_limit),
		fixture_test(test_whitelist),
		fixture_test(test_whitelist_limits),
		fixture_test(test_whitelist_saves_space),
		fixture_test(test_check_good),
		fixture_test(test_check_mismatch),
		fixture_test(test_check_which),
		fixture_test(test_check_limit),
		fixture_test(test_check_damaged),
		fixture_test(test_check_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
