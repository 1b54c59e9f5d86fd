/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a path is cleaned, then walked from the root, component by component. A
 * symbolic link among the parents is replaced by its target in the text that is still to be walked,
 * so one loop does all; the number of links bounds it. Every node that an entry creates or passes
 * on its way down is stamped with the current layer: that is what tells a whiteout what belongs to
 * lower layers.
 */
#include "images/render/merge.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

#define WHITEOUT      ".wh."
#define WHITEOUT_META ".wh..wh."
#define OPAQUE        ".wh..wh..opq"
#define WHITEOUT_LEN  (sizeof(WHITEOUT) - 1)

/* What is still to be walked: the rest of a path behind the target of a link. */
#define WALK_MAX (LAYER_PATH_MAX + LAYER_TARGET_MAX + 2)

struct merge {
	struct tree *tree;
	uint8_t layer;                   /* the current one, from 1 */
	bool whiteouts;                  /* names with ".wh." mean something in it */
	char clean[LAYER_PATH_MAX];      /* the current entry's path */
	char clean_link[LAYER_PATH_MAX]; /* the path that a hard link leads to */
	char walk[WALK_MAX];
	char next[WALK_MAX];
};

/* A cleaned path: its directory part (may be "") and its last component ("" for the root). */
struct place {
	const char *dir;
	const char *name;
};

int merge_new(struct tree *t, struct merge **ret)
{
	struct merge *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->tree = t;
	*ret = m;
	return 0;
}

void merge_free(struct merge *m)
{
	free(m);
}

void merge_begin_layer(struct merge *m, bool whiteouts)
{
	m->layer++;
	m->whiteouts = whiteouts;
}

/* Splits a cleaned path in place. */
static struct place split_path(char *clean)
{
	char *slash = strrchr(clean, '/');
	if (!slash)
		return (struct place){ "", clean };
	*slash = '\0';
	return (struct place){ clean, slash + 1 };
}

/* Creates the missing directory @name of a parent path. */
static int make_parent(struct merge *m, struct tree_node *dir, const char *name, size_t len,
		       struct tree_node **ret, struct err *e)
{
	struct tree_inode *inode = NULL;
	int r = tree_inode_new(m->tree, &inode);
	if (r == 0) {
		inode->mode = S_IFDIR | 0755;
		r = tree_add(m->tree, dir, name, len, inode, ret);
	}
	return r == 0 ? 0 : tree_explain(r, e);
}

/* Puts the target of @link in front of @rest, as the text to walk on with. */
static int enter_link(struct merge *m, const struct tree_node *link, const char *rest,
		      struct err *e)
{
	const char *text = tree_target(tree_inode_of(link));
	size_t target = strlen(text), len = strlen(rest);
	if (target + len + 2 > sizeof(m->next))
		return err_set(e, -ENAMETOOLONG,
			       "a path becomes longer than %zu bytes through "
			       "symbolic links",
			       WALK_MAX - 2);
	memcpy(m->next, text, target);
	m->next[target] = '/';
	memcpy(m->next + target + 1, rest, len + 1);
	memcpy(m->walk, m->next, target + len + 2);
	return 0;
}

/*
 * Takes one component below *dir. *ret_rest is the text to go on with. A missing directory is
 * created or, without @create, leaves *dir NULL.
 */
static int step(struct merge *m, struct tree_node **dir, const char *name, size_t len, bool create,
		const char **rest, struct err *e)
{
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		struct tree_node *parent = tree_parent(*dir);
		*dir = parent ? parent : *dir;
		return 0;
	}
	if (len > TREE_NAME_MAX)
		return err_set(e, -ENAMETOOLONG, "a file name is longer than %zu bytes",
			       TREE_NAME_MAX);
	struct tree_node *child = tree_find(m->tree, *dir, name, len);
	if (!child) {
		if (create)
			return make_parent(m, *dir, name, len, dir, e);
		*dir = NULL;
		return 0;
	}
	uint16_t mode = tree_inode_of(child)->mode;
	if (S_ISLNK(mode)) {
		int r = enter_link(m, child, *rest, e);
		if (r < 0)
			return r;
		*rest = m->walk;
		if (m->walk[0] == '/')
			*dir = tree_root(m->tree);
		return 0;
	}
	if (!S_ISDIR(mode)) {
		if (create)
			return err_set(e, -ENOTDIR, "\"%s\" is not a directory", child->name);
		*dir = NULL;
		return 0;
	}
	*dir = child;
	return 0;
}

/*
 * Finds the directory with the cleaned path @path, through symbolic links. *ret is NULL if it is
 * missing and @create is false.
 */
