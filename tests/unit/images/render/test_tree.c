/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"

#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void cleanup_tree(struct tree **t)
{
	tree_free(*t);
}

static struct tree_node *add(struct tree *t, struct tree_node *dir, const char *name, uint32_t mode)
{
	struct tree_inode *inode;
	struct tree_node *node;
	assert_int_equal(tree_inode_new(t, &inode), 0);
	inode->mode = (uint16_t)mode;
	assert_int_equal(tree_add(t, dir, name, strlen(name), inode, &node), 0);
	return node;
}

static void test_add_find_remove(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_node *root = tree_root(t);
	struct tree_node *a = add(t, root, "a", S_IFDIR | 0755);
	struct tree_node *b = add(t, a, "b", S_IFDIR | 0755);
	struct tree_node *x = add(t, b, "x", S_IFREG | 0644), *y;
	assert_int_equal(tree_add(t, root, "y", 1, tree_inode_of(x), &y), 0);
	assert_int_equal(tree_inode_of(x)->nlink, 2);
	assert_int_equal(tree_count(t), 5);
	assert_ptr_equal(tree_find(t, b, "xyz", 1), x);
	assert_null(tree_find(t, a, "x", 1));
	assert_null(tree_find(t, b, "xx", 2));
	assert_null(tree_find(t, b, "", 0));
	struct tree_inode *gone = tree_inode_of(a), *shared = tree_inode_of(x);
	tree_remove(t, a);
	assert_int_equal(tree_count(t), 2);
	assert_int_equal(shared->nlink, 1);
	assert_int_equal(gone->nlink, 0);
	assert_null(tree_find(t, root, "a", 1));
	tree_remove(t, y);
	assert_null(tree_children(root));
	tree_free(NULL);
}

static void check_sorted(struct tree *t, size_t want)
{
	tree_sort(tree_root(t));
	const struct tree_node *before = NULL;
	size_t n = 0;
	for (const struct tree_node *c = tree_children(tree_root(t)); c; c = tree_next(c)) {
		if (before)
			assert_true(strcmp(before->name, c->name) < 0);
		before = c;
		n++;
	}
	assert_int_equal(n, want);
}

static void test_many_children(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	char name[16];
	const int n = 50000;
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%d", i);
		add(t, tree_root(t), name, S_IFREG);
	}
	for (int i = 0; i < n; i += 2) {
		snprintf(name, sizeof(name), "%d", i);
		struct tree_node *c = tree_find(t, tree_root(t), name, strlen(name));
		assert_non_null(c);
		tree_remove(t, c);
	}
	check_sorted(t, n / 2);
	for (int i = 0; i < n; i += 4) {
		snprintf(name, sizeof(name), "%d", i);
		add(t, tree_root(t), name, S_IFREG);
	}
	assert_int_equal(tree_count(t), n / 2 + n / 4 + 1);
	check_sorted(t, n / 2 + n / 4);
}

/* Byte order: 0xff is the last, not negative. */
static void test_order(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	add(t, tree_root(t), "\xff", S_IFREG);
	add(t, tree_root(t), "b", S_IFREG);
	add(t, tree_root(t), "a", S_IFREG);
	add(t, tree_root(t), "a!", S_IFREG);
	static const char *const want[] = { "a", "a!", "b", "\xff" };
	tree_sort(tree_root(t));
	const struct tree_node *c = tree_children(tree_root(t));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++, c = tree_next(c))
		assert_string_equal(c->name, want[i]);
	assert_null(c);
}

static void test_depth_limit(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_node *dir = tree_root(t), *top = NULL, *node;
	for (int i = 0; i < TREE_DEPTH_MAX; i++) {
		dir = add(t, dir, "d", S_IFDIR);
		top = top ? top : dir;
	}
	assert_int_equal(tree_add(t, dir, "d", 1, tree_inode_of(dir), &node), TREE_E_DEPTH);
	tree_remove(t, top);
	assert_int_equal(tree_count(t), 1);
}

