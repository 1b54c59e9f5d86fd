/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two halves of the tree: names (tree.c), what inodes have (tree_inode.c). */
#ifndef IMAGES_RENDER_TREE_INT_H
#define IMAGES_RENDER_TREE_INT_H

#include "images/render/tree.h"

/* Slots for the owners, at most half of which are used. */
#define TREE_OWNER_SLOTS (2 * TREE_OWNERS_MAX)

struct tree {
	struct arena arena; /* the table of owners is its first object */
	struct tree_node *root;
	size_t n_nodes;
	uint32_t *buckets; /* refs of nodes */
	size_t n_buckets;  /* a power of two */
	uint64_t key[2];
	uint32_t gone; /* refs of inodes, see tree_take_gone() */
	size_t n_owners;
	uint16_t owner_slots[TREE_OWNER_SLOTS]; /* index of an owner, plus 1; 0 is free */
};

/* Allocates the table of owners and enters 0, which gets the index 0. 0, TREE_E_BYTES. */
int tree_init_owners(struct tree *t);

/* Takes one name from @inode. */
void tree_drop_link(struct tree *t, struct tree_inode *inode);

#endif
