/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/render/layer.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"

#define MIB ((uint64_t)1 << 20)

/*
 * A file's content is the letter in tree_inode.place, in as many pieces as there are @holes, plus
 * one.
 */
struct source {
	size_t holes;
	uint64_t hole;
	char letter;
};

static int map(void *ctx, const struct tree_inode *inode, struct content_map *ret, struct err *e)
{
	struct source *s = ctx;
	uint64_t size = tree_size(inode), piece = (size - s->holes * s->hole) / (s->holes + 1);
	(void)e;
	s->letter = (char)inode->place;
	for (size_t i = 0; i <= s->holes && piece > 0; i++)
		assert_int_equal(content_map_add(ret, i * (piece + s->hole), piece, i * piece), 0);
	return 0;
}

static int read_piece(void *ctx, const struct content_piece *piece, uint64_t skip, void *mem,
		      size_t len, struct err *e)
{
	const struct source *s = ctx;
	(void)e;
	assert_true(skip + len <= piece->len);
	memset(mem, s->letter, len);
	return 0;
}

struct bench {
	struct tree *tree;
	struct source source;
	int fd;
	struct err e;
	struct sink_sums sums;
};

static void bench_init(struct bench *b)
{
	*b = (struct bench){ .fd = memfd_create("tar", MFD_CLOEXEC) };
	assert_int_equal(tree_new(&b->tree), 0);
}

static void bench_deinit(struct bench *b)
{
	tree_free(b->tree);
	fd_close(b->fd);
}

static struct tree_inode *put_file(struct bench *b, const char *path, uint64_t size, char letter)
{
	struct tree_inode *inode = tree_put(b->tree, path, S_IFREG | 0644);
	inode->layer = CONTENT_DISK;
	const struct tree_content c = { .size = size, .fragment = TREE_NO_FRAGMENT };
	assert_int_equal(tree_set_content(b->tree, inode, &c), 0);
	inode->place = (uint32_t)letter;
	return inode;
}

static int write_tree(struct bench *b, const char *prefix)
{
	const struct content_reader readers[CONTENT_COUNT_] = {
		[CONTENT_DISK] = { map, read_piece, &b->source },
	};
	struct sink *sink;
	struct archive_out *a;
	assert_int_equal(sink_new(b->fd, 0, false, &sink, &b->e), 0);
	assert_int_equal(archive_out_new(sink, &a, &b->e), 0);
	int r = archive_out_file(a, "manifest", "{}", 2, &b->e);
	if (r == 0)
		r = archive_out_tree(a, b->tree, prefix, readers, &b->e);
	if (r == 0)
		r = archive_out_finish(a, &b->e);
	archive_out_free(a);
	if (r == 0)
		r = sink_finish(sink, &b->sums, &b->e);
	sink_free(sink);
	return r;
}

/* Number of bytes of @letter; the others must be zeros. */
static long count_letters(struct archive *in, char letter)
{
	const void *block;
	size_t len;
	la_int64_t offset;
	long n = 0;
	int r;
	while ((r = archive_read_data_block(in, &block, &len, &offset)) == ARCHIVE_OK) {
		const char *p = block;
		for (size_t i = 0; i < len; i++) {
			assert_true(p[i] == letter || p[i] == 0);
			n += p[i] == letter;
		}
	}
	assert_int_equal(r, ARCHIVE_EOF);
	return n;
}

/* One line for each entry. */
static char *read_back(struct bench *b, char letter)
{
	struct archive *in = archive_read_new();
	struct archive_entry *entry;
	struct buf out;
	buf_init(&out, MIB);
	archive_read_support_format_tar(in);
	lseek(b->fd, 0, SEEK_SET);
	assert_int_equal(archive_read_open_fd(in, b->fd, 10240), ARCHIVE_OK);
	while (archive_read_next_header(in, &entry) == ARCHIVE_OK) {
		const char *name;
		const void *value;
		size_t size;
		if (strcmp(archive_entry_pathname(entry), "manifest") == 0)
			continue;
		buf_printf(&out, "%s %06o %lld:%lld %lld", archive_entry_pathname(entry),
			   archive_entry_mode(entry), (long long)archive_entry_uid(entry),
			   (long long)archive_entry_gid(entry),
			   (long long)archive_entry_mtime(entry));
		if (archive_entry_hardlink(entry))
			buf_printf(&out, " =%s", archive_entry_hardlink(entry));
		else if (archive_entry_symlink(entry))
			buf_printf(&out, " ->%s", archive_entry_symlink(entry));
		else if (archive_entry_filetype(entry) == AE_IFCHR)
			buf_printf(&out, " %u,%u", (unsigned)archive_entry_rdevmajor(entry),
				   (unsigned)archive_entry_rdevminor(entry));
		else if (archive_entry_filetype(entry) == AE_IFREG)
			buf_printf(&out, " %lld %ld", (long long)archive_entry_size(entry),
				   count_letters(in, letter));
		archive_entry_xattr_reset(entry);
		while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
			buf_printf(&out, " %s=%.*s", name, (int)size, (const char *)value);
		buf_puts(&out, "\n");
	}
	archive_read_free(in);
	return buf_take_string(&out);
}

