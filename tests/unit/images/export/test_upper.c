/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/upper.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "images/render/layer.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"

struct read {
	struct upper *upper;
	struct tree *tree;
	struct err e;
};

static void read_deinit(struct read *r)
{
	tree_free(r->tree);
	upper_free(r->upper);
	assert_int_equal(chdir("/"), 0);
}

/* Reads the fixture's directory, opened as the program opens it. */
static int read_all(void **state, struct read *r)
{
	*r = (struct read){ .e = ERR_INIT };
	assert_true(fixture_dir(state) >= 0);
	cleanup_fd int dir = open(fixture_path(state), O_PATH | O_DIRECTORY | O_CLOEXEC);
	int result = upper_open(dir, &r->upper, &r->e);
	return result == 0 ? upper_tree(r->upper, &r->tree, &r->e) : result;
}

static const struct tree_inode *inode_at(const struct read *r, const char *dir, const char *name)
{
	struct tree_node *node = tree_root(r->tree);
	if (dir)
		node = tree_find(r->tree, node, dir, strlen(dir));
	assert_non_null(node);
	node = tree_find(r->tree, node, name, strlen(name));
	assert_non_null(node);
	return tree_inode_of(node);
}

static void make_file(int dir, const char *name, const char *text, mode_t mode)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	const struct timespec times[] = { { 5, 0 }, { 5, 0 } };
	assert_int_equal(futimens(fd, times), 0);
}

static void set_time(int dir, const char *name, time_t t)
{
	const struct timespec times[] = { { t, 0 }, { t, 0 } };
	assert_int_equal(utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void make_socket(int dir)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "s" };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(fchdir(dir), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(fchmodat(dir, "s", 0755, 0), 0);
}

static bool has_attributes(int dir)
{
	assert_int_equal(fchdir(dir), 0);
	return lsetxattr(".", "user.overlay.origin", "o", 1, 0) == 0;
}

/* Types, names, owners, times, links, attributes; modes keep root from nothing. */
static void test_tree(void **state)
{
	CLEANUP(read_deinit) struct read r = { 0 };
	int dir = fixture_dir(state);
	bool is_root = geteuid() == 0, xattrs = has_attributes(dir);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	cleanup_fd int d = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(d, "file", "hello", is_root ? 0 : 0400);
	make_file(d, "empty", "", 04755);
	assert_int_equal(linkat(d, "file", dir, "hard", 0), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "link"), 0);
	assert_int_equal(mkfifoat(dir, "pipe", 0600), 0);
	make_socket(dir);
	if (xattrs)
		assert_int_equal(setxattr("hard", "user.some", "v", 1, 0), 0);
	if (is_root) {
		assert_int_equal(mknodat(dir, "gone", S_IFCHR, makedev(0, 0)), 0);
		set_time(dir, "gone", 5);
		assert_int_equal(fchownat(d, "empty", 70000, 80000, 0), 0);
		assert_int_equal(fchmodat(d, "empty", 04755, 0), 0);
	}
	set_time(dir, "link", 6);
	set_time(dir, "pipe", -7);
	set_time(dir, "s", (time_t)1 << 33);
	if (is_root)
		assert_int_equal(fchmod(d, 0), 0);
	set_time(dir, "d", 8);
	set_time(dir, ".", 9);
	if (read_all(state, &r) < 0)
		fail_msg("%s", r.e.text);
	if (!is_root || !xattrs)
		return;
	cleanup_free char *got = tree_text(r.tree);
	assert_string_equal(got, "d 0700 0:0 9 . user.overlay.origin=o\n"
				 "d 0000 0:0 8 d\n"
				 "f 4755 70000:80000 5 d/empty 0\n"
				 "f 0000 0:0 5 d/file 5 user.some=v\n"
				 "c 0000 0:0 5 gone 0,0\n"
				 "f 0000 0:0 5 hard 5 user.some=v\n"
				 "l 0777 0:0 6 link ->/etc/passwd\n"
				 "p 0600 0:0 0 pipe\n"
				 "s 0755 0:0 4294967295 s\n");
	assert_ptr_equal(inode_at(&r, "d", "file"), inode_at(&r, NULL, "hard"));
	assert_true(tree_is_whiteout(inode_at(&r, NULL, "gone")));
}

/* What the reader says is in @name of @dir, holes as dots. */
static void expect_content(struct read *r, const char *dir, const char *name, const char *want)
{
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	const struct content_reader reader = upper_reader(r->upper);
	const struct tree_inode *inode = inode_at(r, dir, name);
	size_t size = strlen(want);
	cleanup_free char *got = malloc(size + 1);
	assert_int_equal(tree_size(inode), size);
	if (reader.map(reader.ctx, inode, &map, &r->e) < 0)
		fail_msg("%s", r->e.text);
	memset(got, '.', size);
	got[size] = '\0';
	for (size_t i = 0; i < map.n; i++) {
		const struct content_piece *p = &map.v[i];
		assert_true(p->offset + p->len <= size);
		/* In two reads, of which the second begins inside of the piece. */
		size_t half = (size_t)p->len / 2;
		assert_int_equal(reader.read(reader.ctx, p, 0, got + p->offset, half, &r->e), 0);
		assert_int_equal(reader.read(reader.ctx, p, half, got + p->offset + half,
					     (size_t)p->len - half, &r->e),
				 0);
	}
	for (size_t i = 0; i < size; i++)
		if (got[i] == '\0')
			got[i] = '.';
	assert_string_equal(got, want);
}

