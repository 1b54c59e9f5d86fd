/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "images/store/catalog.h"

void store_list_deinit(struct store_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		strv_deinit(&l->v[i].names);
	free(l->v);
}

/*
 * Leaves out the names that have moved to another image. That of an appc image is what it says of
 * itself, and stays.
 */
static void drop_moved_names(const struct store *s, struct record *record)
{
	for (size_t i = record->kind == IMAGE_ACI ? 0 : record->names.n; i-- > 0;)
		if (!catalog_stands_for(s, record->names.v[i], &record->id))
			record_remove_name(record, record->names.v[i]);
}

/* 0, STORE_MISSING, or -errno with @e. */
static int read_listed(const struct store *s, const struct digest *id, struct listed_image *ret,
		       struct err *e)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	int r = catalog_get(s, id, &record, e);
	if (r != 0)
		return r;
	drop_moved_names(s, &record);
	record_id_text(&record, ret->id);
	ret->size = record.size + catalog_rendered_size(s, &record);
	ret->imported_ns = record.imported_ns;
	ret->last_use_ns = catalog_last_use(s, id);
	ret->names = record.names;
	strv_init(&record.names, RECORD_NAMES_MAX);
	return 0;
}

int store_list_read(const struct store *s, void (*damaged)(void *ctx, const char *why), void *ctx,
		    struct store_list *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list ids = CATALOG_LIST_INIT;
	int r = catalog_list(s, &ids, e);
	if (r < 0)
		return r;
	ret->v = calloc(MAX(ids.n, (size_t)1), sizeof(*ret->v));
	if (!ret->v)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < ids.n; i++) {
		struct err why = ERR_INIT;
		r = read_listed(s, &ids.ids[i], &ret->v[ret->n], &why);
		if (r == 0)
			ret->n++;
		else if (r < 0)
			damaged(ctx, why.text);
	}
	return 0;
}

void store_list_id(const struct store *s, const struct digest *id, char out[IMAGE_ID_LEN + 1])
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	if (catalog_get(s, id, &record, NULL) == 0)
		record_id_text(&record, out);
	else
		snprintf(out, IMAGE_ID_LEN + 1, "sha256-%s", id->hex);
}
