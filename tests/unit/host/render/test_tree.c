#include "host/render/tree.h"

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
	inode->mode = mode;
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
	assert_int_equal(tree_add(t, root, "y", 1, x->inode, &y), 0);
	assert_int_equal(x->inode->nlink, 2);
	assert_int_equal(tree_count(t), 5);
	assert_ptr_equal(tree_find(t, b, "xyz", 1), x);
	assert_null(tree_find(t, a, "x", 1));
	assert_null(tree_find(t, b, "xx", 2));
	assert_null(tree_find(t, b, "", 0));
	tree_remove(t, a);
	assert_int_equal(tree_count(t), 2);
	assert_int_equal(x->inode->nlink, 1);
	assert_int_equal(a->inode->nlink, 0);
	assert_null(tree_find(t, root, "a", 1));
	assert_null(tree_find(t, b, "x", 1));
	tree_remove(t, y);
	assert_null(root->children);
	tree_free(NULL);
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
	cleanup_free struct tree_node **list = NULL;
	assert_int_equal(tree_sorted_children(tree_root(t), &list), 0);
	assert_int_equal(tree_root(t)->n_children, n / 2);
	for (int i = 1; i < n / 2; i++)
		assert_true(strcmp(list[i - 1]->name, list[i]->name) < 0);
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
	cleanup_free struct tree_node **list = NULL;
	assert_int_equal(tree_sorted_children(tree_root(t), &list), 0);
	assert_string_equal(list[0]->name, "a");
	assert_string_equal(list[1]->name, "a!");
	assert_string_equal(list[3]->name, "\xff");
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
	assert_int_equal(tree_add(t, dir, "d", 1, dir->inode, &node), TREE_E_FULL);
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

static int use_tree(void *ctx)
{
	(void)ctx;
	CLEANUP(cleanup_tree) struct tree *t = NULL;
	struct tree_inode *inode;
	struct tree_node *node;
	cleanup_free struct tree_node **list = NULL;
	int r = tree_new(&t);
	if (r < 0)
		return r;
	if (tree_inode_new(t, &inode) != 0 || tree_add(t, tree_root(t), "x", 1, inode, &node) != 0)
		return -ENOMEM;
	return tree_sorted_children(tree_root(t), &list);
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
		fixture_test(test_node_limit),      fixture_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
