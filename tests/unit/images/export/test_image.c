/* SPDX-License-Identifier: Apache-2.0 */
/* Images rendered by husk, read back; damaged ones end in an error. */
#include "images/export/image.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/render/render.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"
#include "tests/unit/images/render/layers.h"

static int render(const char *const *lines)
{
	int fd = memfd_create("image", MFD_CLOEXEC);
	struct render_layer layer = { .span = SPAN_INIT };
	struct render_job job = { .layers = &layer,
				  .n_layers = 1,
				  .out = fd,
				  .where = "DIR",
				  .bytes_max = RENDER_BYTES_MAX };
	cleanup_blob struct blob tar = { NULL, 0 };
	struct err e = ERR_INIT;
	layers_make(lines, "pax", &tar);
	layers_span(tar.data, tar.len, &layer.span);
	digest_of(tar.data, tar.len, &layer.diff_id);
	if (render_here(&job, NULL, &e) < 0)
		fail_msg("%s", e.text);
	span_deinit(&layer.span);
	return fd;
}

static const char *const lines[] = {
	"d d mode=1777 uid=1 gid=4000000000 mtime=5",
	"f d/f text=hello mode=4755 x:user.a=1 x:trusted.b=2",
	"h d/h to=d/f",
	"l d/l to=/target",
	"c d/c dev=4095,1048575",
	"c d/whiteout dev=0,0",
	"b d/b dev=8,1",
	"p d/p",
	"f d/sparse text=start hole=1000000 zeros=1",
	"f empty",
	NULL,
};

static void test_tree(void **state)
{
	(void)state;
	cleanup_fd int fd = render(lines);
	struct image_fs *s;
	struct tree *t;
	struct err e = ERR_INIT;
	assert_int_equal(image_fs_open(fd, &s, &e), 0);
	assert_int_equal(image_fs_tree(s, &t, &e), 0);
	cleanup_free char *got = tree_text(t);
	assert_string_equal(got, "d 0755 0:0 0 .\n"
				 "d 1777 1:4000000000 5 d\n"
				 "b 0644 0:0 0 d/b 8,1\n"
				 "c 0644 0:0 0 d/c 4095,1048575\n"
				 "f 4755 0:0 0 d/f 5 trusted.b=2 user.a=1\n"
				 "f 4755 0:0 0 d/h 5 trusted.b=2 user.a=1\n"
				 "l 0777 0:0 0 d/l ->/target\n"
				 "p 0644 0:0 0 d/p\n"
				 "f 0644 0:0 0 d/sparse 1000006\n"
				 "f 0644 0:0 0 empty 0\n");
	const struct tree_node *d = tree_find(t, tree_root(t), "d", 1);
	assert_ptr_equal(tree_inode_of(tree_find(t, d, "f", 1)),
			 tree_inode_of(tree_find(t, d, "h", 1)));
	assert_int_equal(tree_inode_of(tree_find(t, d, "f", 1))->nlink, 2);
	tree_free(t);
	image_fs_free(s);
}

static void test_content(void **state)
{
	(void)state;
	cleanup_fd int fd = render(lines);
	struct image_fs *s;
	struct tree *t;
	struct err e = ERR_INIT;
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	char mem[8] = "";
	assert_int_equal(image_fs_open(fd, &s, &e), 0);
	assert_int_equal(image_fs_tree(s, &t, &e), 0);
	const struct content_reader reader = image_fs_reader(s);
	const struct tree_node *d = tree_find(t, tree_root(t), "d", 1);
	assert_int_equal(
		reader.map(reader.ctx, tree_inode_of(tree_find(t, d, "sparse", 6)), &map, &e), 0);
	uint64_t sum = 0;
	for (size_t i = 0; i < map.n; i++)
		sum += map.v[i].len;
	assert_true(sum < 300000);
	content_map_deinit(&map);
	assert_int_equal(reader.map(reader.ctx, tree_inode_of(tree_find(t, d, "f", 1)), &map, &e),
			 0);
	assert_int_equal(map.n, 1);
	assert_int_equal(reader.read(reader.ctx, &map.v[0], 1, mem, 4, &e), 0);
	assert_string_equal(mem, "ello");
	tree_free(t);
	image_fs_free(s);
}

/* 0 or -errno; then the error has a text. */
static int read_all(int fd)
{
	struct image_fs *s = NULL;
	struct tree *t = NULL;
	struct err e = ERR_INIT;
	int r = image_fs_open(fd, &s, &e);
	if (r == 0)
		r = image_fs_tree(s, &t, &e);
	assert_true(r == 0 || (r < 0 && e.code == r && e.text[0]));
	tree_free(t);
	image_fs_free(s);
	return r;
}

static void test_damaged(void **state)
{
	(void)state;
	cleanup_fd int fd = render(lines);
	off_t size = lseek(fd, 0, SEEK_END);
	unsigned char old;
	int refused = 0;
	for (off_t at = 0; at < size; at += 3) {
		assert_int_equal(pread(fd, &old, 1, at), 1);
		unsigned char bad = (unsigned char)(old ^ 0x41);
		assert_int_equal(pwrite(fd, &bad, 1, at), 1);
		refused += read_all(fd) < 0;
		assert_int_equal(pwrite(fd, &old, 1, at), 1);
	}
	assert_true(refused > 10);
	assert_int_equal(read_all(fd), 0);
	assert_int_equal(ftruncate(fd, size / 2), 0);
	assert_true(read_all(fd) < 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_true(read_all(fd) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_tree),
		fixture_test(test_content),
		fixture_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