static void test_node_limit(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_inode *inode;
	struct tree_node *node;
	char name[16];
	assert_int_equal(tree_inode_new(t, &inode), 0);
	for (size_t i = 1; i < TREE_NODES_MAX; i++) {
		int len = snprintf(name, sizeof(name), "%zu", i);
		if (tree_add(t, tree_root(t), name, (size_t)len, inode, &node) != 0)
			fail_msg("node %zu", i);
	}
	assert_int_equal(tree_add(t, tree_root(t), "x", 1, inode, &node), TREE_E_FULL);
	tree_remove(t, node);
	assert_int_equal(tree_add(t, tree_root(t), "x", 1, inode, &node), 0);
}

/* Names come and go, in the middle of a list, at its head, and with their directory. */
static void test_memory_is_used_again(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_node *root = tree_root(t);
	add(t, root, "first", S_IFREG);
	for (int i = 0; i < 2000000; i++) {
		struct tree_node *dir = add(t, root, i % 2 ? "dir" : "other", S_IFDIR);
		struct tree_node *middle = add(t, dir, "middle", S_IFLNK);
		assert_int_equal(tree_set_target(t, tree_inode_of(middle), "target", 6), 0);
		struct tree_inode *file = tree_inode_of(add(t, dir, "head", S_IFREG));
		assert_int_equal(tree_add_xattr(t, file, "user.x", "value", 5), 0);
		const struct tree_content c = { .size = 1 };
		assert_int_equal(tree_set_content(t, file, &c), 0);
		tree_remove(t, middle);
		tree_remove(t, dir);
		int gone = 0;
		for (struct tree_inode *g; (g = tree_take_gone(t)); gone++)
			tree_inode_free(t, g);
		assert_int_equal(gone, 3);
	}
	assert_int_equal(tree_count(t), 2);
}

/* An inode that got another name in time is not gone. */
static void test_gone_and_back(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_node *root = tree_root(t), *node;
	struct tree_inode *file = tree_inode_of(add(t, root, "a", S_IFREG));
	for (int i = 0; i < 3; i++) {
		tree_remove(t, tree_find(t, root, "a", 1));
		assert_int_equal(tree_add(t, root, "a", 1, file, &node), 0);
	}
	assert_null(tree_take_gone(t));
	tree_remove(t, node);
	assert_ptr_equal(tree_take_gone(t), file);
	assert_null(tree_take_gone(t));
}

static void check_content(struct tree *t, uint64_t size, uint32_t n_runs)
{
	struct tree_run runs[3] = { { 7, 1 }, { 0, 2 }, { 9, UINT32_MAX } };
	struct tree_content c = { .size = size,
				  .start = n_runs > 0 ? UINT64_MAX : 0,
				  .sparse = n_runs > 0 ? 5 : 0,
				  .fragment = 3,
				  .fragment_offset = 131071,
				  .n_runs = n_runs,
				  .runs = runs };
	struct tree_inode *inode;
	struct tree_content got;
	assert_int_equal(tree_inode_new(t, &inode), 0);
	inode->mode = S_IFREG;
	assert_int_equal(tree_size(inode), 0);
	assert_int_equal(tree_set_content(t, inode, &c), 0);
	tree_get_content(inode, &got);
	assert_true(got.size == c.size && got.start == c.start && got.sparse == c.sparse);
	assert_true(got.fragment == c.fragment && got.fragment_offset == c.fragment_offset);
	assert_int_equal(got.n_runs, n_runs);
	assert_memory_equal(got.runs ? got.runs : runs, runs, n_runs * sizeof(runs[0]));
	assert_int_equal(tree_size(inode), size);
}

static void test_parts(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	check_content(t, 1, 0);
	check_content(t, UINT32_MAX, 0);
	check_content(t, (uint64_t)UINT32_MAX + 1, 0);
	check_content(t, 1, 1);
	check_content(t, UINT64_MAX, 3);
	struct tree_inode *inode = tree_inode_of(add(t, tree_root(t), "c", S_IFCHR));
	tree_set_device(inode, 4095, 1048575);
	assert_int_equal(tree_major(inode), 4095);
	assert_int_equal(tree_minor(inode), 1048575);
	inode = tree_inode_of(add(t, tree_root(t), "l", S_IFLNK));
	assert_int_equal(tree_set_target(t, inode, "a/bc", 3), 0);
	assert_string_equal(tree_target(inode), "a/b");
}

static bool keep_b(const char *name)
{
	return strcmp(name, "b") == 0;
}

