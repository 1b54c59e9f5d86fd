/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: tree_inode.u is, by type: a directory's first child; a symbolic link's
 * target, NUL-terminated; a device's number, major above minor; a regular file's content, 0 for an
 * empty one.
 *
 * Most files are smaller than a block. Their content is a struct small. The content of others (and
 * of those that are small, but have runs) is a struct large with the runs behind it, marked by
 * TREE_INODE_LARGE; the arena aligns to four bytes, so it is copied before it is looked at.
 */
#include <string.h>

#include "images/render/tree_int.h"
#include "lib/base/macros.h"

#define MINOR_BITS 20

struct small {
	uint32_t size;
	uint32_t fragment;
	uint32_t fragment_offset;
};

struct large {
	uint64_t size;
	uint64_t start;
	uint64_t sparse;
	uint32_t fragment;
	uint32_t fragment_offset;
	uint32_t n_runs;
	uint32_t unused; /* so that the runs follow at once */
};

int tree_inode_new(struct tree *t, struct tree_inode **ret)
{
	struct tree_inode *inode = arena_alloc(&t->arena, sizeof(*inode));
	if (!inode)
		return TREE_E_BYTES;
	*ret = inode;
	return 0;
}

static size_t large_size(uint32_t n_runs)
{
	return sizeof(struct large) + n_runs * sizeof(struct tree_run);
}

/* Frees what only its type has. */
static void free_part(struct tree *t, struct tree_inode *inode)
{
	void *part = arena_at(inode, inode->u);
	if (S_ISLNK(inode->mode) && part)
		arena_free(&t->arena, part, strlen(part) + 1);
	if (!S_ISREG(inode->mode) || !part)
		return;
	struct tree_content c;
	tree_get_content(inode, &c);
	bool is_large = inode->flags & TREE_INODE_LARGE;
	arena_free(&t->arena, part, is_large ? large_size(c.n_runs) : sizeof(struct small));
}

void tree_inode_free(struct tree *t, struct tree_inode *inode)
{
	tree_filter_xattrs(t, inode, NULL);
	free_part(t, inode);
	arena_free(&t->arena, inode, sizeof(*inode));
}

void tree_drop_link(struct tree *t, struct tree_inode *inode)
{
	if (--inode->nlink > 0 || (inode->flags & TREE_INODE_GONE))
		return;
	inode->flags |= TREE_INODE_GONE;
	inode->place = t->gone;
	t->gone = arena_ref(inode);
}

struct tree_inode *tree_take_gone(struct tree *t)
{
	while (t->gone) {
		struct tree_inode *inode = arena_at(t->arena.base, t->gone);
		t->gone = inode->place;
		inode->place = 0;
		inode->flags &= (uint8_t)~TREE_INODE_GONE;
		if (inode->nlink == 0)
			return inode;
	}
	return NULL;
}

/* The table of owners: the first object of the arena that @any is in. */
static uint32_t *owners(const void *any)
{
	return arena_at(any, 1);
}

/* Index of @id in the table. False if it is full. */
static bool owner_index(struct tree *t, uint32_t id, uint16_t *ret)
{
	uint32_t *table = owners(t->arena.base);
	size_t at = (id * UINT32_C(2654435761)) >> 16; /* Knuth's multiplicative hash */
	for (;; at++) {
		uint16_t *slot = &t->owner_slots[at % TREE_OWNER_SLOTS];
		if (*slot == 0) {
			if (t->n_owners == TREE_OWNERS_MAX)
				return false;
			table[t->n_owners++] = id;
			*slot = (uint16_t)t->n_owners;
		}
		if (table[*slot - 1] == id) {
			*ret = (uint16_t)(*slot - 1);
			return true;
		}
	}
}

int tree_init_owners(struct tree *t)
{
	uint16_t index;
	if (!arena_alloc(&t->arena, TREE_OWNERS_MAX * sizeof(uint32_t)))
		return TREE_E_BYTES;
	return owner_index(t, 0, &index) ? 0 : TREE_E_OWNERS;
}

uint32_t tree_uid(const struct tree_inode *inode)
{
	return owners(inode)[inode->owner];
}

uint32_t tree_gid(const struct tree_inode *inode)
{
	return owners(inode)[inode->group];
}

int tree_set_owner(struct tree *t, struct tree_inode *inode, uint32_t uid, uint32_t gid)
{
	bool done = owner_index(t, uid, &inode->owner) && owner_index(t, gid, &inode->group);
	return done ? 0 : TREE_E_OWNERS;
}

int tree_set_target(struct tree *t, struct tree_inode *link, const char *target, size_t len)
{
	char *copy = arena_alloc(&t->arena, len + 1);
	if (!copy)
		return TREE_E_BYTES;
	memcpy(copy, target, len);
	link->u = arena_ref(copy);
	return 0;
}

const char *tree_target(const struct tree_inode *link)
{
	return arena_at(link, link->u);
}

void tree_set_device(struct tree_inode *device, uint32_t major, uint32_t minor)
{
	device->u = major << MINOR_BITS | minor;
}

uint32_t tree_major(const struct tree_inode *device)
{
	return device->u >> MINOR_BITS;
}

uint32_t tree_minor(const struct tree_inode *device)
{
	return device->u & ((UINT32_C(1) << MINOR_BITS) - 1);
}

bool tree_is_whiteout(const struct tree_inode *inode)
{
	return S_ISCHR(inode->mode) && inode->u == 0;
}

