/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/overlay.h"

#include <stdio.h>
#include <string.h>

#include "images/render/layer.h"
#include "lib/base/macros.h"
#include "lib/base/str.h"

static const char *const prefixes[] = {
	[OVERLAY_TRUSTED] = "trusted.overlay.", [OVERLAY_USER] = "user.overlay."
};

struct merge_ctx {
	struct tree *lower;
	struct tree *upper;
	enum overlay_marks marks;
	struct err *e;
};

static bool value_is(const struct tree_xattr *x, char c)
{
	return x->size == 1 && *(const char *)tree_xattr_value(x) == c;
}

/* What the overlay calls the attribute @name, or NULL if it is not its own. */
static const char *mark_of(const struct merge_ctx *m, const char *name)
{
	const char *prefix = prefixes[m->marks];
	return str_starts(name, prefix) ? name + strlen(prefix) : NULL;
}

static bool is_opaque(const struct merge_ctx *m, const struct tree_inode *inode)
{
	for (const struct tree_xattr *x = tree_xattrs(inode); x; x = tree_next_xattr(x)) {
		const char *mark = mark_of(m, x->name);
		if (mark && strcmp(mark, "opaque") == 0)
			return value_is(x, 'y');
	}
	return false;
}

/* The attribute that makes the kernel see something else here, or NULL. */
static const char *find_refused(const struct merge_ctx *m, const struct tree_inode *inode)
{
	for (const struct tree_xattr *x = tree_xattrs(inode); x; x = tree_next_xattr(x)) {
		const char *what = mark_of(m, x->name);
		if (!what)
			continue;
		if (strcmp(what, "redirect") == 0 || strcmp(what, "metacopy") == 0 ||
		    strcmp(what, "whiteout") == 0 ||
		    (strcmp(what, "opaque") == 0 && value_is(x, 'x')))
			return x->name;
	}
	return NULL;
}

static bool keep_xattr(const char *name)
{
	return layer_keeps_xattr(name) || strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0;
}

static bool keep_xattr_beside_marks(const char *name)
{
	return keep_xattr(name) && !str_starts(name, prefixes[OVERLAY_USER]);
}

static void remove_children(struct tree *t, struct tree_node *dir)
{
	for (struct tree_node *c; (c = tree_children(dir));)
		tree_remove(t, c);
}

/*
 * The copy of an upper inode in the lower tree, with only those attributes that belong to the file.
 * It is made once; the upper inode's number remembers it.
 */
static int find_copy(struct merge_ctx *m, struct tree_inode *upper, struct tree_inode **ret)
{
	if (upper->flags & TREE_INODE_NUMBERED) {
		*ret = arena_at(tree_root(m->lower), upper->number);
		return 0;
	}
	int r = tree_copy_inode(m->lower, upper, ret);
	if (r != 0)
		return tree_explain(r, m->e);
	tree_filter_xattrs(m->lower, *ret,
			   m->marks == OVERLAY_USER ? keep_xattr_beside_marks : keep_xattr);
	upper->flags |= TREE_INODE_NUMBERED;
	upper->number = arena_ref(*ret);
	return 0;
}

static int move_children(struct merge_ctx *m, struct tree_node *lower, struct tree_node *upper);

/* Puts @upper into the lower directory @dir, where nothing has its name. */
static int move_node(struct merge_ctx *m, struct tree_node *dir, struct tree_node *upper)
{
	struct tree_node *fresh;
	struct tree_inode *inode;
	int r = find_copy(m, tree_inode_of(upper), &inode);
	if (r < 0)
		return r;
	r = tree_add(m->lower, dir, upper->name, strlen(upper->name), inode, &fresh);
	if (r != 0)
		return err_set(m->e, -E2BIG, "image and changes together have too many files");
	return S_ISDIR(inode->mode) ? move_children(m, fresh, upper) : 0;
}

/* Both are directories. */
static int merge_dir(struct merge_ctx *m, struct tree_node *lower, struct tree_node *upper)
{
	struct tree_inode *inode;
	int r = find_copy(m, tree_inode_of(upper), &inode);
	if (r < 0)
		return r;
	if (is_opaque(m, tree_inode_of(upper)))
		remove_children(m->lower, lower);
	tree_set_dir_inode(m->lower, lower, inode);
	return move_children(m, lower, upper);
}

static int merge_node(struct merge_ctx *m, struct tree_node *dir, struct tree_node *upper)
{
	struct tree_node *old = tree_find(m->lower, dir, upper->name, strlen(upper->name));
	const struct tree_inode *inode = tree_inode_of(upper);
	const char *refused = find_refused(m, inode);
	if (refused)
		return err_set(m->e, -EOPNOTSUPP,
			       "the app's file \"%s\" has the attribute %s, which husk's guests do "
			       "not make and which cannot be exported",
			       upper->name, refused);
	if (old && S_ISDIR(tree_inode_of(old)->mode) && S_ISDIR(inode->mode))
		return merge_dir(m, old, upper);
	if (old)
		tree_remove(m->lower, old);
	return tree_is_whiteout(inode) ? 0 : move_node(m, dir, upper);
}

/* Every child leaves @upper as soon as it is done. */
static int move_children(struct merge_ctx *m, struct tree_node *lower, struct tree_node *upper)
{
	for (struct tree_node *child; (child = tree_children(upper));) {
		int r = merge_node(m, lower, child);
		if (r < 0)
			return r;
		tree_remove(m->upper, child);
	}
	return 0;
}

int overlay_merge(struct tree *lower, struct tree *upper, enum overlay_marks marks, struct err *e)
{
	struct merge_ctx m = { .lower = lower, .upper = upper, .marks = marks, .e = e };
	struct tree_node *root = tree_root(upper);
	const char *refused = find_refused(&m, tree_inode_of(root));
	if (refused)
		return err_set(
			e, -EOPNOTSUPP,
			"the app's root directory has the attribute %s, which husk's guests do "
			"not make and which cannot be exported",
			refused);
	return merge_dir(&m, tree_root(lower), root);
}