static void test_types(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	struct tree_node *node;
	(void)state;
	bench_init(&b);
	tree_put(b.tree, "d", S_IFDIR | 01755)->mtime = UINT32_MAX;
	struct tree_inode *file = put_file(&b, "d/f", 3, 'a');
	assert_int_equal(tree_set_owner(b.tree, file, 4000000000, 0), 0);
	tree_put_xattr(b.tree, file, "user.x", "1\n2");
	assert_int_equal(tree_add(b.tree, tree_root(b.tree), "z", 1, file, &node), 0);
	struct tree_inode *link = tree_put(b.tree, "l", S_IFLNK | 0777);
	assert_int_equal(tree_set_target(b.tree, link, "/a/b", 4), 0);
	struct tree_inode *device = tree_put(b.tree, "c", S_IFCHR | 0600);
	tree_set_device(device, 4095, 1048575);
	tree_put(b.tree, "p", S_IFIFO | 0600);
	tree_put(b.tree, "s", S_IFSOCK | 0600);
	tree_put(b.tree, "\xff\n", S_IFDIR | 0700);
	assert_int_equal(write_tree(&b, "rootfs/"), 0);
	cleanup_free char *got = read_back(&b, 'a');
	assert_string_equal(got, "rootfs/ 040755 0:0 0\n"
				 "rootfs/c 020600 0:0 0 4095,1048575\n"
				 "rootfs/d/ 041755 0:0 4294967295\n"
				 "rootfs/d/f 100644 4000000000:0 0 3 3 user.x=1\n2\n"
				 "rootfs/l 120777 0:0 0 ->/a/b\n"
				 "rootfs/p 010600 0:0 0\n"
				 "rootfs/z 000644 4000000000:0 0 =rootfs/d/f user.x=1\n2\n"
				 "rootfs/\xff\n/ 040700 0:0 0\n");
}

static void check_holes(size_t holes, uint64_t hole, uint64_t size, bool sparse)
{
	CLEANUP(bench_deinit) struct bench b;
	char want[200];
	bench_init(&b);
	b.source = (struct source){ .holes = holes, .hole = hole };
	put_file(&b, "f", size, 'a');
	assert_int_equal(write_tree(&b, ""), 0);
	cleanup_free char *got = read_back(&b, 'a');
	snprintf(want, sizeof(want), "./ 040755 0:0 0\nf 100644 0:0 0 %llu %llu\n",
		 (unsigned long long)size,
		 (unsigned long long)((size - holes * hole) / (holes + 1) * (holes + 1)));
	assert_string_equal(got, want);
	if (sparse)
		assert_true(b.sums.plain_size < size - holes * hole / 2);
	else
		assert_true(b.sums.plain_size >= size);
}

/* At the limit and below it; in the middle, at the end, nothing else. */
static void test_holes(void **state)
{
	(void)state;
	check_holes(0, 0, 0, false);
	check_holes(0, 0, 3 * MIB + 7, false);
	check_holes(1, ARCHIVE_HOLE_MIN, MIB, true);
	check_holes(1, ARCHIVE_HOLE_MIN - 1, MIB, false);
	check_holes(9, 4 * MIB, 40 * MIB, true);
	check_holes(1, 100 * MIB, 100 * MIB, true);
	check_holes(1, 100 * MIB, 100 * MIB + 1, true);
	check_holes(1, 9000 * MIB, 9001 * MIB, true);
}

static void test_long_path(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	char path[LAYER_PATH_MAX + 16] = "";
	(void)state;
	bench_init(&b);
	for (int i = 0; i < 16; i++) {
		memset(path + strlen(path), 'n', 254);
		tree_put(b.tree, path, S_IFDIR | 0755);
		path[255 * i + 254] = '/';
	}
	memset(path + 4080, 'f', 15); /* 4095 bytes */
	put_file(&b, path, 1, 'a');
	assert_int_equal(write_tree(&b, ""), 0);
	assert_int_equal(write_tree(&b, "x/"), -ENAMETOOLONG);
	assert_non_null(strstr(b.e.text, "is longer than the 4095 bytes that an image may have"));
}

static void test_attribute_name(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	(void)state;
	bench_init(&b);
	tree_put_xattr(b.tree, put_file(&b, "f", 1, 'a'), "user.a=b", "c");
	assert_int_equal(write_tree(&b, ""), -EOPNOTSUPP);
	assert_non_null(strstr(b.e.text, "\"f\" has an extended attribute \"user.a=b\""));
}

/* Sparse files cost a guest nothing; all of them together are bounded. */
static void test_bytes_limit(void **state)
{
	struct bench b;
	(void)state;
	bench_init(&b);
	put_file(&b, "a", MIB, 'a');
	b.source.holes = 0;
	put_file(&b, "b", ARCHIVE_BYTES_MAX - MIB + 1, 'b');
	assert_int_equal(write_tree(&b, ""), -EFBIG);
	assert_non_null(strstr(b.e.text, "\"b\": all files together have more than 64 GiB"));
	bench_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_bytes_limit),    fixture_test(test_types),
		fixture_test(test_holes),          fixture_test(test_long_path),
		fixture_test(test_attribute_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