static void check_xattrs(const struct tree_inode *inode, const char *want)
{
	char text[64] = "";
	for (const struct tree_xattr *x = tree_xattrs(inode); x; x = tree_next_xattr(x))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%.*s ", x->name,
			 (int)x->size, (const char *)tree_xattr_value(x));
	assert_string_equal(text, want);
}

static void test_xattrs(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_inode *inode = tree_inode_of(tree_root(t)), *copy;
	assert_int_equal(tree_add_xattr(t, inode, "b", "2", 1), 0);
	assert_int_equal(tree_add_xattr(t, inode, "c", NULL, 0), 0);
	assert_int_equal(tree_add_xattr(t, inode, "a", "old", 3), 0);
	assert_int_equal(tree_add_xattr(t, inode, "a", "1", 1), 0);
	check_xattrs(inode, "a=1 b=2 c= ");
	assert_int_equal(tree_copy_inode(t, inode, &copy), 0);
	tree_filter_xattrs(t, inode, keep_b);
	check_xattrs(inode, "b=2 ");
	tree_filter_xattrs(t, inode, NULL);
	check_xattrs(inode, "");
	check_xattrs(copy, "a=1 b=2 c= ");
}

static void test_owner_limit(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	assert_int_equal(tree_new(&t), 0);
	struct tree_inode *inode = tree_inode_of(tree_root(t));
	for (uint32_t i = 1; i < TREE_OWNERS_MAX; i++) { /* 0 is the first */
		uint32_t id = i * 65536;
		assert_int_equal(tree_set_owner(t, inode, id, UINT32_C(65536)), 0);
		assert_int_equal(tree_uid(inode), id);
		assert_int_equal(tree_gid(inode), 65536);
	}
	assert_int_equal(tree_set_owner(t, inode, 1, 0), TREE_E_OWNERS);
	assert_int_equal(tree_set_owner(t, inode, 0, 1), TREE_E_OWNERS);
	assert_int_equal(tree_set_owner(t, inode, 0, 131072), 0);
}

/* TREE_BYTES_MAX holds 600,000 ordinary files, in directories of a hundred. */
static void test_memory_limit(void **state)
{
	(void)state;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(tree_new(&t), 0);
	struct tree_node *dir = NULL, *node;
	const struct tree_content c = { .size = 1000 };
	char name[32];
	int r = 0, i;
	for (i = 0; r == 0; i++) {
		struct tree_inode *file;
		snprintf(name, sizeof(name), "dir-%06d", i / 100);
		if (i % 100 == 0 && tree_inode_new(t, &file) == 0) {
			file->mode = S_IFDIR;
			r = tree_add(t, tree_root(t), name, strlen(name), file, &dir);
		}
		r = r != 0 ? r : tree_inode_new(t, &file);
		if (r != 0)
			break;
		file->mode = S_IFREG;
		snprintf(name, sizeof(name), "a-file-%09d", i);
		r = tree_set_content(t, file, &c);
		if (r == 0)
			r = tree_add(t, dir, name, strlen(name), file, &node);
	}
	assert_int_equal(r, TREE_E_BYTES);
	assert_true(i > 600000);
	assert_int_equal(tree_explain(r, &e), -E2BIG);
	assert_non_null(strstr(e.text, "need more than 47 MiB of memory (make it of fewer files"));
}

static int use_tree(void *ctx)
{
	(void)ctx;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	struct tree_inode *inode;
	struct tree_node *node;
	int r = tree_new(&t);
	if (r < 0)
		return r;
	if (tree_inode_new(t, &inode) != 0 || tree_add(t, tree_root(t), "x", 1, inode, &node) != 0)
		return -ENOMEM;
	return 0;
}

static void test_allocation_failures(void **state)
{
	(void)state;
	for_each_failing_alloc(use_tree, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_add_find_remove), fixture_test(test_many_children),
		fixture_test(test_order),           fixture_test(test_depth_limit),
		fixture_test(test_node_limit),      fixture_test(test_memory_is_used_again),
		fixture_test(test_gone_and_back),   fixture_test(test_parts),
		fixture_test(test_xattrs),          fixture_test(test_owner_limit),
		fixture_test(test_memory_limit),    fixture_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