static int set_large(struct tree *t, struct tree_inode *file, const struct tree_content *c)
{
	const struct large fixed = {
		.size = c->size,
		.start = c->start,
		.sparse = c->sparse,
		.fragment = c->fragment,
		.fragment_offset = c->fragment_offset,
		.n_runs = c->n_runs,
	};
	char *out = arena_alloc(&t->arena, large_size(c->n_runs));
	if (!out)
		return TREE_E_BYTES;
	memcpy(out, &fixed, sizeof(fixed));
	if (c->n_runs > 0)
		memcpy(out + sizeof(fixed), c->runs, c->n_runs * sizeof(*c->runs));
	file->flags |= TREE_INODE_LARGE;
	file->u = arena_ref(out);
	return 0;
}

int tree_set_content(struct tree *t, struct tree_inode *file, const struct tree_content *c)
{
	if (c->size == 0)
		return 0;
	if (c->n_runs > 0 || c->size > UINT32_MAX)
		return set_large(t, file, c);
	struct small *out = arena_alloc(&t->arena, sizeof(*out));
	if (!out)
		return TREE_E_BYTES;
	*out = (struct small){ (uint32_t)c->size, c->fragment, c->fragment_offset };
	file->u = arena_ref(out);
	return 0;
}

void tree_get_content(const struct tree_inode *file, struct tree_content *ret)
{
	const void *part = arena_at(file, file->u);
	*ret = (struct tree_content){ .fragment = TREE_NO_FRAGMENT };
	if (!part)
		return;
	if (!(file->flags & TREE_INODE_LARGE)) {
		const struct small *s = part;
		ret->size = s->size;
		ret->fragment = s->fragment;
		ret->fragment_offset = s->fragment_offset;
		return;
	}
	struct large l;
	memcpy(&l, part, sizeof(l));
	*ret = (struct tree_content){
		.size = l.size,
		.start = l.start,
		.sparse = l.sparse,
		.fragment = l.fragment,
		.fragment_offset = l.fragment_offset,
		.n_runs = l.n_runs,
		.runs = (const struct tree_run *)(const void *)((const char *)part + sizeof(l)),
	};
}

uint64_t tree_size(const struct tree_inode *file)
{
	struct tree_content c;
	tree_get_content(file, &c);
	return c.size;
}

static size_t xattr_size(const struct tree_xattr *x)
{
	return sizeof(*x) + strlen(x->name) + 1 + x->size;
}

/* Takes *@at out of its list. */
static void drop_xattr(struct tree *t, struct tree_xattr *x, uint32_t *at)
{
	*at = x->next;
	arena_free(&t->arena, x, xattr_size(x));
}

int tree_add_xattr(struct tree *t, struct tree_inode *inode, const char *name, const void *value,
		   size_t size)
{
	size_t name_size = strlen(name) + 1;
	uint32_t *at = &inode->xattrs;
	struct tree_xattr *x;
	int order = 1;
	while ((x = arena_at(inode, *at)) && (order = strcmp(x->name, name)) < 0)
		at = &x->next;
	struct tree_xattr *fresh = arena_alloc(&t->arena, sizeof(*fresh) + name_size + size);
	if (!fresh)
		return TREE_E_BYTES;
	if (x && order == 0)
		drop_xattr(t, x, at);
	fresh->size = (uint32_t)size;
	memcpy(fresh->name, name, name_size);
	if (size > 0)
		memcpy(fresh->name + name_size, value, size);
	fresh->next = *at;
	*at = arena_ref(fresh);
	return 0;
}

const struct tree_xattr *tree_xattrs(const struct tree_inode *inode)
{
	return arena_at(inode, inode->xattrs);
}

const struct tree_xattr *tree_next_xattr(const struct tree_xattr *x)
{
	return arena_at(x, x->next);
}

const void *tree_xattr_value(const struct tree_xattr *x)
{
	return x->name + strlen(x->name) + 1;
}

void tree_filter_xattrs(struct tree *t, struct tree_inode *inode, bool (*keep)(const char *name))
{
	uint32_t *at = &inode->xattrs;
	struct tree_xattr *x;
	while ((x = arena_at(inode, *at))) {
		if (keep && keep(x->name))
			at = &x->next;
		else
			drop_xattr(t, x, at);
	}
}

/* Copies what only some types have. */
static int copy_part(struct tree *t, const struct tree_inode *from, struct tree_inode *to)
{
	if (S_ISLNK(from->mode))
		return tree_set_target(t, to, tree_target(from), strlen(tree_target(from)));
	if (S_ISREG(from->mode)) {
		struct tree_content c;
		tree_get_content(from, &c);
		return tree_set_content(t, to, &c);
	}
	to->u = S_ISDIR(from->mode) ? 0 : from->u;
	return 0;
}

int tree_copy_inode(struct tree *t, const struct tree_inode *from, struct tree_inode **ret)
{
	struct tree_inode *to = NULL;
	int r = tree_inode_new(t, &to);
	if (r != 0)
		return r;
	to->mtime = from->mtime;
	to->mode = from->mode;
	to->layer = from->layer;
	to->place = from->place;
	r = tree_set_owner(t, to, tree_uid(from), tree_gid(from));
	if (r == 0)
		r = copy_part(t, from, to);
	for (const struct tree_xattr *x = tree_xattrs(from); x && r == 0; x = tree_next_xattr(x))
		r = tree_add_xattr(t, to, x->name, tree_xattr_value(x), x->size);
	if (r == 0)
		*ret = to;
	return r;
}
