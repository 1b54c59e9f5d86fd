/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/inventory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "images/store/catalog.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/base/macros.h"

void inventory_deinit(struct inventory *v)
{
	if (!v)
		return;
	free(v->images);
	free(v->uses);
	free(v->names);
	*v = INVENTORY_INIT;
}

static int add_use(struct inventory *v, const struct digest *digest, uint64_t size, bool is_tree)
{
	if (!GROW(v->uses, v->n_uses))
		return -ENOMEM;
	v->uses[v->n_uses++] = (struct inventory_use){
		.digest = *digest,
		.size = size,
		.image = v->n_images - 1,
		.is_tree = is_tree,
	};
	return 0;
}

static int add_names(struct inventory *v, const struct strv *names)
{
	for (size_t i = 0; i < names->n; i++) {
		if (!GROW(v->names, v->n_names))
			return -ENOMEM;
		struct inventory_name *name = &v->names[v->n_names++];
		name->image = v->n_images - 1;
		digest_of(names->v[i], strlen(names->v[i]), &name->digest);
	}
	return 0;
}

/* What the image needs; of the images below also when these are images no more. */
static int add_files(struct inventory *v, const struct store *s, const struct record *record,
		     const struct layout_image *i)
{
	int r = add_use(v, &i->chain, store_tree_size(s, &i->chain), true);
	for (size_t k = 0; r == 0 && k < i->n_own + i->n_below; k++)
		r = add_use(v, &i->files[k].digest, i->files[k].size, false);
	for (size_t k = 0; r == 0 && k < record->n_below; k++)
		r = add_use(v, &record->below[k], 0, false);
	return r;
}

static int add_image(struct inventory *v, const struct store *s, const struct digest *id,
		     struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	CLEANUP(layout_image_deinit) struct layout_image image;
	struct err why = ERR_INIT;
	record_init(&record);
	layout_image_init(&image);
	int r = catalog_get(s, id, &record, &why);
	if (r == STORE_MISSING)
		return 0;
	v->images[v->n_images++] = (struct inventory_image){
		.id = *id,
		.last_use_ns = catalog_last_use(s, id),
	};
	if (add_names(v, &record.names) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	if (r == 0)
		r = layout_read_image(store_dirfd(s, STORE_LAYOUT), id, record.kind == IMAGE_ACI,
				      record.below, record.n_below, &image, &why);
	if (r < 0)
		return store_is_damage(r)
			       ? 0
			       : err_set(e, r, "cannot tell what image sha256-%.12s needs: %s",
					 id->hex, why.text);
	r = add_files(v, s, &record, &image);
	return r < 0 ? err_set(e, r, "out of memory") : 0;
}

static int compare_uses(const void *a, const void *b)
{
	const struct inventory_use *x = a, *y = b;
	if (x->is_tree != y->is_tree)
		return x->is_tree ? 1 : -1;
	return strcmp(x->digest.hex, y->digest.hex);
}

static int compare_names(const void *a, const void *b)
{
	const struct inventory_name *x = a, *y = b;
	return strcmp(x->digest.hex, y->digest.hex);
}

int inventory_load(const struct store *s, struct inventory *ret, struct err *e)
{
	CLEANUP(inventory_deinit) struct inventory v = INVENTORY_INIT;
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	int r = catalog_list(s, &l, e);
	if (r < 0)
		return r;
	v.images = calloc(MAX(l.n, (size_t)1), sizeof(*v.images));
	if (!v.images)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < l.n; i++)
		r = add_image(&v, s, &l.ids[i], e);
	if (r < 0)
		return r;
	if (v.n_uses > 0)
		qsort(v.uses, v.n_uses, sizeof(*v.uses), compare_uses);
	if (v.n_names > 0)
		qsort(v.names, v.n_names, sizeof(*v.names), compare_names);
	*ret = v;
	v = INVENTORY_INIT;
	return 0;
}

/* The first use at or behind the place of the key. */
static size_t lower_bound(const struct inventory *v, const struct inventory_use *key)
{
	size_t low = 0, high = v->n_uses;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_uses(&v->uses[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool inventory_needs(const struct inventory *v, const struct digest *digest, bool is_tree)
{
	const struct inventory_use key = { .digest = *digest, .is_tree = is_tree };
	for (size_t i = lower_bound(v, &key); i < v->n_uses && compare_uses(&v->uses[i], &key) == 0;
	     i++)
		if (!v->images[v->uses[i].image].removed)
			return true;
	return false;
}

bool inventory_has_name(const struct inventory *v, const char *name)
{
	struct inventory_name key = { 0 };
	if (v->n_names == 0) /* then there is nothing to search in, not even an array */
		return false;
	digest_of(name, strlen(name), &key.digest);
	const struct inventory_name *end = v->names + v->n_names;
	const struct inventory_name *at =
		bsearch(&key, v->names, v->n_names, sizeof(*v->names), compare_names);
	while (at && at > v->names && compare_names(at - 1, &key) == 0)
		at--;
	for (; at && at < end && compare_names(at, &key) == 0; at++)
		if (!v->images[at->image].removed)
			return true;
	return false;
}

uint64_t inventory_size(const struct inventory *v)
{
	uint64_t size = 0;
	const struct inventory_use *counted = NULL;
	for (size_t i = 0; i < v->n_uses; i++) {
		const struct inventory_use *u = &v->uses[i];
		if (v->images[u->image].removed)
			continue;
		if (!counted || compare_uses(counted, u) != 0) {
			size += u->size;
			counted = u;
		} else if (u->size > counted->size) { /* a use that does not know the size is 0 */
			size += u->size - counted->size;
			counted = u;
		}
	}
	return size;
}
