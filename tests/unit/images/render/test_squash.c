/* SPDX-License-Identifier: Apache-2.0 */
/* Contents and inode types, read back with libsquashfs' readers. */
#include "images/render/squash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/render/merge.h"
#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/listing.h"

#define BLOCK SQUASH_BLOCK_SIZE

static void cleanup_tree(struct tree **t)
{
	tree_free(*t);
}

static void cleanup_merge(struct merge **m)
{
	merge_free(*m);
}

static void cleanup_squash(struct squash **s)
{
	squash_free(*s);
}

struct image {
	int fd;
	struct tree *tree;
	struct squash *squash;
	struct err e;
};

static void image_start_with(struct image *i, enum render_compression compression, int level)
{
	*i = (struct image){ .fd = memfd_create("image", MFD_CLOEXEC) };
	assert_int_equal(tree_new(&i->tree), 0);
	assert_int_equal(squash_new(i->fd, "DIR", compression, level, &i->squash, &i->e), 0);
}

static void image_start(struct image *i)
{
	image_start_with(i, RENDER_PLAIN, 0);
}

static void image_end(struct image *i)
{
	squash_free(i->squash);
	tree_free(i->tree);
	fd_close(i->fd);
}

static struct tree_inode *add(struct image *i, const char *name, uint32_t mode)
{
	struct tree_inode *inode;
	struct tree_node *node;
	assert_int_equal(tree_inode_new(i->tree, &inode), 0);
	inode->mode = (uint16_t)mode;
	assert_int_equal(tree_add(i->tree, tree_root(i->tree), name, strlen(name), inode, &node),
			 0);
	return inode;
}

/* Byte @at of the file @seed; 0 is a file of zeros. */
static unsigned char byte_at(unsigned int seed, size_t at)
{
	return seed == 0 ? 0 : (unsigned char)((at * seed >> 3) ^ at * 7);
}

static void add_file(struct image *i, const char *name, unsigned int seed, size_t size)
{
	struct tree_inode *inode = add(i, name, S_IFREG | 0644);
	assert_int_equal(squash_begin_file(i->squash, size, &i->e), 0);
	cleanup_free unsigned char *data = malloc(size + 1);
	assert_non_null(data);
	for (size_t k = 0; k < size; k++)
		data[k] = byte_at(seed, k);
	for (size_t done = 0; done < size;) { /* in pieces that match no block */
		size_t n = size - done < 50021 ? size - done : 50021;
		assert_int_equal(squash_data(i->squash, data + done, n, &i->e), 0);
		done += n;
	}
	assert_int_equal(squash_end_file(i->squash, i->tree, inode, &i->e), 0);
}

static void check_file(struct image *i, const char *name, unsigned int seed, size_t size)
{
	size_t len;
	cleanup_free char *got = listing_content(i->fd, name, &len);
	assert_int_equal(len, size);
	for (size_t k = 0; k < size; k++)
		if ((unsigned char)got[k] != byte_at(seed, k))
			fail_msg("%s: byte %zu is wrong", name, k);
}

static off_t check_sizes(enum render_compression compression, int level)
{
	static const size_t sizes[] = { 0,     1,         2,         BLOCK - 1,
					BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 77 };
	struct image i;
	char name[32];
	image_start_with(&i, compression, level);
	for (unsigned int k = 0; k < ARRAY_SIZE(sizes); k++) {
		snprintf(name, sizeof(name), "data%u", k);
		add_file(&i, name, k + 1, sizes[k]);
		snprintf(name, sizeof(name), "zero%u", k);
		add_file(&i, name, 0, sizes[k]);
	}
	for (unsigned int k = 0; k < 3000; k++) { /* several fragment blocks */
		snprintf(name, sizeof(name), "small%u", k);
		add_file(&i, name, k + 9, k % 200 + 1);
	}
	assert_int_equal(squash_finish(i.squash, i.tree, &i.e), 0);
	assert_int_equal(squash_size(i.squash) % 4096, 0);
	for (unsigned int k = 0; k < ARRAY_SIZE(sizes); k++) {
		snprintf(name, sizeof(name), "data%u", k);
		check_file(&i, name, k + 1, sizes[k]);
		snprintf(name, sizeof(name), "zero%u", k);
		check_file(&i, name, 0, sizes[k]);
	}
	for (unsigned int k = 0; k < 3000; k += 117) {
		snprintf(name, sizeof(name), "small%u", k);
		check_file(&i, name, k + 9, k % 200 + 1);
	}
	off_t size = lseek(i.fd, 0, SEEK_END);
	image_end(&i);
	return size;
}

