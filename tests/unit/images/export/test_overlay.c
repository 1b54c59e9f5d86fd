/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/overlay.h"

#include <string.h>

#include "lib/base/str.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/export/support.h"

struct pair {
	struct tree *lower, *upper;
	enum overlay_marks marks;
	struct err e;
};

static void pair_init(struct pair *p)
{
	*p = (struct pair){ 0 };
	assert_int_equal(tree_new(&p->lower), 0);
	assert_int_equal(tree_new(&p->upper), 0);
}

static void pair_deinit(struct pair *p)
{
	tree_free(p->lower);
	tree_free(p->upper);
}

static void merge(struct pair *p, const char *want)
{
	if (overlay_merge(p->lower, p->upper, p->marks, &p->e) < 0)
		fail_msg("%s", p->e.text);
	cleanup_free char *text = tree_text(p->lower);
	assert_string_equal(text, want);
	assert_int_equal(tree_count(p->upper), 1);
}

static void opaque(struct tree *t, struct tree_inode *inode, const char *value)
{
	tree_put_xattr(t, inode, "trusted.overlay.opaque", value);
}

#define DIR(mode)  (S_IFDIR | (mode))
#define FILE(mode) (S_IFREG | (mode))

static void test_rules(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	tree_put(p.lower, "merged", DIR(0700));
	tree_put(p.lower, "merged/kept", FILE(1));
	tree_put(p.lower, "merged/gone", FILE(2));
	tree_put(p.lower, "merged/replaced", FILE(3));
	tree_put(p.lower, "opaque", DIR(0700));
	tree_put(p.lower, "opaque/hidden", DIR(0700));
	tree_put(p.lower, "opaque/hidden/deep", FILE(0));
	tree_put(p.lower, "dir-to-file", DIR(0));
	tree_put(p.lower, "dir-to-file/x", FILE(0));
	tree_put(p.lower, "file-to-dir", FILE(0));
	tree_put(p.lower, "removed", DIR(0));
	tree_put(p.lower, "removed/x", FILE(0));
	tree_put(p.lower, "untouched", FILE(0644));

	tree_inode_of(tree_root(p.upper))->mode = DIR(0711);
	tree_put(p.upper, "merged", DIR(0755))->mtime = 7;
	tree_put(p.upper, "merged/gone", S_IFCHR);
	tree_put(p.upper, "merged/nothing-to-hide", S_IFCHR);
	tree_put(p.upper, "merged/replaced", FILE(4));
	tree_put(p.upper, "merged/new", DIR(5));
	tree_put(p.upper, "merged/new/whiteout", S_IFCHR);
	tree_set_device(tree_put(p.upper, "merged/new/device", S_IFCHR), 0, 1);
	struct tree_inode *dir = tree_put(p.upper, "opaque", DIR(0750));
	opaque(p.upper, dir, "y");
	tree_put_xattr(p.upper, dir, "trusted.overlay.origin", "o");
	tree_put_xattr(p.upper, dir, "user.a", "1");
	tree_put_xattr(p.upper, dir, "security.selinux", "s");
	tree_put_xattr(p.upper, dir, "system.other", "s");
	tree_put_xattr(p.upper, dir, "system.posix_acl_default", "d");
	tree_put(p.upper, "opaque/only", FILE(6));
	tree_put(p.upper, "dir-to-file", FILE(7));
	tree_put(p.upper, "file-to-dir", DIR(010));
	tree_put(p.upper, "file-to-dir/x", FILE(011));
	tree_put(p.upper, "removed", S_IFCHR);
	merge(&p, "d 0711 0:0 0 .\n"
		  "f 0007 0:0 0 dir-to-file 0\n"
		  "d 0010 0:0 0 file-to-dir\n"
		  "f 0011 0:0 0 file-to-dir/x 0\n"
		  "d 0755 0:0 7 merged\n"
		  "f 0001 0:0 0 merged/kept 0\n"
		  "d 0005 0:0 0 merged/new\n"
		  "c 0000 0:0 0 merged/new/device 0,1\n"
		  "f 0004 0:0 0 merged/replaced 0\n"
		  "d 0750 0:0 0 opaque system.posix_acl_default=d user.a=1\n"
		  "f 0006 0:0 0 opaque/only 0\n"
		  "f 0644 0:0 0 untouched 0\n");
}

