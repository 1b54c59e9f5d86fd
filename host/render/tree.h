/*
 * A file tree in memory: names, inodes, attributes; no contents.
 *
 * Directories hold nodes (a name and the inode it stands for); several nodes may share an inode
 * (hard links). Memory is one arena with a maximum; removed nodes give theirs back only at the end.
 * The structures are open to the merge, which changes the tree, and to the squashfs writer, which
 * walks it.
 */
#ifndef HOST_RENDER_TREE_H
#define HOST_RENDER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "host/render/arena.h"

#define TREE_NAME_MAX  ((size_t)255)               /* NAME_MAX of Linux; squashfs allows 256 */
#define TREE_NODES_MAX ((size_t)1 << 20)           /* ten times the largest common images */
#define TREE_BYTES_MAX ((size_t)512 * 1024 * 1024) /* arena; about 500 bytes for every node */
#define TREE_DEPTH_MAX 1024 /* levels; bounds recursion. PATH_MAX allows 2048 one-letter names */

/* TREE_E_FULL: one of the maxima is reached. */
enum {
	TREE_E_FULL = 1,
};

/* Members of a list sorted by name. */
struct tree_xattr {
	struct tree_xattr *next;
	const char *name;
	const void *value;
	size_t size;
};

/* Where a file's content is in the image that is being written. */
struct tree_content {
	uint64_t size;
	uint64_t start;   /* offset of the first block */
	uint64_t sparse;  /* bytes of holes */
	uint32_t *blocks; /* squashfs block sizes, as on disk */
	uint32_t n_blocks;
	uint32_t fragment; /* index, or TREE_NO_FRAGMENT */
	uint32_t fragment_offset;
};

#define TREE_NO_FRAGMENT UINT32_MAX

struct tree_inode {
	uint32_t mode; /* type and permissions, as in st_mode */
	uint32_t uid;
	uint32_t gid;
	uint32_t mtime;  /* seconds since the epoch, clamped to what squashfs holds */
	uint32_t nlink;  /* names; 0: the inode is gone */
	uint32_t number; /* given by the writer; 0 before */
	uint64_t ref;    /* place in the inode table, given by the writer */
	uint16_t layer;  /* where the inode comes from: */
	uint32_t entry;  /* the entry of that layer, counted from 0 */
	struct tree_xattr *xattrs;
	union {
		struct tree_content content; /* regular files */
		const char *target;          /* symbolic links */
		struct {
			uint32_t major, minor;
		} device;
	} u;
};

struct tree_node {
	struct tree_node *parent; /* NULL for the root and for removed nodes */
	struct tree_node *next;   /* siblings, no order */
	struct tree_node *prev;
	struct tree_node *children;
	struct tree_node *hash_next;
	struct tree_inode *inode;
	uint32_t n_children;
	uint16_t depth;
	uint16_t layer; /* last layer that had an entry here or below */
	char name[];
};

struct tree;

/* An empty tree: a root directory, mode 0755, owner 0:0, mtime 0. 0 or -errno. */
int tree_new(struct tree **ret);

/* Accepts NULL. */
void tree_free(struct tree *t);

/* The root directory; it is never removed. */
struct tree_node *tree_root(const struct tree *t);

/* How many nodes there are, the root included. */
size_t tree_count(const struct tree *t);

/* The arena, for what belongs to inodes. */
struct arena *tree_arena(struct tree *t);

/* A zeroed inode without names. 0, TREE_E_FULL. */
int tree_inode_new(struct tree *t, struct tree_inode **ret);

/* The child of the directory @dir with this name, or NULL. */
struct tree_node *tree_find(const struct tree *t, const struct tree_node *dir, const char *name,
			    size_t len);

/*
 * Adds a name for @inode to the directory @dir, which has no such child. 0, TREE_E_FULL, or -EINVAL
 * if @len is not 1 to TREE_NAME_MAX or @dir no directory.
 */
int tree_add(struct tree *t, struct tree_node *dir, const char *name, size_t len,
	     struct tree_inode *inode, struct tree_node **ret);

/* Removes a node and all below it; does nothing to the root. */
void tree_remove(struct tree *t, struct tree_node *node);

/*
 * The children of @dir in byte order of their names, in an array that the caller frees. 0 or
 * -ENOMEM.
 */
int tree_sorted_children(const struct tree_node *dir, struct tree_node ***ret);

#endif
