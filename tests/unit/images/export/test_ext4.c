/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/ext4.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"

#define DISK_SIZE ((size_t)4 << 20)

/* A file of every kind. */
#define COMMANDS                                                 \
	"mkdir app\nmkdir app/upper\n"                           \
	"mkdir app/upper/d\nmkdir app/upper/d/e\n"               \
	"write data app/upper/d/file\n"                          \
	"sif app/upper/d/file uid 70000\n"                       \
	"sif app/upper/d/file mode 0104755\n"                    \
	"sif app/upper/d/file mtime @1000000000\n"               \
	"sif app/upper/d mtime @1000000001\n"                    \
	"sif app/upper/d/e mtime @1\n"                           \
	"sif app/upper mtime @2\n"                               \
	"ln app/upper/d/file app/upper/d/e/link\n"               \
	"symlink app/upper/short /target\n"                      \
	"sif app/upper/short mtime @3\n"                         \
	"cd app/upper\nmknod char c 4 200\nmknod pipe p\ncd /\n" \
	"sif app/upper/char mtime @4\n"                          \
	"sif app/upper/pipe mtime @5\n"                          \
	"ea_set app/upper/d trusted.overlay.opaque y\n"          \
	"ea_set app/upper/d user.b 2\n"                          \
	"sif app/upper/d/file links_count 2\n"

#define LISTING                                                       \
	"d 0755 0:0 2 .\n"                                            \
	"c 0000 0:0 4 char 4,200\n"                                   \
	"d 0755 0:0 1000000001 d trusted.overlay.opaque=y user.b=2\n" \
	"d 0755 0:0 1 d/e\n"                                          \
	"f 4755 70000:0 1000000000 d/e/link 11\n"                     \
	"f 4755 70000:0 1000000000 d/file 11\n"                       \
	"p 0000 0:0 5 pipe\n"                                         \
	"l 0777 0:0 3 short ->/target\n"

struct disk {
	int fd;
	struct ext4 *ext4;
	struct ext4_changes changes;
	struct err e;
};

static void disk_deinit(struct disk *d)
{
	tree_free(d->changes.tree);
	ext4_free(d->ext4);
	fd_close(d->fd);
}

static int read_tree(struct disk *d)
{
	tree_free(d->changes.tree);
	ext4_free(d->ext4);
	d->changes.tree = NULL;
	d->ext4 = NULL;
	d->e = ERR_INIT;
	int r = ext4_open(d->fd, &d->ext4, &d->e);
	return r == 0 ? ext4_tree(d->ext4, "app", &d->changes, &d->e) : r;
}

static void disk_init(struct disk *d, void **state, const char *features, const char *commands)
{
	*d = (struct disk){ .fd = disk_make(fixture_path(state), features, commands) };
}

#define DISK(commands)                                   \
	CLEANUP(disk_deinit) struct disk d;              \
	fixture_write(state, "data", "hello world", 11); \
	disk_init(&d, state, DISK_STAGE1, commands)

static void check_refused(struct disk *d, const char *want)
{
	assert_true(read_tree(d) < 0);
	if (!strstr(d->e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, d->e.text);
}

static void test_tree(void **state)
{
	DISK(COMMANDS);
	if (read_tree(&d) < 0)
		fail_msg("%s", d.e.text);
	cleanup_free char *got = tree_text(d.changes.tree);
	assert_string_equal(got, LISTING);
	assert_true(ext4_is_clean(d.ext4));
	assert_int_equal(d.changes.lost, 0);
	const struct tree_node *dir = tree_find(d.changes.tree, tree_root(d.changes.tree), "d", 1);
	const struct tree_inode *file = tree_inode_of(tree_find(d.changes.tree, dir, "file", 4));
	assert_int_equal(file->nlink, 2);
}

/* Whole content of the file @name in the root directory. */
static char *read_file(struct disk *d, const char *name, struct content_map *map)
{
	const struct content_reader r = ext4_reader(d->ext4);
	const struct tree_inode *inode = tree_inode_of(
		tree_find(d->changes.tree, tree_root(d->changes.tree), name, strlen(name)));
	char *mem = calloc(1, (size_t)tree_size(inode) + 1);
	assert_int_equal(r.map(r.ctx, inode, map, &d->e), 0);
	for (size_t i = 0; i < map->n; i++)
		assert_int_equal(r.read(r.ctx, &map->v[i], 0, mem + map->v[i].offset,
					(size_t)map->v[i].len, &d->e),
				 0);
	return mem;
}

/* With extents and without, holes in the middle. */
static void test_content(void **state)
{
	static const char *const features[] = { DISK_STAGE1, "^has_journal,^extents,^64bit" };
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(disk_deinit) struct disk d;
		CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
		char path[4096], link[1100] = "symlink app/upper/long ";
		char commands[2000];
		memset(link + strlen(link), 't', 1000);
		snprintf(path, sizeof(path), "%s/data", fixture_path(state));
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		assert_int_equal(pwrite(fd, "middle", 6, 700000), 6);
		assert_int_equal(ftruncate(fd, 900000), 0);
		fd_close(fd);
		snprintf(commands, sizeof(commands),
			 "mkdir app\nmkdir app/upper\nwrite data app/upper/file\n%s\n", link);
		disk_init(&d, state, features[i], commands);
		if (read_tree(&d) < 0)
			fail_msg("%s", d.e.text);
		cleanup_free char *mem = read_file(&d, "file", &map);
		assert_memory_equal(mem + 700000, "middle", 6);
		assert_int_equal(map.n, 1);
		assert_true(map.v[0].len <= 8192);
		const struct tree_node *n =
			tree_find(d.changes.tree, tree_root(d.changes.tree), "long", 4);
		assert_int_equal(strlen(tree_target(tree_inode_of(n))), 1000);
	}
}

