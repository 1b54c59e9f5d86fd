/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file tree in memory: names, inodes, attributes; no contents.
 *
 * Directories hold nodes (a name and the inode it stands for); several nodes may share an inode
 * (hard links). Everything is in one arena with a maximum and refers to each other with 32 bits
 * (images/render/arena.h): an ordinary file with a name of 16 bytes takes 80. Fields without a
 * comment that says so may be read and written by everybody; references ("ref") only through the
 * functions here. What is removed is used again.
 */
#ifndef IMAGES_RENDER_TREE_H
#define IMAGES_RENDER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "images/render/arena.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

#define TREE_NAME_MAX   ((size_t)255)     /* NAME_MAX of Linux; squashfs allows 256 */
#define TREE_NODES_MAX  ((size_t)1 << 20) /* ten times the largest common images */
#define TREE_DEPTH_MAX  1024 /* levels; bounds recursion. PATH_MAX allows 2048 one-letter names */
#define TREE_OWNERS_MAX ((size_t)4096) /* different uids and gids; the format could do 65536 */

/*
 * The arena. Rendering must do with 64 MiB whatever the image is (CONFINE_MEMORY_MAX), but for the
 * window of a zstd layer beyond 8 MiB; these are for the program, the table of names, decompression
 * and the squashfs writer less than 17 MiB. It holds 600,000 ordinary files.
 */
#define TREE_BYTES_MAX ((size_t)47 * 1024 * 1024)

/* Which of the maxima is reached. */
enum {
	TREE_E_FULL = 1, /* TREE_NODES_MAX */
	TREE_E_BYTES,    /* TREE_BYTES_MAX, or memory is short */
	TREE_E_DEPTH,    /* TREE_DEPTH_MAX */
	TREE_E_OWNERS,   /* TREE_OWNERS_MAX */
};

/* One extended attribute; its value is behind the name. */
struct tree_xattr {
	uint32_t next; /* ref */
	uint32_t size; /* of the value */
	char name[];
};

/* @count blocks of a file that squashfs describes with the same number. */
struct tree_run {
	uint32_t block; /* as on disk, but in the machine's byte order; 0 is a hole */
	uint32_t count;
};

/* Where a file's content is in the image that is being written. */
struct tree_content {
	uint64_t size;
	uint64_t start;    /* offset of the first block */
	uint64_t sparse;   /* bytes of holes */
	uint32_t fragment; /* index, or TREE_NO_FRAGMENT */
	uint32_t fragment_offset;
	uint32_t n_runs;
	const struct tree_run *runs; /* all blocks, in order */
};

#define TREE_NO_FRAGMENT UINT32_MAX

struct tree_inode {
	uint32_t mtime;  /* seconds since the epoch, clamped to what squashfs holds */
	uint32_t nlink;  /* names; 0: the inode is gone */
	uint32_t xattrs; /* ref */
	uint32_t u;      /* see tree.c: content, target, device or children */
	uint16_t mode;   /* type and permissions, as in st_mode */
	uint16_t owner;  /* see tree_uid() */
	uint16_t group;
	uint8_t layer; /* where the inode comes from: 1 to 128, or an enum content_layer */
	uint8_t flags; /* TREE_INODE_... */
	union {
		uint32_t entry;  /* while layers are merged: the entry of that layer, from 0 */
		uint32_t number; /* afterwards, for whoever writes the tree; 0 before */
	};
	uint32_t place; /* for the tree's writer or reader; 0 before */
};

enum {
	TREE_INODE_LARGE = 1,    /* private to tree.c */
	TREE_INODE_GONE = 2,     /* likewise */
	TREE_INODE_NUMBERED = 4, /* @number is valid */
};

struct tree_node {
	uint32_t parent;    /* ref; 0 for the root */
	uint32_t next;      /* ref: siblings */
	uint32_t hash_next; /* ref */
	uint32_t inode;     /* ref; 0: the name was removed */
	uint16_t depth;
	uint8_t layer; /* last layer that had an entry here or below */
	char name[];
};

struct tree;

/* An empty tree: a root directory, mode 0755, owner 0:0, mtime 0. 0 or -errno. */
int tree_new(struct tree **ret);

/* Accepts NULL. */
void tree_free(struct tree *t);
DEFINE_FREEP(tree);

/* The root directory; it is never removed. */
struct tree_node *tree_root(const struct tree *t);

/* How many nodes there are, the root included. */
size_t tree_count(const struct tree *t);

/* Says in @e which maximum the TREE_E_... code @r stands for. Yields -E2BIG. */
int tree_explain(int r, struct err *e);