static int merge_walk(struct merge *m, const char *path, bool create, struct tree_node **ret,
		      struct err *e)
{
	struct tree_node *dir = tree_root(m->tree);
	str_copy(m->walk, sizeof(m->walk), path);
	const char *rest = m->walk;
	int links = 0;
	while (dir && *rest) {
		size_t len = strcspn(rest, "/");
		const char *name = rest, *before;
		rest += len + (rest[len] == '/');
		if (len == 0 || (len == 1 && name[0] == '.'))
			continue;
		before = rest;
		int r = step(m, &dir, name, len, create, &rest, e);
		if (r < 0)
			return r;
		if (rest != before && ++links > MERGE_SYMLINKS_MAX)
			return err_set(e, -ELOOP, "more than %d symbolic links in a path",
				       MERGE_SYMLINKS_MAX);
	}
	*ret = dir;
	return 0;
}

/* Stamps @node and everything above it with the current layer. */
static void merge_touch(const struct merge *m, struct tree_node *node)
{
	for (; node && node->layer != m->layer; node = tree_parent(node))
		node->layer = m->layer;
}

/* Removes what lower layers put into @dir. */
static void prune_children(struct merge *m, struct tree_node *dir)
{
	for (struct tree_node *c = tree_children(dir), *next; c; c = next) {
		next = tree_next(c);
		if (c->layer != m->layer)
			tree_remove(m->tree, c);
		else
			prune_children(m, c);
	}
}