static void test_sizes(void **state)
{
	(void)state;
	off_t plain = check_sizes(RENDER_PLAIN, 0);
	off_t lz4 = check_sizes(RENDER_LZ4, 0);
	off_t zstd = check_sizes(RENDER_ZSTD, 0);
	assert_true(zstd < lz4 && lz4 < plain);
	assert_int_equal(check_sizes(RENDER_ZSTD, RENDER_ZSTD_LEVEL), zstd);
	check_sizes(RENDER_ZSTD, RENDER_ZSTD_LEVEL_MAX);
}

static void test_levels(void **state)
{
	(void)state;
	static const struct {
		enum render_compression compression;
		int level;
	} bad[] = { { RENDER_PLAIN, 1 },
		    { RENDER_PLAIN, -1 },
		    { RENDER_LZ4, 1 },
		    { RENDER_ZSTD, -1 },
		    { RENDER_ZSTD, RENDER_ZSTD_LEVEL_MAX + 1 } };
	cleanup_fd int fd = memfd_create("image", MFD_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct err e = ERR_INIT;
		struct squash *s = NULL;
		assert_int_equal(squash_new(fd, "DIR", bad[i].compression, bad[i].level, &s, &e),
				 -EINVAL);
		assert_non_null(strstr(e.text, "cannot be compressed with the level"));
	}
}

/* What does not get smaller is stored as it is. */
static void test_noise(void **state)
{
	(void)state;
	static unsigned char noise[2 * BLOCK + 1000];
	uint64_t x = 1;
	for (size_t k = 0; k < sizeof(noise); k++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		noise[k] = (unsigned char)(x >> 56);
	}
	for (enum render_compression c = RENDER_PLAIN; c <= RENDER_ZSTD; c++) {
		struct image i;
		image_start_with(&i, c, 0);
		struct tree_inode *inode = add(&i, "noise", S_IFREG | 0644);
		assert_int_equal(squash_begin_file(i.squash, sizeof(noise), &i.e), 0);
		assert_int_equal(squash_data(i.squash, noise, sizeof(noise), &i.e), 0);
		assert_int_equal(squash_end_file(i.squash, i.tree, inode, &i.e), 0);
		for (int k = 0; k < 200; k++) { /* tables of noise, too */
			char name[32];
			snprintf(name, sizeof(name), "%d", k);
			struct tree_inode *f = add(&i, name, S_IFIFO);
			assert_int_equal(
				tree_add_xattr(i.tree, f, "user.x", noise + 1000 * k, 1000), 0);
		}
		assert_int_equal(squash_finish(i.squash, i.tree, &i.e), 0);
		size_t len;
		cleanup_free char *got = listing_content(i.fd, "noise", &len);
		assert_int_equal(len, sizeof(noise));
		assert_memory_equal(got, noise, len);
		free(listing_of(i.fd));
		image_end(&i);
	}
}

