#include "host/export/overlay.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

#define OVERLAY_PREFIX "trusted.overlay."

struct merge_ctx {
	struct tree *lower;
	struct tree *upper;
	struct err *e;
};

static bool is_whiteout(const struct tree_inode *inode)
{
	return S_ISCHR(inode->mode) && inode->u.device.major == 0 && inode->u.device.minor == 0;
}

static bool value_is(const struct tree_xattr *x, char c)
{
	return x->size == 1 && *(const char *)x->value == c;
}

static bool is_opaque(const struct tree_inode *inode)
{
	for (const struct tree_xattr *x = inode->xattrs; x; x = x->next)
		if (strcmp(x->name, OVERLAY_PREFIX "opaque") == 0)
			return value_is(x, 'y');
	return false;
}

/* The attribute that makes the kernel see something else here, or NULL. */
static const char *find_refused(const struct tree_inode *inode)
{
	for (const struct tree_xattr *x = inode->xattrs; x; x = x->next) {
		if (!str_starts(x->name, OVERLAY_PREFIX))
			continue;
		const char *what = x->name + strlen(OVERLAY_PREFIX);
		if (strcmp(what, "redirect") == 0 || strcmp(what, "metacopy") == 0 ||
		    strcmp(what, "whiteout") == 0 ||
		    (strcmp(what, "opaque") == 0 && value_is(x, 'x')))
			return x->name;
	}
	return NULL;
}

static bool keep_xattr(const char *name)
{
	if (str_starts(name, OVERLAY_PREFIX) || strcmp(name, "security.selinux") == 0)
		return false;
	const char *dot = strchr(name, '.');
	return dot && dot[1] &&
	       (str_starts(name, "user.") || str_starts(name, "trusted.") ||
		str_starts(name, "security.") || strcmp(name, "system.posix_acl_access") == 0 ||
		strcmp(name, "system.posix_acl_default") == 0);
}

/* Leaves only attributes that belong to the file. */
static void clean_xattrs(struct tree_inode *inode)
{
	struct tree_xattr **at = &inode->xattrs;
	while (*at) {
		if (keep_xattr((*at)->name))
			at = &(*at)->next;
		else
			*at = (*at)->next;
	}
}

static void remove_children(struct tree *t, struct tree_node *dir)
{
	while (dir->children)
		tree_remove(t, dir->children);
}

static int move_children(struct merge_ctx *m, struct tree_node *lower, struct tree_node *upper);

/* Puts @upper into the lower directory @dir, where nothing has its name. */
static int move_node(struct merge_ctx *m, struct tree_node *dir, struct tree_node *upper)
{
	struct tree_node *fresh;
	int r = tree_add(m->lower, dir, upper->name, strlen(upper->name), upper->inode, &fresh);
	if (r != 0)
		return err_set(m->e, -E2BIG, "image and changes together have too many files");
	if (S_ISDIR(upper->inode->mode)) {
		r = move_children(m, fresh, upper);
		if (r < 0)
			return r;
	}
	clean_xattrs(upper->inode);
	return 0;
}

/* Both are directories. */
static int merge_dir(struct merge_ctx *m, struct tree_node *lower, struct tree_node *upper)
{
	if (is_opaque(upper->inode))
		remove_children(m->lower, lower);
	upper->inode->nlink++;
	lower->inode->nlink--;
	lower->inode = upper->inode;
	int r = move_children(m, lower, upper);
	clean_xattrs(upper->inode);
	return r;
}

static int merge_node(struct merge_ctx *m, struct tree_node *dir, struct tree_node *upper)
{
	struct tree_node *old = tree_find(m->lower, dir, upper->name, strlen(upper->name));
	const char *refused = find_refused(upper->inode);
	if (refused)
		return err_set(m->e, -EOPNOTSUPP,
			       "the app's file \"%s\" has the attribute %s, which husk's guests do "
			       "not make and which cannot be exported",
			       upper->name, refused);
	if (old && S_ISDIR(old->inode->mode) && S_ISDIR(upper->inode->mode))
		return merge_dir(m, old, upper);
	if (old)
		tree_remove(m->lower, old);
	return is_whiteout(upper->inode) ? 0 : move_node(m, dir, upper);
}

/* Every child leaves @upper as soon as it is done. */
static int move_children(struct merge_ctx *m, struct tree_node *lower, struct tree_node *upper)
{
	while (upper->children) {
		struct tree_node *child = upper->children;
		int r = merge_node(m, lower, child);
		if (r < 0)
			return r;
		tree_remove(m->upper, child);
	}
	return 0;
}

int overlay_merge(struct tree *lower, struct tree *upper, struct err *e)
{
	struct merge_ctx m = { .lower = lower, .upper = upper, .e = e };
	struct tree_node *root = tree_root(upper);
	const char *refused = find_refused(root->inode);
	if (refused)
		return err_set(
			e, -EOPNOTSUPP,
			"the app's root directory has the attribute %s, which husk's guests do "
			"not make and which cannot be exported",
			refused);
	return merge_dir(&m, tree_root(lower), root);
}