static void test_no_directory(void **state)
{
	DISK("mkdir app\n");
	check_refused(&d, "the scratch disk has no directory app/upper");
	assert_int_equal(d.e.code, -ENOENT);
}

static void test_lost(void **state)
{
	DISK(COMMANDS "clri app/upper/pipe\n");
	check_refused(&d, "is not in use, but has a name");
	fd_close(d.fd);
	d.fd = disk_make(fixture_path(state), DISK_STAGE1,
			 COMMANDS "clri app/upper/pipe\nssv state 0\n");
	assert_int_equal(read_tree(&d), 0);
	assert_false(ext4_is_clean(d.ext4));
	assert_int_equal(d.changes.lost, 1);
	assert_null(tree_find(d.changes.tree, tree_root(d.changes.tree), "pipe", 4));
}

/* Commands behind those for a good disk, and what is said. */
static void test_inconsistent(void **state)
{
	static const struct {
		const char *commands, *want;
	} cases[] = {
		{ "ln app/upper/d app/upper/d/e/again\n", "is a directory with two names" },
		{ "sif app/upper/d/file mode 0150000\n", "has no type" },
		{ "sif app/upper/d/file flags 0x10080000\n", "has flags that husk did not allow" },
		{ "sif app/upper/d/file uid 0xffffffff\n", "has no owner" },
		{ "sif app/upper mode 0100644\n", "should be the app's directory" },
		{ "sif app/upper/short size 0\n", "is a symbolic link without a target" },
		{ "sif app/upper/d/file size 0xffffffffffffff\n", "is larger than a file can be" },
		{ "ssv feature_incompat 0x12c2\n",
		  "features that husk did not give it (incompat 0x1000" },
		{ "ssv feature_incompat 0x82c2\n", "features that husk did not give it" },
		{ "ssv feature_ro_compat 0x26b\n", "features that husk did not give it" },
		{ "ssv blocks_count 0x100000\n", "the file is shorter than its file system" },
		{ "ssv blocks_per_group 64\n", "no such block groups" },
		{ "ssv log_block_size 7\n", "no such block size" },
		{ "ssv inodes_count 0x2000001\n", "it has too many inodes" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char commands[4096];
		snprintf(commands, sizeof(commands), COMMANDS "%s", cases[i].commands);
		DISK(commands);
		check_refused(&d, cases[i].want);
	}
}

/* Replaces every @from in the disk by @to, of the same length. */
static void replace(int fd, const char *from, const char *to)
{
	size_t len = strlen(from), n = 0;
	cleanup_free char *mem = malloc(DISK_SIZE);
	assert_int_equal(pread(fd, mem, DISK_SIZE, 0), DISK_SIZE);
	for (size_t at = 0; at + len <= DISK_SIZE; at++) {
		if (memcmp(mem + at, from, len) != 0)
			continue;
		assert_int_equal(pwrite(fd, to, len, (off_t)at), len);
		n++;
	}
	assert_true(n > 0);
}

static void test_names(void **state)
{
	DISK(COMMANDS "write data app/upper/nameOne\nwrite data app/upper/nameTwo\n");
	assert_int_equal(read_tree(&d), 0);
	replace(d.fd, "nameOne", "a/../..");
	check_refused(&d, "has a name that no file can have");
	replace(d.fd, "a/../..", "nameTwo");
	check_refused(&d, "has a name that another file has");
}

static void test_cut_off(void **state)
{
	DISK(COMMANDS);
	assert_int_equal(pwrite(d.fd, "x", 1, 1024 + 56), 1);
	check_refused(&d, "there is no ext4 file system on it");
	assert_int_equal(pwrite(d.fd, "\x53", 1, 1024 + 56), 1);
	assert_int_equal(read_tree(&d), 0);
	assert_int_equal(ftruncate(d.fd, DISK_SIZE - 4096), 0);
	check_refused(&d, "the file is shorter than its file system");
	assert_int_equal(ftruncate(d.fd, 2047), 0);
	check_refused(&d, "the file is too short for a file system");
	assert_int_equal(ftruncate(d.fd, 0), 0);
	check_refused(&d, "the file is too short for a file system");
}

/* Random bytes, the same each time: an error with a text, or a tree. */
static void test_damaged(void **state)
{
	DISK(COMMANDS);
	uint64_t x = 1;
	int refused = 0;
	cleanup_free unsigned char *good = malloc(DISK_SIZE);
	assert_int_equal(pread(d.fd, good, DISK_SIZE, 0), DISK_SIZE);
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 50;) {
			x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
			size_t at = (size_t)(x >> 40) % DISK_SIZE;
			unsigned char bad = (unsigned char)(x >> 32);
			if (!good[at] && x >> 62 != 0)
				continue;
			assert_int_equal(pwrite(d.fd, &bad, 1, (off_t)at), 1);
			i++;
		}
		int r = read_tree(&d);
		assert_true(r == 0 || (r < 0 && d.e.text[0]));
		refused += r < 0;
		assert_int_equal(pwrite(d.fd, good, DISK_SIZE, 0), DISK_SIZE);
	}
	assert_true(refused > 0);
	assert_int_equal(read_tree(&d), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_tree),         fixture_test(test_content),
		fixture_test(test_no_directory), fixture_test(test_lost),
		fixture_test(test_inconsistent), fixture_test(test_names),
		fixture_test(test_cut_off),      fixture_test(test_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