static void test_contents(void **state)
{
	CLEANUP(read_deinit) struct read r = { 0 };
	int dir = fixture_dir(state);
	static char want[300001];
	for (const char *const *name = (const char *[]){ "a", "b", NULL }; *name; name++) {
		assert_int_equal(mkdirat(dir, *name, 0700), 0);
		cleanup_fd int d = openat(dir, *name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		make_file(d, "file", *name, 0600);
		make_file(d, "other", "text", 0600);
	}
	make_file(dir, "sparse", "begin", 0600);
	make_file(dir, "empty", "", 0600);
	cleanup_fd int fd = openat(dir, "sparse", O_WRONLY | O_CLOEXEC);
	memset(want, '.', sizeof(want) - 1);
	memcpy(want, "begin", 5);
	memcpy(want + 200000, "end", 3);
	assert_int_equal(pwrite(fd, "end", 3, 200000), 3);
	assert_int_equal(ftruncate(fd, sizeof(want) - 1), 0);
	if (read_all(state, &r) < 0)
		fail_msg("%s", r.e.text);
	expect_content(&r, "a", "file", "a");
	expect_content(&r, "b", "other", "text");
	expect_content(&r, "b", "file", "b");
	expect_content(&r, NULL, "sparse", want);
	expect_content(&r, NULL, "empty", "");
	expect_content(&r, "a", "other", "text");
}

static void expect_refused(void **state, int code, const char *text)
{
	CLEANUP(read_deinit) struct read r = { 0 };
	assert_int_equal(read_all(state, &r), code);
	if (!strstr(r.e.text, text))
		fail_msg("%s", r.e.text);
}

/* What was there is something else now: no name is followed, nothing is waited for. */
static void test_changes_meanwhile(void **state)
{
	static const char text[] = "text";
	CLEANUP(read_deinit) struct read r = { 0 };
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "d", 0700), 0);
	cleanup_fd int d = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (const char *const *s = (const char *[]){ "fifo", "link", "long", NULL }; *s; s++)
		make_file(dir, *s, text, 0600);
	make_file(d, "file", text, 0600);
	assert_int_equal(read_all(state, &r), 0);
	const struct content_reader reader = upper_reader(r.upper);
	const struct {
		const char *dir, *name;
		int code;
	} cases[] = {
		{ NULL, "fifo", -ESTALE },
		{ NULL, "link", -ELOOP },
		{ NULL, "long", -ESTALE },
		{ "d", "file", -ENOTDIR },
	};
	unlinkat(dir, "fifo", 0);
	unlinkat(dir, "link", 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(symlinkat("long", dir, "link"), 0);
	cleanup_fd int fd = openat(dir, "long", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(fd_write_all(fd, "er", 2), 0);
	assert_int_equal(renameat(dir, "d", dir, "moved"), 0);
	assert_int_equal(symlinkat("moved", dir, "d"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct tree_inode *inode = inode_at(&r, cases[i].dir, cases[i].name);
		assert_int_equal(reader.map(reader.ctx, inode, &map, &r.e), cases[i].code);
	}
}

/* At the limit, and one level below it. */
static void test_depth(void **state)
{
	for (size_t more = 0; more < 2; more++) {
		CLEANUP(read_deinit) struct read r = { 0 };
		cleanup_fd int at = openat(fixture_dir(state), ".", O_RDONLY | O_CLOEXEC);
		for (size_t i = 0; i < TREE_DEPTH_MAX - 1 + more; i++) {
			assert_true(mkdirat(at, "n", 0700) == 0 || errno == EEXIST);
			fd_replace(&at, openat(at, "n", O_RDONLY | O_CLOEXEC));
			assert_true(at >= 0);
		}
		make_file(at, more ? "x" : "y", "deep", 0600);
		if (more == 0) {
			struct tree_node *n;
			assert_int_equal(read_all(state, &r), 0);
			for (n = tree_root(r.tree); tree_children(n);)
				n = tree_children(n);
			assert_string_equal(n->name, "y");
			assert_int_equal(n->depth, TREE_DEPTH_MAX);
			continue;
		}
		assert_int_equal(read_all(state, &r), -E2BIG);
		assert_non_null(strstr(r.e.text, "they are too deep"));
	}
}

static void test_many_names(void **state)
{
	CLEANUP(read_deinit) struct read r = { 0 };
	int dir = fixture_dir(state);
	char name[NAME_MAX + 1];
	make_file(dir, "x", "x", 0600);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "%0*d", NAME_MAX, i);
		assert_int_equal(linkat(dir, "x", dir, name, 0), 0);
	}
	if (read_all(state, &r) < 0)
		fail_msg("%s", r.e.text);
	assert_int_equal(tree_count(r.tree), 5002);
	assert_int_equal(inode_at(&r, NULL, "x")->nlink, 5001);
}