static void test_holes(void **state)
{
	(void)state;
	struct image i;
	image_start(&i);
	struct tree_inode *inode = add(&i, "sparse", S_IFREG | 0644);
	const uint64_t size = 10 * BLOCK + 5;
	assert_int_equal(squash_begin_file(i.squash, size, &i.e), 0);
	assert_int_equal(squash_hole(i.squash, 3 * BLOCK + 100, &i.e), 0);
	assert_int_equal(squash_data(i.squash, "abc", 3, &i.e), 0);
	assert_int_equal(squash_hole(i.squash, size - 3 * BLOCK - 104, &i.e), 0);
	assert_int_equal(squash_data(i.squash, "z", 1, &i.e), 0);
	assert_int_equal(squash_end_file(i.squash, i.tree, inode, &i.e), 0);
	struct tree_content c;
	tree_get_content(inode, &c);
	assert_int_equal(c.sparse, 9 * BLOCK);
	assert_int_equal(c.n_runs, 3);
	/* A hole of a terabyte costs nothing in memory. */
	struct tree_inode *huge = add(&i, "huge", S_IFREG | 0644);
	assert_int_equal(squash_begin_file(i.squash, UINT64_C(1) << 40, &i.e), 0);
	assert_int_equal(squash_hole(i.squash, UINT64_C(1) << 40, &i.e), 0);
	assert_int_equal(squash_end_file(i.squash, i.tree, huge, &i.e), 0);
	tree_get_content(huge, &c);
	assert_int_equal(c.n_runs, 1);
	assert_int_equal(squash_finish(i.squash, i.tree, &i.e), 0);
	size_t len;
	cleanup_free char *got = listing_content(i.fd, "sparse", &len);
	assert_int_equal(len, size);
	assert_memory_equal(got + 3 * BLOCK + 100, "abc", 3);
	assert_int_equal(got[3 * BLOCK + 99], 0);
	assert_int_equal(got[3 * BLOCK + 103], 0);
	assert_int_equal(got[size - 1], 'z');
	image_end(&i);
}

static void test_wrong_size(void **state)
{
	(void)state;
	struct image i;
	image_start(&i);
	struct tree_inode *inode = add(&i, "f", S_IFREG | 0644);
	assert_int_equal(squash_begin_file(i.squash, 3, &i.e), 0);
	assert_int_equal(squash_data(i.squash, "abc", 3, &i.e), 0);
	assert_int_equal(squash_data(i.squash, "d", 1, &i.e), -EBADMSG);
	assert_int_equal(squash_hole(i.squash, 1, &i.e), -EBADMSG);
	assert_int_equal(squash_end_file(i.squash, i.tree, inode, &i.e), 0);
	assert_int_equal(squash_begin_file(i.squash, 3, &i.e), 0);
	assert_int_equal(squash_end_file(i.squash, i.tree, inode, &i.e), -EBADMSG);
	assert_int_equal(squash_begin_file(i.squash, SQUASH_BLOCKS_MAX * BLOCK - 1, &i.e), 0);
	assert_int_equal(squash_begin_file(i.squash, SQUASH_BLOCKS_MAX * BLOCK, &i.e), -EFBIG);
	assert_int_equal(squash_begin_file(i.squash, UINT64_MAX, &i.e), -EFBIG);
	image_end(&i);
}

