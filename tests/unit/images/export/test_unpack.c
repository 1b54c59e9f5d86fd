/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees become files; what only root can do is left out for others; nobody leads the writer
 * elsewhere.
 */
#include "images/export/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/rmtree.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"

#define NOBODY 65534

/* A reader whose files have the bytes of "content" where they are not holes. */
struct source {
	const struct content_piece *pieces;
	size_t n;
	void (*on_map)(void *ctx); /* called for each file, before it is written */
	void *ctx;
};

static int map(void *ctx, const struct tree_inode *inode, struct content_map *ret, struct err *e)
{
	const struct source *s = ctx;
	int r = 0;
	if (s->on_map)
		s->on_map(s->ctx);
	for (size_t i = 0; i < s->n && r == 0; i++)
		r = content_map_add(ret, s->pieces[i].offset, s->pieces[i].len, s->pieces[i].at);
	content_map_clip(ret, tree_size(inode));
	return r < 0 ? err_sys(e, r, "map") : 0;
}

static int read_piece(void *ctx, const struct content_piece *piece, uint64_t skip, void *mem,
		      size_t len, struct err *e)
{
	(void)ctx;
	(void)e;
	for (size_t i = 0; i < len; i++)
		((char *)mem)[i] = "content"[(piece->at + skip + i) % 7];
	return 0;
}

static const struct content_piece whole = { 0, 7, 0 };

struct bench {
	struct tree *tree;
	struct source source;
	struct content_reader readers[CONTENT_COUNT_];
	struct unpack_user user;
	struct unpack_report report;
	struct err e;
	int dir; /* of the test */
	int in;  /* where it is unpacked */
};