/* A zeroed inode without names, owner 0:0. 0, TREE_E_BYTES. */
int tree_inode_new(struct tree *t, struct tree_inode **ret);

/*
 * Inodes that lost their last name and have none now, in any order, each once; NULL when there are
 * no more. They stay valid until tree_inode_free().
 */
struct tree_inode *tree_take_gone(struct tree *t);

/* Frees an inode that tree_take_gone() yielded, with all that belongs to it. */
void tree_inode_free(struct tree *t, struct tree_inode *inode);

/* Owner and group. tree_set_owner(): 0, TREE_E_OWNERS. */
uint32_t tree_uid(const struct tree_inode *inode);
uint32_t tree_gid(const struct tree_inode *inode);
int tree_set_owner(struct tree *t, struct tree_inode *inode, uint32_t uid, uint32_t gid);

/*
 * What inodes of one type have, and all others never; the mode is set before. The setters are
 * called once for an inode (tree_set_device() may be called again). 0, TREE_E_BYTES.
 */
int tree_set_target(struct tree *t, struct tree_inode *link, const char *target, size_t len);
const char *tree_target(const struct tree_inode *link);
void tree_set_device(struct tree_inode *device, uint32_t major, uint32_t minor);
uint32_t tree_major(const struct tree_inode *device); /* 12 bits */
uint32_t tree_minor(const struct tree_inode *device); /* 20 bits */
int tree_set_content(struct tree *t, struct tree_inode *file, const struct tree_content *c);

/* The content of a regular file, or its size only; one without is empty. The runs are borrowed. */
void tree_get_content(const struct tree_inode *file, struct tree_content *ret);
uint64_t tree_size(const struct tree_inode *file);

/*
 * Extended attributes, sorted by name. tree_add_xattr() copies name and value, and replaces an
 * attribute of that name: 0, TREE_E_BYTES.
 */
int tree_add_xattr(struct tree *t, struct tree_inode *inode, const char *name, const void *value,
		   size_t size);
const struct tree_xattr *tree_xattrs(const struct tree_inode *inode);
const struct tree_xattr *tree_next_xattr(const struct tree_xattr *x);
const void *tree_xattr_value(const struct tree_xattr *x);

/* Leaves only those attributes whose name @keep likes; NULL leaves none. */
void tree_filter_xattrs(struct tree *t, struct tree_inode *inode, bool (*keep)(const char *name));

/*
 * Makes a copy, without names, of an inode of any tree that is not a directory with children. 0,
 * TREE_E_BYTES, TREE_E_OWNERS.
 */
int tree_copy_inode(struct tree *t, const struct tree_inode *from, struct tree_inode **ret);

/* The inode of a node, its directory (NULL for the root), and its siblings one after the other. */
struct tree_inode *tree_inode_of(const struct tree_node *node);
struct tree_node *tree_parent(const struct tree_node *node);
struct tree_node *tree_children(const struct tree_node *dir); /* the first; NULL: none */
struct tree_node *tree_next(const struct tree_node *node);

/* True if a file can have the name: 1 to TREE_NAME_MAX bytes, no slash or NUL, not "." or "..". */
bool tree_is_name(const char *name, size_t len);

/* True for a character device 0:0, which to overlayfs is a name that was removed. */
bool tree_is_whiteout(const struct tree_inode *inode);

/*
 * The path of @node, which begins with a slash, at the end of @mem, @size bytes: of one that is too
 * long the last names, behind "...".
 */
const char *tree_node_path(const struct tree_node *node, char *mem, size_t size);

/* The child of the directory @dir with this name, or NULL. */
struct tree_node *tree_find(const struct tree *t, const struct tree_node *dir, const char *name,
			    size_t len);

/*
 * Adds a name for @inode to the directory @dir, which has no such child. 0, TREE_E_FULL,
 * TREE_E_BYTES, TREE_E_DEPTH, or -EINVAL if @len is not 1 to TREE_NAME_MAX or @dir no directory.
 */
int tree_add(struct tree *t, struct tree_node *dir, const char *name, size_t len,
	     struct tree_inode *inode, struct tree_node **ret);

/* Lets the directory @dir stand for @inode, a directory without children, and keep its own. */
void tree_set_dir_inode(struct tree *t, struct tree_node *dir, struct tree_inode *inode);

/* Removes a node and all below it; does nothing to the root. */
void tree_remove(struct tree *t, struct tree_node *node);

/* Puts the children of @dir in byte order of their names; lasts until the next tree_add() there. */
void tree_sort(struct tree_node *dir);

#endif