/* A listing that needs many runs, an index and more than one metadata block. */
static void test_large_directory(void **state)
{
	(void)state;
	struct image i;
	image_start(&i);
	char name[TREE_NAME_MAX + 1];
	for (int k = 0; k < 5000; k++) {
		snprintf(name, sizeof(name), "%04d-%0200d", k, k);
		struct tree_inode *inode = add(&i, name, S_IFIFO | 0600);
		assert_int_equal(tree_set_owner(i.tree, inode, (uint32_t)k % 50, 0), 0);
	}
	assert_int_equal(squash_finish(i.squash, i.tree, &i.e), 0);
	cleanup_free char *got = listing_of(i.fd);
	size_t lines = 0;
	for (const char *p = got; (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, 5001);
	image_end(&i);
}

/* As many owners as a tree may have. */
static void test_many_owners(void **state)
{
	(void)state;
	struct image i;
	image_start(&i);
	char name[16];
	for (uint32_t k = 1; k < TREE_OWNERS_MAX; k++) { /* the root's 0 is the first */
		snprintf(name, sizeof(name), "%04u", k);
		struct tree_inode *inode = add(&i, name, S_IFIFO | 0600);
		assert_int_equal(tree_set_owner(i.tree, inode, 0, 7 * k), 0);
	}
	assert_int_equal(squash_finish(i.squash, i.tree, &i.e), 0);
	cleanup_free char *got = listing_of(i.fd);
	assert_non_null(strstr(got, "0:28665 0 1 4095\n"));
	image_end(&i);
}

static void test_xattrs_shared(void **state)
{
	(void)state;
	struct image i;
	image_start(&i);
	static char large[LAYER_XATTR_VALUE_MAX];
	memset(large, 'v', sizeof(large));
	for (int k = 0; k < 20; k++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", k);
		struct tree_inode *x = add(&i, name, k % 2 ? S_IFREG | 0755 : S_IFDIR | 0755);
		assert_int_equal(tree_add_xattr(i.tree, x, "user.large", large, sizeof(large)), 0);
		assert_int_equal(tree_add_xattr(i.tree, x, "security.capability", "\1\0\0\2", 4),
				 0);
	}
	assert_int_equal(squash_finish(i.squash, i.tree, &i.e), 0);
	assert_true(squash_size(i.squash) < 65536);
	cleanup_free char *got = listing_of(i.fd);
	assert_non_null(strstr(got, "security.capability=%01%00%00%02 user.large=vvv"));
	image_end(&i);
}

static void test_disk_full(void **state)
{
	(void)state;
	CLEANUP(cleanup_squash) struct squash *s = NULL;
	struct err e = ERR_INIT;
	cleanup_fd int full = open("/dev/full", O_RDWR | O_CLOEXEC);
	assert_int_equal(squash_new(full, "/store", RENDER_PLAIN, 0, &s, &e), -ENOSPC);
	assert_string_equal(e.text, "no space left in /store (free some space or use --dir)");
}

/* An image with one of everything, merged and written. */
static int merge_and_write(void *ctx)
{
	static const struct layer_entry entries[] = {
		{ .path = "d/e", .mode = S_IFDIR | 0755 },
		{ .path = "f",
		  .mode = S_IFREG | 0644,
		  .xattrs = { { "user.k", "v", 1 } },
		  .n_xattrs = 1 },
		{ .path = "l", .mode = S_IFLNK | 0777, .target = "d" },
		{ .path = "l/h", .hardlink = "f" },
		{ .path = "d/.wh.e" },
		{ .path = "c", .mode = S_IFCHR | 0600, .major = 1, .minor = 3 },
	};
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	CLEANUP(cleanup_merge) struct merge *m = NULL;
	CLEANUP(cleanup_squash) struct squash *s = NULL;
	struct err e = ERR_INIT;
	int r = ftruncate(*(int *)ctx, 0);
	if (r == 0)
		r = tree_new(&t);
	if (r == 0)
		r = merge_new(t, &m);
	if (r == 0)
		r = squash_new(*(int *)ctx, "DIR", RENDER_ZSTD, 1, &s, &e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(entries); i++) {
		struct tree_inode *file;
		merge_begin_layer(m, true);
		r = merge_apply(m, &entries[i], &file, &e);
		if (r == 0 && file)
			r = squash_begin_file(s, 3, &e);
		if (r == 0 && file)
			r = squash_data(s, "abc", 3, &e);
		if (r == 0 && file)
			r = squash_end_file(s, t, file, &e);
	}
	return r < 0 ? r : squash_finish(s, t, &e);
}

static void test_allocation_failures(void **state)
{
	(void)state;
	cleanup_fd int fd = memfd_create("image", MFD_CLOEXEC);
	for_each_failing_alloc(merge_and_write, &fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_levels),      fixture_test(test_noise),
		fixture_test(test_sizes),       fixture_test(test_holes),
		fixture_test(test_wrong_size),  fixture_test(test_large_directory),
		fixture_test(test_many_owners), fixture_test(test_xattrs_shared),
		fixture_test(test_disk_full),   fixture_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
