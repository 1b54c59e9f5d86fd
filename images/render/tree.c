/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: children are found through one hash table for the whole tree, keyed by
 * directory and name with SipHash-2-4 (Aumasson, Bernstein 2012) under a random key, because names
 * are chosen by whoever made the image. Siblings form a list that is sorted only when the tree is
 * written, so neither the key nor the order of insertion shows in the result.
 *
 * The list has no way back, so a node in the middle of it cannot be taken out at once: it stays,
 * without an inode, where tree_find() and tree_next() do not see it, until the same name is added
 * again or the directory is removed. Nodes at the head of the list go, and their memory is used
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "images/render/tree_int.h"
#include "lib/base/macros.h"
#include "lib/os/random.h"

#define BUCKETS_MIN ((size_t)4096)

/* Slots of the list that is sorted: as many as a number of nodes has bits. */
#define SORT_SLOTS 24

static uint64_t tree_rotate(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = tree_rotate(v[1], 13) ^ v[0];
	v[0] = tree_rotate(v[0], 32);
	v[2] += v[3];
	v[3] = tree_rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = tree_rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = tree_rotate(v[1], 17) ^ v[2];
	v[2] = tree_rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	sip_round(v);
	sip_round(v);
	v[0] ^= word;
}

/* SipHash-2-4 of the directory's reference followed by the name. */
static size_t hash(const struct tree *t, const struct tree_node *dir, const char *name, size_t len)
{
	uint64_t v[4] = {
		t->key[0] ^ UINT64_C(0x736f6d6570736575),
		t->key[1] ^ UINT64_C(0x646f72616e646f6d),
		t->key[0] ^ UINT64_C(0x6c7967656e657261),
		t->key[1] ^ UINT64_C(0x7465646279746573),
	};
	sip_word(v, arena_ref(dir));
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

static uint32_t *bucket(const struct tree *t, const struct tree_node *dir, const char *name,
			size_t len)
{
	return &t->buckets[hash(t, dir, name, len) & (t->n_buckets - 1)];
}

static struct tree_node *node_at(const struct tree *t, uint32_t ref)
{
	return arena_at(t->arena.base, ref);
}

/* Doubles the table. Failure is harmless: chains just get longer. */
static void grow_table(struct tree *t)
{
	size_t old_n = t->n_buckets;
	uint32_t *old = t->buckets;
	uint32_t *fresh = calloc(2 * old_n, sizeof(*fresh));
	if (!fresh)
		return;
	t->buckets = fresh;
	t->n_buckets = 2 * old_n;
	for (size_t i = 0; i < old_n; i++) {
		for (struct tree_node *n = node_at(t, old[i]), *next; n; n = next) {
			next = node_at(t, n->hash_next);
			uint32_t *b = bucket(t, tree_parent(n), n->name, strlen(n->name));
			n->hash_next = *b;
			*b = arena_ref(n);
		}
	}
	free(old);
}

static size_t node_size(size_t name_len)
{
	return offsetof(struct tree_node, name) + name_len + 1;
}

int tree_new(struct tree **ret)
{
	CLEANUP(tree_freep) struct tree *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	arena_init(&t->arena, TREE_BYTES_MAX);
	int r = random_bytes(t->key, sizeof(t->key));
	if (r < 0)
		return r;
	t->n_buckets = BUCKETS_MIN;
	t->buckets = calloc(t->n_buckets, sizeof(*t->buckets));
	struct tree_inode *inode;
	if (!t->buckets || tree_init_owners(t) != 0 || tree_inode_new(t, &inode) != 0)
		return -ENOMEM;
	t->root = arena_alloc(&t->arena, node_size(0));
	if (!t->root)
		return -ENOMEM;
	inode->mode = S_IFDIR | 0755;
	inode->nlink = 1;
	t->root->inode = arena_ref(inode);
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

int tree_explain(int r, struct err *e)
{
	static const char remedy[] = "make it of fewer files, or pack some of them into one";
	if (r == TREE_E_FULL)
		return err_set(e, -E2BIG, "the image has more than %zu files (%s)", TREE_NODES_MAX,
			       remedy);
	if (r == TREE_E_DEPTH)
		return err_set(e, -E2BIG, "directories are nested more than %d deep",
			       TREE_DEPTH_MAX);
	if (r == TREE_E_OWNERS)
		return err_set(e, -E2BIG, "the image has more than %zu different owners",
			       TREE_OWNERS_MAX);
	return err_set(
		e, -E2BIG,
		"the image's file names and attributes need more than %zu MiB of memory (%s)",
		TREE_BYTES_MAX >> 20, remedy);
}

struct tree_inode *tree_inode_of(const struct tree_node *node)
{
	return arena_at(node, node->inode);
}

struct tree_node *tree_parent(const struct tree_node *node)
{
	return arena_at(node, node->parent);
}

bool tree_is_name(const char *name, size_t len)
{
	bool is_dots = (len == 1 || (len == 2 && name[1] == '.')) && name[0] == '.';
	return len > 0 && len <= TREE_NAME_MAX && !is_dots && !memchr(name, '/', len) &&
	       !memchr(name, '\0', len);
}

const char *tree_node_path(const struct tree_node *node, char *mem, size_t size)
{
	static const char cut[] = "...";
	size_t at = size - 1;
	mem[at] = '\0';
	if (!tree_parent(node))
		mem[--at] = '/';
	for (; tree_parent(node); node = tree_parent(node)) {
		size_t len = strlen(node->name);
		if (len + sizeof(cut) > at)
			return memcpy(mem + at - strlen(cut), cut, strlen(cut));
		at -= len + 1;
		mem[at] = '/';
		memcpy(mem + at + 1, node->name, len);
	}
	return mem + at;
}

/* The first of the siblings from @ref on that was not removed. */
static struct tree_node *first_live(const void *any, uint32_t ref)
{
	struct tree_node *n = arena_at(any, ref);
	while (n && !n->inode)
		n = arena_at(n, n->next);
	return n;
}

/* Where the directory @dir has the reference of the first of its nodes. */
static uint32_t *head_of_dir(const struct tree_node *dir)
{
	struct tree_inode *inode = arena_get(dir, dir->inode);
	return &inode->u;
}

/* The same for any node, NULL for all that are not directories. */
static uint32_t *head_of(const struct tree_node *node)
{
	const struct tree_inode *inode = tree_inode_of(node);
	return inode && S_ISDIR(inode->mode) ? head_of_dir(node) : NULL;
}

struct tree_node *tree_children(const struct tree_node *dir)
{
	const uint32_t *head = head_of(dir);
	return head ? first_live(dir, *head) : NULL;
}

struct tree_node *tree_next(const struct tree_node *node)
{
	return first_live(node, node->next);
}

/* The child, or what is left of a removed one. */
static struct tree_node *find_any(const struct tree *t, const struct tree_node *dir,
				  const char *name, size_t len)
{
	uint32_t parent = arena_ref(dir);
	struct tree_node *n = node_at(t, *bucket(t, dir, name, len));
	while (n &&
	       !(n->parent == parent && strncmp(n->name, name, len) == 0 && n->name[len] == '\0'))
		n = node_at(t, n->hash_next);
	return n;
}

struct tree_node *tree_find(const struct tree *t, const struct tree_node *dir, const char *name,
			    size_t len)
{
	struct tree_node *n = find_any(t, dir, name, len);
	return n && n->inode ? n : NULL;
}

/* Makes a node without an inode. NULL if memory is short. */
static struct tree_node *make_node(struct tree *t, struct tree_node *dir, const char *name,
				   size_t len)
{
	struct tree_node *n = arena_alloc(&t->arena, node_size(len));
	if (!n)
		return NULL;
	memcpy(n->name, name, len);
	n->parent = arena_ref(dir);
	n->depth = (uint16_t)(dir->depth + 1);
	uint32_t *head = head_of_dir(dir), *b = bucket(t, dir, name, len);
	n->next = *head;
	*head = arena_ref(n);
	n->hash_next = *b;
	*b = arena_ref(n);
	return n;
}

int tree_add(struct tree *t, struct tree_node *dir, const char *name, size_t len,
	     struct tree_inode *inode, struct tree_node **ret)
{
	if (len == 0 || len > TREE_NAME_MAX || !head_of(dir))
		return -EINVAL;
	if (t->n_nodes >= TREE_NODES_MAX)
		return TREE_E_FULL;
	if (dir->depth >= TREE_DEPTH_MAX)
		return TREE_E_DEPTH;
	struct tree_node *n = find_any(t, dir, name, len);
	if (!n)
		n = make_node(t, dir, name, len);
	if (!n)
		return TREE_E_BYTES;
	n->inode = arena_ref(inode);
	n->layer = 0;
	inode->nlink++;
	if (++t->n_nodes > 2 * t->n_buckets)
		grow_table(t);
	*ret = n;
	return 0;
}

void tree_set_dir_inode(struct tree *t, struct tree_node *dir, struct tree_inode *inode)
{
	struct tree_inode *old = tree_inode_of(dir);
	inode->u = old->u;
	inode->nlink++;
	old->u = 0;
	dir->inode = arena_ref(inode);
	tree_drop_link(t, old);
}

/* Takes the inode, if there is one, from a node without children. */
static void drop_inode(struct tree *t, struct tree_node *node)
{
	if (!node->inode)
		return;
	tree_drop_link(t, tree_inode_of(node));
	node->inode = 0;
	t->n_nodes--;
}

/* Frees the node at the head of a directory, which has no children. */
static void drop_head(struct tree *t, struct tree_node *dir)
{
	uint32_t *head = head_of_dir(dir);
	struct tree_node *node = arena_get(dir, *head);
	size_t len = strlen(node->name);
	uint32_t *at = bucket(t, dir, node->name, len);
	while (*at != *head)
		at = &((struct tree_node *)arena_get(dir, *at))->hash_next;
	*at = node->hash_next;
	*head = node->next;
	drop_inode(t, node);
	arena_free(&t->arena, node, node_size(len));
}

/* Frees all nodes below @top, leaves first, without recursion. */
static void drop_children(struct tree *t, struct tree_node *top)
{
	struct tree_node *dir = top;
	for (;;) {
		const uint32_t *head = head_of(dir);
		struct tree_node *child = head ? node_at(t, *head) : NULL;
		const uint32_t *below = child ? head_of(child) : NULL;
		if (below && *below)
			dir = child;
		else if (child)
			drop_head(t, dir);
		else if (dir == top)
			return;
		else
			dir = tree_parent(dir);
	}
}

void tree_remove(struct tree *t, struct tree_node *node)
{
	struct tree_node *dir = tree_parent(node);
	if (!dir)
		return;
	drop_children(t, node);
	if (*head_of_dir(dir) == arena_ref(node))
		drop_head(t, dir);
	else
		drop_inode(t, node);
}

/* Merges two sorted lists; the nodes of @a come first where names are equal. */
static uint32_t merge_lists(const void *any, uint32_t a, uint32_t b)
{
	uint32_t first = 0, *at = &first;
	while (a && b) {
		struct tree_node *x = arena_at(any, a), *y = arena_at(any, b);
		bool take_a = strcmp(x->name, y->name) <= 0;
		*at = take_a ? a : b;
		at = take_a ? &x->next : &y->next;
		if (take_a)
			a = x->next;
		else
			b = y->next;
	}
	*at = a ? a : b;
	return first;
}

/* A merge sort from small lists to large ones: slot i holds a sorted list of 2^i nodes, or none. */
void tree_sort(struct tree_node *dir)
{
	uint32_t slots[SORT_SLOTS] = { 0 }, *head = head_of(dir);
	size_t i;
	for (uint32_t next, ref = head ? *head : 0; ref; ref = next) {
		struct tree_node *n = arena_at(dir, ref);
		uint32_t list = ref;
		next = n->next;
		n->next = 0;
		for (i = 0; i < SORT_SLOTS - 1 && slots[i]; i++) {
			list = merge_lists(dir, slots[i], list);
			slots[i] = 0;
		}
		slots[i] = slots[i] ? merge_lists(dir, slots[i], list) : list;
	}
	uint32_t all = 0;
	for (i = 0; i < SORT_SLOTS; i++)
		all = merge_lists(dir, slots[i], all);
	if (head)
		*head = all;
}
