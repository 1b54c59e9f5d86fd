/*
 * Theory of operation: children are found through one hash table for the whole tree, keyed by
 * directory and name with SipHash-2-4 (Aumasson, Bernstein 2012) under a random key, because names
 * are chosen by whoever made the image. Siblings form an unsorted list; sorting happens once, when
 * the tree is written, so neither the key nor the order of insertion shows in the result.
 */
#include "host/render/tree.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/os/random.h"

#define BUCKETS_MIN ((size_t)4096)

struct tree {
	struct arena arena;
	struct tree_node *root;
	size_t n_nodes;
	struct tree_node **buckets;
	size_t n_buckets; /* a power of two */
	uint64_t key[2];
};

static uint64_t rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

/* SipHash-2-4 of the directory's address followed by the name. */
static size_t hash(const struct tree *t, const struct tree_node *dir, const char *name, size_t len)
{
	uint64_t v[4] = {
		t->key[0] ^ UINT64_C(0x736f6d6570736575),
		t->key[1] ^ UINT64_C(0x646f72616e646f6d),
		t->key[0] ^ UINT64_C(0x6c7967656e657261),
		t->key[1] ^ UINT64_C(0x7465646279746573),
	};
	sip_word(v, (uint64_t)(uintptr_t)dir);
	uint64_t word = 0;
	size_t i;
	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&word, name + i, 8);
		sip_word(v, word);
	}
	word = (uint64_t)len << 56;
	for (size_t k = 0; i + k < len; k++)
		word |= (uint64_t)(unsigned char)name[i + k] << (8 * k);
	sip_word(v, word);
	v[2] ^= 0xff;
	for (int n = 0; n < 4; n++)
		sip_round(v);
	return (size_t)(v[0] ^ v[1] ^ v[2] ^ v[3]);
}

static struct tree_node **bucket(const struct tree *t, const struct tree_node *dir,
				 const char *name, size_t len)
{
	return &t->buckets[hash(t, dir, name, len) & (t->n_buckets - 1)];
}

/* Doubles the table. Failure is harmless: chains just get longer. */
static void grow_table(struct tree *t)
{
	size_t old_n = t->n_buckets;
	struct tree_node **old = t->buckets;
	struct tree_node **fresh = calloc(2 * old_n, sizeof(*fresh));
	if (!fresh)
		return;
	t->buckets = fresh;
	t->n_buckets = 2 * old_n;
	for (size_t i = 0; i < old_n; i++) {
		for (struct tree_node *n = old[i], *next; n; n = next) {
			next = n->hash_next;
			struct tree_node **b = bucket(t, n->parent, n->name, strlen(n->name));
			n->hash_next = *b;
			*b = n;
		}
	}
	free(old);
}

static void cleanup_tree(struct tree **t)
{
	tree_free(*t);
}

int tree_new(struct tree **ret)
{
	CLEANUP(cleanup_tree) struct tree *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	arena_init(&t->arena, TREE_BYTES_MAX);
	int r = random_bytes(t->key, sizeof(t->key));
	if (r < 0)
		return r;
	t->n_buckets = BUCKETS_MIN;
	t->buckets = calloc(t->n_buckets, sizeof(*t->buckets));
	t->root = arena_alloc(&t->arena, sizeof(*t->root) + 1);
	struct tree_inode *inode;
	if (!t->buckets || !t->root || tree_inode_new(t, &inode) != 0)
		return -ENOMEM;
	inode->mode = S_IFDIR | 0755;
	inode->nlink = 1;
	t->root->inode = inode;
	t->n_nodes = 1;
	*ret = TAKE_PTR(t);
	return 0;
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	arena_deinit(&t->arena);
	free(t->buckets);
	free(t);
}

struct tree_node *tree_root(const struct tree *t)
{
	return t->root;
}

size_t tree_count(const struct tree *t)
{
	return t->n_nodes;
}

struct arena *tree_arena(struct tree *t)
{
	return &t->arena;
}

int tree_inode_new(struct tree *t, struct tree_inode **ret)
{
	struct tree_inode *inode = arena_alloc(&t->arena, sizeof(*inode));
	if (!inode)
		return TREE_E_FULL;
	*ret = inode;
	return 0;
}

struct tree_node *tree_find(const struct tree *t, const struct tree_node *dir, const char *name,
			    size_t len)
{
	for (struct tree_node *n = *bucket(t, dir, name, len); n; n = n->hash_next)
		if (n->parent == dir && strncmp(n->name, name, len) == 0 && n->name[len] == '\0')
			return n;
	return NULL;
}

int tree_add(struct tree *t, struct tree_node *dir, const char *name, size_t len,
	     struct tree_inode *inode, struct tree_node **ret)
{
	if (len == 0 || len > TREE_NAME_MAX || !S_ISDIR(dir->inode->mode))
		return -EINVAL;
	if (t->n_nodes >= TREE_NODES_MAX || dir->depth >= TREE_DEPTH_MAX)
		return TREE_E_FULL;
	struct tree_node *n = arena_alloc(&t->arena, sizeof(*n) + len + 1);
	if (!n)
		return TREE_E_FULL;
	memcpy(n->name, name, len);
	n->parent = dir;
	n->inode = inode;
	n->depth = (uint16_t)(dir->depth + 1);
	n->next = dir->children;
	if (n->next)
		n->next->prev = n;
	dir->children = n;
	dir->n_children++;
	inode->nlink++;
	if (++t->n_nodes > 2 * t->n_buckets)
		grow_table(t);
	struct tree_node **b = bucket(t, dir, name, len);
	n->hash_next = *b;
	*b = n;
	*ret = n;
	return 0;
}

/* Takes a node without children out of the table and its directory. */
static void detach(struct tree *t, struct tree_node *node)
{
	struct tree_node *dir = node->parent;
	struct tree_node **at = bucket(t, dir, node->name, strlen(node->name));
	while (*at != node)
		at = &(*at)->hash_next;
	*at = node->hash_next;
	if (node->prev)
		node->prev->next = node->next;
	else
		dir->children = node->next;
	if (node->next)
		node->next->prev = node->prev;
	dir->n_children--;
	node->inode->nlink--;
	node->parent = NULL;
	t->n_nodes--;
}

void tree_remove(struct tree *t, struct tree_node *node)
{
	if (!node->parent)
		return;
	/* Leaves first, without recursion: down to a leaf, detach it, back to its directory. */
	struct tree_node *stop = node->parent;
	while (node != stop) {
		if (node->children) {
			node = node->children;
			continue;
		}
		struct tree_node *dir = node->parent;
		detach(t, node);
		if (dir == stop)
			return;
		node = dir;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct tree_node *const *x = a, *const *y = b;
	return strcmp((*x)->name, (*y)->name);
}

int tree_sorted_children(const struct tree_node *dir, struct tree_node ***ret)
{
	struct tree_node **list = calloc(MAX(dir->n_children, 1U), sizeof(*list));
	if (!list)
		return -ENOMEM;
	size_t n = 0;
	for (struct tree_node *c = dir->children; c; c = c->next)
		list[n++] = c;
	qsort(list, n, sizeof(*list), by_name);
	*ret = list;
	return 0;
}