/* Each kind of mark means nothing to the other one, and is kept there if an app may have it. */
static void test_user_marks(void **state)
{
	static const char *const wanted[] = {
		[OVERLAY_TRUSTED] = "d 0755 0:0 0 .\n"
				    "d 0700 0:0 0 dir user.a=1 user.overlay.opaque=y\n"
				    "f 0001 0:0 0 dir/x 0\n",
		[OVERLAY_USER] = "d 0755 0:0 0 .\nd 0700 0:0 0 dir user.a=1\n",
	};
	(void)state;
	for (enum overlay_marks marks = OVERLAY_TRUSTED; marks <= OVERLAY_USER; marks++) {
		CLEANUP(pair_deinit) struct pair p;
		pair_init(&p);
		p.marks = marks;
		tree_put(p.lower, "dir", DIR(0755));
		tree_put(p.lower, "dir/x", FILE(1));
		struct tree_inode *dir = tree_put(p.upper, "dir", DIR(0700));
		tree_put_xattr(p.upper, dir, "user.overlay.opaque", "y");
		tree_put_xattr(p.upper, dir, "user.a", "1");
		merge(&p, wanted[marks]);
	}
}

/* An inode keeps its count of names, in both layers. */
static void test_hard_links(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	struct tree_node *node;
	(void)state;
	pair_init(&p);
	struct tree_inode *low = tree_put(p.lower, "a", FILE(1));
	assert_int_equal(tree_add(p.lower, tree_root(p.lower), "b", 1, low, &node), 0);
	tree_put(p.upper, "d", DIR(0));
	struct tree_inode *up = tree_put(p.upper, "b", FILE(2));
	node = tree_find(p.upper, tree_root(p.upper), "d", 1);
	assert_int_equal(tree_add(p.upper, node, "c", 1, up, &node), 0);
	merge(&p, "d 0755 0:0 0 .\nf 0001 0:0 0 a 0\nf 0002 0:0 0 b 0\nd 0000 0:0 0 d\n"
		  "f 0002 0:0 0 d/c 0\n");
	assert_int_equal(low->nlink, 1);
	up = tree_inode_of(tree_find(p.lower, tree_root(p.lower), "b", 1));
	assert_int_equal(up->nlink, 2);
}

static void check_refused(const char *where, const char *name, const char *value)
{
	CLEANUP(pair_deinit) struct pair p;
	pair_init(&p);
	p.marks = str_starts(name, "user.") ? OVERLAY_USER : OVERLAY_TRUSTED;
	tree_put(p.upper, "d", DIR(0));
	struct tree_inode *inode =
		where ? tree_put(p.upper, where, FILE(0)) : tree_inode_of(tree_root(p.upper));
	tree_put_xattr(p.upper, inode, name, value);
	assert_int_equal(overlay_merge(p.lower, p.upper, p.marks, &p.e), -EOPNOTSUPP);
	if (!strstr(p.e.text, name))
		fail_msg("\"%s\" is not in \"%s\"", name, p.e.text);
}

static void test_refused(void **state)
{
	(void)state;
	check_refused("d/x", "trusted.overlay.redirect", "/y");
	check_refused("d/x", "trusted.overlay.metacopy", "");
	check_refused("x", "trusted.overlay.whiteout", "y");
	check_refused("x", "trusted.overlay.opaque", "x");
	check_refused(NULL, "trusted.overlay.redirect", "/y");
	check_refused("x", "user.overlay.redirect", "/y");
}

/* To the kernel, only "y" is. */
static void test_not_opaque(void **state)
{
	CLEANUP(pair_deinit) struct pair p;
	(void)state;
	pair_init(&p);
	tree_put(p.lower, "d", DIR(0));
	tree_put(p.lower, "d/x", FILE(0));
	opaque(p.upper, tree_put(p.upper, "d", DIR(1)), "yy");
	merge(&p, "d 0755 0:0 0 .\nd 0001 0:0 0 d\nf 0000 0:0 0 d/x 0\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_rules),      fixture_test(test_user_marks),
		fixture_test(test_hard_links), fixture_test(test_refused),
		fixture_test(test_not_opaque),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