static int whiteout(struct merge *m, const struct place *place, struct err *e)
{
	const char *name = place->name + WHITEOUT_LEN;
	bool opaque = strcmp(place->name, OPAQUE) == 0;
	if (!opaque && (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
		return err_set(e, -EBADMSG, "a whiteout that names nothing");
	struct tree_node *dir;
	int r = merge_walk(m, place->dir, false, &dir, e);
	if (r < 0 || !dir)
		return r;
	if (opaque) {
		prune_children(m, dir);
		return 0;
	}
	struct tree_node *node = tree_find(m->tree, dir, name, strlen(name));
	if (node && node->layer != m->layer)
		tree_remove(m->tree, node);
	else if (node)
		prune_children(m, node);
	return 0;
}

/* Attributes that every type has. Of extended ones with the same name the last counts. */
static int set_attributes(struct merge *m, const struct layer_entry *entry,
			  struct tree_inode *inode, struct err *e)
{
	inode->mode = (uint16_t)entry->mode;
	inode->mtime = entry->mtime;
	inode->layer = m->layer;
	inode->entry = entry->number;
	tree_filter_xattrs(m->tree, inode, NULL);
	int r = tree_set_owner(m->tree, inode, entry->uid, entry->gid);
	for (size_t i = 0; i < entry->n_xattrs && r == 0; i++)
		r = tree_add_xattr(m->tree, inode, entry->xattrs[i].name, entry->xattrs[i].value,
				   entry->xattrs[i].size);
	return r == 0 ? 0 : tree_explain(r, e);
}

/* A new inode for an entry that is not a hard link. */
static int make_inode(struct merge *m, const struct layer_entry *entry, struct tree_inode **ret,
		      struct err *e)
{
	struct tree_inode *inode = NULL;
	int r = tree_inode_new(m->tree, &inode);
	if (r != 0)
		return tree_explain(r, e);
	r = set_attributes(m, entry, inode, e);
	if (r < 0)
		return r;
	if (S_ISLNK(entry->mode))
		r = tree_set_target(m->tree, inode, entry->target, strlen(entry->target));
	else if (S_ISCHR(entry->mode) || S_ISBLK(entry->mode))
		tree_set_device(inode, entry->major, entry->minor);
	if (r != 0)
		return tree_explain(r, e);
	*ret = inode;
	return 0;
}

/* The inode that a hard link names. */
static int find_linked(struct merge *m, const struct layer_entry *entry, struct tree_inode **ret,
		       struct err *e)
{
	layer_clean_path(entry->hardlink, m->clean_link);
	struct place place = split_path(m->clean_link);
	struct tree_node *dir, *node = NULL;
	int r = merge_walk(m, place.dir, false, &dir, e);
	if (r < 0)
		return r;
	if (dir && *place.name)
		node = tree_find(m->tree, dir, place.name, strlen(place.name));
	if (!node)
		return err_set(e, -ENOENT, "hard link to \"%.200s\", which does not exist",
			       entry->hardlink);
	if (S_ISDIR(tree_inode_of(node)->mode))
		return err_set(e, -EBADMSG, "hard link to the directory \"%.200s\"",
			       entry->hardlink);
	*ret = tree_inode_of(node);
	return 0;
}

/* Puts @inode at @name in @dir in place of whatever is there. */
static int merge_replace(struct merge *m, struct tree_node *dir, const char *name,
			 struct tree_inode *inode, struct err *e)
{
	struct tree_node *node = tree_find(m->tree, dir, name, strlen(name));
	if (node && tree_inode_of(node) == inode) {
		merge_touch(m, node); /* a link to itself */
		return 0;
	}
	if (node)
		tree_remove(m->tree, node);
	int r = tree_add(m->tree, dir, name, strlen(name), inode, &node);
	if (r != 0)
		return tree_explain(r, e);
	merge_touch(m, node);
	return 0;
}

/* An entry for a name that is not the root's. */
static int apply_named(struct merge *m, const struct layer_entry *entry, const struct place *place,
		       struct tree_inode **ret, struct err *e)
{
	struct tree_node *dir;
	int r = merge_walk(m, place->dir, true, &dir, e);
	if (r < 0)
		return r;
	struct tree_node *node = tree_find(m->tree, dir, place->name, strlen(place->name));
	if (!entry->hardlink && S_ISDIR(entry->mode) && node &&
	    S_ISDIR(tree_inode_of(node)->mode)) {
		merge_touch(m, node);
		return set_attributes(m, entry, tree_inode_of(node), e);
	}
	struct tree_inode *inode = NULL;
	r = entry->hardlink ? find_linked(m, entry, &inode, e) : make_inode(m, entry, &inode, e);
	if (r == 0)
		r = merge_replace(m, dir, place->name, inode, e);
	if (r == 0 && !entry->hardlink && S_ISREG(entry->mode))
		*ret = inode;
	return r;
}

/* The entry "./". */
static int apply_root(struct merge *m, const struct layer_entry *entry, struct err *e)
{
	if (entry->hardlink || !S_ISDIR(entry->mode))
		return err_set(e, -EBADMSG, "the top of the tree is not a directory");
	merge_touch(m, tree_root(m->tree));
	return set_attributes(m, entry, tree_inode_of(tree_root(m->tree)), e);
}

/* True for aufs' bookkeeping: a component ".wh..wh.*" that is not the opaque marker at the end. */
static bool is_bookkeeping(const char *clean)
{
	for (const char *p = clean; *p;) {
		size_t n = strcspn(p, "/");
		bool opaque = n == sizeof(OPAQUE) - 1 && strncmp(p, OPAQUE, n) == 0 && !p[n];
		if (str_starts(p, WHITEOUT_META) && !opaque)
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

int merge_apply(struct merge *m, const struct layer_entry *entry, struct tree_inode **ret,
		struct err *e)
{
	*ret = NULL;
	layer_clean_path(entry->path, m->clean);
	if (m->whiteouts && is_bookkeeping(m->clean))
		return 0;
	struct place place = split_path(m->clean);
	int r;
	if (!*place.name)
		r = apply_root(m, entry, e);
	else if (strlen(place.name) > TREE_NAME_MAX)
		r = err_set(e, -ENAMETOOLONG, "a file name is longer than %zu bytes",
			    TREE_NAME_MAX);
	else if (m->whiteouts && str_starts(place.name, WHITEOUT))
		r = whiteout(m, &place, e);
	else
		r = apply_named(m, entry, &place, ret, e);
	return r < 0 ? (err_context(e, "entry \"%.200s\"", entry->path), r) : 0;
}

/* The node with the cleaned path @path, without following links, or NULL. */
static struct tree_node *find_path(const struct merge *m, const char *path)
{
	struct tree_node *node = tree_root(m->tree);
	while (node && *path) {
		size_t len = strcspn(path, "/");
		node = tree_find(m->tree, node, path, len);
		path += len + (path[len] == '/');
	}
	return node;
}

int merge_keep_only(struct merge *m, const char *const *paths, size_t n, struct err *e)
{
	if (n > MERGE_PATHS_MAX)
		return err_set(e, -E2BIG, "the whitelist has more than %zu paths", MERGE_PATHS_MAX);
	merge_begin_layer(m, false);
	merge_touch(m, tree_root(m->tree));
	for (size_t i = 0; i < n; i++) {
		if (paths[i][0] != '/' || strlen(paths[i]) >= LAYER_PATH_MAX)
			return err_set(
				e, -EBADMSG,
				"\"%.200s\" in the whitelist is not an absolute path of less "
				"than %zu bytes",
				paths[i], LAYER_PATH_MAX);
		layer_clean_path(paths[i], m->clean);
		struct tree_node *node = find_path(m, m->clean);
		if (node)
			merge_touch(m, node);
	}
	prune_children(m, tree_root(m->tree));
	return 0;
}