static void test_attributes(void **state)
{
	char name[64];
	if (!has_attributes(fixture_dir(state)))
		skip();
	fixture_write(state, "f", "x", 1);
	for (size_t i = 0; i <= LAYER_XATTRS_MAX; i++) {
		CLEANUP(read_deinit) struct read r = { 0 };
		assert_int_equal(fchdir(fixture_dir(state)), 0);
		snprintf(name, sizeof(name), "user.%zu", i);
		if (lsetxattr("f", name, "", 0, 0) < 0)
			skip(); /* a file system with less room */
		assert_int_equal(read_all(state, &r), i < LAYER_XATTRS_MAX ? 0 : -E2BIG);
	}
}

static void test_owners(void **state)
{
	char name[16];
	int dir = fixture_dir(state);
	if (geteuid() != 0)
		skip();
	for (unsigned i = 1; i <= TREE_OWNERS_MAX; i++) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(symlinkat("x", dir, name), 0);
		assert_int_equal(fchownat(dir, name, i, 0, AT_SYMLINK_NOFOLLOW), 0);
	}
	expect_refused(state, -E2BIG, "too many owners");
}

static void test_sizes(void **state)
{
	fixture_write(state, "f", "x", 1);
	CLEANUP(read_deinit) struct read r = { 0 };
	cleanup_fd int fd = openat(fixture_dir(state), "f", O_WRONLY | O_CLOEXEC);
	if (ftruncate(fd, (off_t)UPPER_FILE_MAX) < 0) { /* on ext4 one block less is the most */
		assert_int_equal(errno, EFBIG);
		return;
	}
	assert_int_equal(read_all(state, &r), 0);
	assert_int_equal(tree_size(inode_at(&r, NULL, "f")), UPPER_FILE_MAX);
	assert_int_equal(ftruncate(fd, (off_t)UPPER_FILE_MAX + 1), 0);
	expect_refused(state, -EFBIG, "the app's file \"f\"");
}

/* ---- in a mount namespace: the exit code says which step failed ---- */

static void in_namespace(void **state, int (*fn)(void **state))
{
	int status;
	if (geteuid() != 0)
		skip();
	assert_true(fixture_dir(state) >= 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(100);
		_exit(fn(state));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int read_mounted(void **state)
{
	struct read r;
	if (chdir(fixture_path(state)) < 0 || mkdir("m", 0700) < 0 ||
	    mount("none", "m", "tmpfs", 0, NULL) < 0)
		return 1;
	return read_all(state, &r) == -EXDEV && strstr(r.e.text, "the app's file \"m\"") ? 0 : 2;
}

static void test_other_file_system(void **state)
{
	in_namespace(state, read_mounted);
}

/* As of a file system whose files share blocks: it has got larger since it was looked at. */
static int read_too_much(void **state)
{
	struct content_map map = CONTENT_MAP_INIT;
	static const char page[8192] = "x";
	struct read r = { .e = ERR_INIT };
	if (mount("none", fixture_path(state), "tmpfs", 0, "size=16k") < 0)
		return 1;
	int dir = open(fixture_path(state), O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (upper_open(dir, &r.upper, &r.e) < 0 ||
	    mount("none", fixture_path(state), "tmpfs", MS_REMOUNT, "size=1m") < 0)
		return 2;
	for (const char *const *s = (const char *[]){ "a", "b", "c", NULL }; *s; s++) {
		int fd = openat(dir, *s, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd_write_all(fd, page, sizeof(page)) < 0)
			return 3;
	}
	if (upper_tree(r.upper, &r.tree, &r.e) < 0)
		return 4;
	const struct content_reader reader = upper_reader(r.upper);
	if (reader.map(reader.ctx, inode_at(&r, NULL, "a"), &map, &r.e) < 0 ||
	    (map.n = 0, reader.map(reader.ctx, inode_at(&r, NULL, "b"), &map, &r.e)) < 0)
		return 5;
	map.n = 0;
	return reader.map(reader.ctx, inode_at(&r, NULL, "c"), &map, &r.e) == -EFBIG &&
			       strstr(r.e.text, "more bytes than their file system")
		       ? 0
		       : 6;
}

static void test_too_many_bytes(void **state)
{
	in_namespace(state, read_too_much);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_tree),
		fixture_test(test_contents),
		fixture_test(test_changes_meanwhile),
		fixture_test(test_depth),
		fixture_test(test_many_names),
		fixture_test(test_attributes),
		fixture_test(test_owners),
		fixture_test(test_sizes),
		fixture_test(test_other_file_system),
		fixture_test(test_too_many_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