static void bench_init(struct bench *b, void **state)
{
	*b = (struct bench){ .source = { &whole, 1, NULL, NULL } };
	b->user = (struct unpack_user){ geteuid(), getegid() };
	b->readers[CONTENT_IMAGE] =
		(struct content_reader){ .map = map, .read = read_piece, .ctx = &b->source };
	b->dir = fixture_dir(state);
	assert_int_equal(tree_new(&b->tree), 0);
	assert_int_equal(mkdirat(b->dir, "in", 0700), 0);
	b->in = openat(b->dir, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void bench_deinit(struct bench *b)
{
	tree_free(b->tree);
	fd_close(b->in);
}

static int unpack(struct bench *b)
{
	return unpack_tree(b->in, b->tree, b->readers, &b->user, &b->report, &b->e);
}

static void unpack_well(struct bench *b)
{
	if (unpack(b) < 0)
		fail_msg("%s", b->e.text);
}

static struct tree_inode *put_file(struct bench *b, const char *path, uint32_t mode, uint64_t size)
{
	struct tree_inode *inode = tree_put(b->tree, path, S_IFREG | mode);
	struct tree_content c = { .size = size, .fragment = TREE_NO_FRAGMENT };
	inode->layer = CONTENT_IMAGE;
	assert_int_equal(tree_set_content(b->tree, inode, &c), 0);
	return inode;
}

static struct tree_node *find_dir(struct bench *b, const char *name)
{
	struct tree_node *n = tree_find(b->tree, tree_root(b->tree), name, strlen(name));
	assert_non_null(n);
	return n;
}

static void put_link(struct bench *b, const char *dir, const char *name, struct tree_inode *inode)
{
	struct tree_node *node;
	assert_int_equal(tree_add(b->tree, dir ? find_dir(b, dir) : tree_root(b->tree), name,
				  strlen(name), inode, &node),
			 0);
}

static struct stat stat_of(const struct bench *b, const char *path)
{
	struct stat st;
	if (fstatat(b->in, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return st;
}

static void test_types(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	char target[16] = "";
	bench_init(&b, state);
	tree_inode_of(tree_root(b.tree))->mtime = 77;
	tree_put(b.tree, "d", S_IFDIR | 0500)->mtime = 1000000000;
	tree_put(b.tree, "d/sub", S_IFDIR | 01777);
	struct tree_inode *f = put_file(&b, "d/f", 0640, 7);
	f->mtime = 5;
	put_link(&b, NULL, "h", f);
	struct tree_inode *l = tree_put(b.tree, "l", S_IFLNK | 0777);
	l->mtime = 6;
	assert_int_equal(tree_set_target(b.tree, l, "/outside", 8), 0);
	put_link(&b, "d", "l2", l);
	tree_put(b.tree, "p", S_IFIFO | 06622)->mtime = 7;
	tree_put(b.tree, "socket", S_IFSOCK | 0777);
	put_file(&b, "empty", 0, 0);
	put_file(&b, "not\xffutf8\n", 0600, 7);
	mode_t mask = umask(077);
	unpack_well(&b);
	assert_int_equal(umask(mask), 077);
	assert_int_equal(b.report.devices + b.report.xattrs + b.report.set_ids, 0);

	struct stat st = stat_of(&b, "d/f");
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st_size, 7);
	assert_int_equal(st.st_mtim.tv_sec, 5);
	assert_int_equal(st.st_mtim.tv_nsec, 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(stat_of(&b, "h").st_ino, st.st_ino);
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(b.in, "h", 100, &text, NULL), 0);
	assert_string_equal(text, "content");
	st = stat_of(&b, "d");
	assert_int_equal(st.st_mode, S_IFDIR | 0500);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(stat_of(&b, "d/sub").st_mode, S_IFDIR | 01777);
	st = stat_of(&b, "l");
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(st.st_mtim.tv_sec, 6);
	assert_int_equal(stat_of(&b, "d/l2").st_ino, st.st_ino);
	assert_int_equal(readlinkat(b.in, "l", target, sizeof(target) - 1), 8);
	assert_string_equal(target, "/outside");
	st = stat_of(&b, "p");
	assert_int_equal(st.st_mode, S_IFIFO | 0622);
	assert_int_equal(st.st_mtim.tv_sec, 7);
	assert_int_equal(stat_of(&b, "empty").st_mode, S_IFREG);
	assert_int_equal(stat_of(&b, "not\xffutf8\n").st_size, 7);
	assert_int_equal(faccessat(b.in, "socket", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	st = stat_of(&b, ".");
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(st.st_mtim.tv_sec, 77);
	assert_int_equal(fchmodat(b.in, "d", 0700, 0), 0); /* for the fixture */
}

static void test_holes(void **state)
{
	static const struct content_piece pieces[] = { { 0, 4096, 0 },
						       { 1 << 20, 4096, CONTENT_ZEROS },
						       { 9 << 20, 3 << 20, 9 } };
	CLEANUP(bench_deinit) struct bench b;
	char mem[7];
	bench_init(&b, state);
	b.source.pieces = pieces;
	b.source.n = ARRAY_SIZE(pieces);
	put_file(&b, "f", 0644, 100 << 20);
	unpack_well(&b);
	struct stat st = stat_of(&b, "f");
	assert_int_equal(st.st_size, 100 << 20);
	assert_true(st.st_blocks * 512 < 6 << 20);
	cleanup_fd int fd = openat(b.in, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, mem, 7, 11 << 20), 7);
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(mem[i], "content"[(9 + (2 << 20) + i) % 7]);
	assert_int_equal(pread(fd, mem, 1, 1 << 20), 1);
	assert_int_equal(mem[0], 0);
}

static void test_size_limit(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b, state);
	b.source.n = 0;
	struct tree_inode *inode = put_file(&b, "f", 0644, UNPACK_BYTES_MAX);
	unpack_well(&b);
	assert_int_equal(unlinkat(b.in, "f", 0), 0);
	inode->number = 0;
	put_file(&b, "one-more", 0644, 1);
	assert_int_equal(unpack(&b), -EFBIG);
	assert_non_null(strstr(b.e.text, "all files together have more than 64 GiB"));
}

static const char capability[] =
	"\1\0\0\2\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0"; /* CAP_NET_RAW, effective; with the NUL */

static void put_privileged(struct bench *b)
{
	struct tree_inode *c = tree_put(b->tree, "c", S_IFCHR | 0620);
	tree_set_device(c, 4, 300);
	assert_int_equal(tree_set_owner(b->tree, c, 3, 4), 0);
	put_link(b, NULL, "c2", c);
	tree_set_device(tree_put(b->tree, "b", S_IFBLK | 0600), 259, 70000);
	struct tree_inode *f = put_file(b, "f", 06755, 7);
	assert_int_equal(tree_set_owner(b->tree, f, 1000, 4000000000), 0);
	tree_put_xattr(b->tree, f, "user.a", "1");
	tree_put_xattr(b->tree, f, "trusted.b", "2");
	assert_int_equal(
		tree_add_xattr(b->tree, f, "security.capability", capability, sizeof(capability)),
		0);
	struct tree_inode *d = tree_put(b->tree, "d", S_IFDIR | 0);
	assert_int_equal(tree_set_owner(b->tree, d, 5, 6), 0);
	tree_put_xattr(b->tree, d, "user.d", "3");
	struct tree_inode *l = tree_put(b->tree, "d/l", S_IFLNK | 0777);
	assert_int_equal(tree_set_target(b->tree, l, "t", 1), 0);
	assert_int_equal(tree_set_owner(b->tree, l, 7, 8), 0);
	tree_put_xattr(b->tree, l, "trusted.e", "4");
}

static void test_root(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	char value[32];
	if (geteuid() != 0)
		skip();
	bench_init(&b, state);
	put_privileged(&b);
	unpack_well(&b);
	assert_int_equal(b.report.devices, 0);
	assert_int_equal(b.report.set_ids, 0);
	struct stat st = stat_of(&b, "f");
	assert_int_equal(st.st_mode, S_IFREG | 06755);
	assert_int_equal(st.st_uid, 1000);
	assert_true(st.st_gid == 4000000000);
	st = stat_of(&b, "c");
	assert_int_equal(st.st_mode, S_IFCHR | 0620);
	assert_int_equal(major(st.st_rdev), 4);
	assert_int_equal(minor(st.st_rdev), 300);
	assert_int_equal(st.st_uid, 3);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(minor(stat_of(&b, "b").st_rdev), 70000);
	st = stat_of(&b, "d/l");
	assert_int_equal(st.st_uid, 7);
	assert_int_equal(st.st_gid, 8);
	st = stat_of(&b, "d");
	assert_int_equal(st.st_mode, S_IFDIR);
	assert_int_equal(st.st_uid, 5);
	cleanup_fd int fd = openat(b.in, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fgetxattr(fd, "security.capability", value, sizeof(value)), 20);
	assert_memory_equal(value, capability, 20);
	/* Not every file system has user attributes; trusted.* are never set. */
	if (fgetxattr(fd, "user.a", value, sizeof(value)) == 1)
		assert_int_equal(b.report.xattrs, 2);
	else
		assert_int_equal(b.report.xattrs, 4);
	assert_int_equal(fgetxattr(fd, "trusted.b", value, sizeof(value)), -1);
}

/* In a child: drops root, if there is. */
static int unpack_as_nobody(struct bench *b)
{
	if (geteuid() == 0 &&
	    (fchown(b->in, NOBODY, NOBODY) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		return 1;
	b->user = (struct unpack_user){ geteuid(), getegid() };
	put_file(b, "mine", 04711, 7);
	assert_int_equal(tree_set_owner(b->tree, tree_inode_of(find_dir(b, "mine")), b->user.uid,
					b->user.gid),
			 0);
	unpack_well(b);
	assert_int_equal(b->report.devices, 3);
	assert_true(b->report.xattrs >= 3);
	assert_int_equal(b->report.set_ids, 1);
	struct stat st = stat_of(b, "f");
	assert_int_equal(st.st_mode, S_IFREG | 0755);
	assert_int_equal(st.st_uid, b->user.uid);
	assert_int_equal(stat_of(b, "mine").st_mode, S_IFREG | 04711);
	assert_int_equal(stat_of(b, "d").st_mode, S_IFDIR);
	assert_int_equal(faccessat(b->in, "c2", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	return fchmodat(b->in, "d", 0700, 0) < 0 || stat_of(b, "d/l").st_uid != b->user.uid;
}

static void test_user(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	int status;
	bench_init(&b, state);
	put_privileged(&b);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(unpack_as_nobody(&b));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Someone who may write where the tree is unpacked. */
struct attacker {
	int dir;
	int in;
	int calls;
};

static void plant_link(void *ctx)
{
	struct attacker *a = ctx;
	if (a->calls++ == 0)
		assert_int_equal(symlinkat("../outside", a->in, "next"), 0);
}

/* A link in the place of a file or a directory that is going to be made. */
static void test_planted_link(void **state)
{
	static const uint32_t modes[] = { S_IFREG | 0644, S_IFDIR | 0755, S_IFIFO | 0644,
					  S_IFLNK | 0777 };
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		CLEANUP(bench_deinit) struct bench b;
		bench_init(&b, state);
		struct attacker a = { b.dir, b.in, 0 };
		b.source.on_map = plant_link;
		b.source.ctx = &a;
		fixture_write(state, "outside", "kept", 4);
		struct tree_inode *next = S_ISREG(modes[i]) ? put_file(&b, "next", modes[i], 7)
							    : tree_put(b.tree, "next", modes[i]);
		if (S_ISLNK(modes[i]))
			assert_int_equal(tree_set_target(b.tree, next, "t", 1), 0);
		put_file(&b, "first", 0644, 7);
		tree_sort(tree_root(b.tree));
		assert_int_equal(unpack(&b), -EEXIST);
		assert_string_equal(b.e.text, "\"/next\": something of this name is there already "
					      "(does another program write here?)");
		cleanup_free char *text = NULL;
		assert_int_equal(file_read_at(b.dir, "outside", 100, &text, NULL), 0);
		assert_string_equal(text, "kept");
		assert_int_equal(unlinkat(b.in, "first", 0), 0);
		assert_int_equal(unlinkat(b.in, "next", 0), 0);
		assert_int_equal(unlinkat(b.dir, "in", AT_REMOVEDIR), 0);
	}
}

static void swap_directory(void *ctx)
{
	struct attacker *a = ctx;
	if (a->calls++ > 0)
		return;
	assert_int_equal(renameat(a->in, "d", a->in, "moved"), 0);
	assert_int_equal(symlinkat("../elsewhere", a->in, "d"), 0);
}

/* A directory is exchanged for a link while files are made in it. */
static void test_swapped_directory(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b, state);
	struct attacker a = { b.dir, b.in, 0 };
	assert_int_equal(mkdirat(b.dir, "elsewhere", 0755), 0);
	b.source.on_map = swap_directory;
	b.source.ctx = &a;
	tree_put(b.tree, "d", S_IFDIR | 0711);
	struct tree_inode *f = put_file(&b, "d/a", 0644, 7);
	put_file(&b, "d/b", 0644, 7);
	put_link(&b, NULL, "link", f);
	tree_sort(tree_root(b.tree));
	tree_sort(find_dir(&b, "d"));
	assert_true(unpack(&b) < 0);
	struct stat st;
	assert_int_equal(fstatat(b.dir, "elsewhere", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(unlinkat(b.dir, "elsewhere", AT_REMOVEDIR), 0); /* so it is empty */
	assert_int_equal(stat_of(&b, "moved/b").st_size, 7);
}

static void test_bad_names(void **state)
{
	static const char *const names[] = { ".", "..", "a/b", "/" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(bench_deinit) struct bench b;
		bench_init(&b, state);
		struct tree_inode *inode;
		assert_int_equal(tree_inode_new(b.tree, &inode), 0);
		inode->mode = S_IFDIR | 0755;
		put_link(&b, NULL, names[i], inode);
		assert_int_equal(unpack(&b), -EBADMSG);
		assert_int_equal(unlinkat(b.dir, "in", AT_REMOVEDIR), 0);
	}
}

static void test_deep(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	struct rlimit limit;
	bench_init(&b, state);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < TREE_DEPTH_MAX + 64)
		skip();
	struct tree_node *at = tree_root(b.tree);
	struct tree_inode *inode, *file = put_file(&b, "f", 0644, 7);
	int depth = 0, r = 0;
	while (r == 0) {
		assert_int_equal(tree_inode_new(b.tree, &inode), 0);
		inode->mode = S_IFDIR | 0755;
		r = tree_add(b.tree, at, "d", 1, inode, &at);
		depth += r == 0;
	}
	assert_true(depth >= TREE_DEPTH_MAX - 1);
	struct tree_node *node;
	assert_int_equal(tree_add(b.tree, tree_parent(at), "link", 4, file, &node), 0);
	unpack_well(&b);
	assert_int_equal(stat_of(&b, "f").st_nlink, 2);
	cleanup_fd int fd = fcntl(b.in, F_DUPFD_CLOEXEC, 0);
	for (int i = 0; i < depth; i++)
		fd_replace(&fd, openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_true(fd >= 0);
	assert_int_equal(rmtree(b.dir, "in"), 0); /* deeper than the fixture goes */
}

static void test_full_file_system(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	struct rlimit old, small = { 4, RLIM_INFINITY };
	bench_init(&b, state);
	put_file(&b, "f", 0644, 7);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	int r = unpack(&b);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(r, -EFBIG);
	assert_string_equal(b.e.text, "\"/f\": File too large");
}

static int unpack_again(void *ctx)
{
	struct bench *b = ctx;
	unlinkat(b->in, "f", 0);
	return unpack(b);
}

static void test_short_memory(void **state)
{
	CLEANUP(bench_deinit) struct bench b;
	bench_init(&b, state);
	put_file(&b, "f", 0644, 7);
	for_each_failing_alloc(unpack_again, &b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_types),
		fixture_test(test_holes),
		fixture_test(test_size_limit),
		fixture_test(test_root),
		fixture_test(test_user),
		fixture_test(test_planted_link),
		fixture_test(test_swapped_directory),
		fixture_test(test_bad_names),
		fixture_test(test_deep),
		fixture_test(test_full_file_system),
		fixture_test(test_short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
