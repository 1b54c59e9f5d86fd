/* SPDX-License-Identifier: Apache-2.0 */
/* husk image list */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/format/image_rows.h"
#include "host/cli/format/show.h"
#include "host/cli/images.h"
#include "images/store/catalog.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"

struct list_opts {
	const char *fields;
	const char *sort;
	const char *order;
	enum show_format format;
	bool full;
	bool no_legend;
};

static const struct flag flags[] = {
	FLAG_STRING("fields", "LIST", struct list_opts, fields,
		    "columns: id,name,size,importtime,lastused"),
	FLAG_FORMAT(struct list_opts, "print JSON instead of a table"),
	FLAG_SWITCH("full", struct list_opts, full,
		    "print whole image IDs, sizes in bytes and absolute times"),
	FLAG_SWITCH("no-legend", struct list_opts, no_legend, "leave out the header"),
	FLAG_STRING("order", "asc|desc", struct list_opts, order,
		    "ascending, the default, or descending"),
	FLAG_STRING("sort", "LIST", struct list_opts, sort,
		    "fields to sort by: name,importtime,lastused,size (default importtime)"),
};

/* What the flags say, read. */
struct plan {
	struct image_columns columns;
	struct image_columns by;
	bool descending;
};

struct rows {
	struct image_row *v;
	size_t n;
};

static void rows_deinit(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		image_row_deinit(&rows->v[i]);
	free(rows->v);
}

static int make_plan(const struct list_opts *o, struct plan *p, struct err *e)
{
	const char *order = o->order ? o->order : "asc";
	int r = image_columns_parse(o->fields ? o->fields : "id,name,size,importtime,lastused",
				    &p->columns, e);
	if (r == 0)
		r = image_sort_parse(o->sort ? o->sort : "importtime", &p->by, e);
	if (r < 0)
		return CLI_MISUSE;
	p->descending = strcmp(order, "desc") == 0;
	if (!p->descending && strcmp(order, "asc") != 0)
		return err_set(e, CLI_MISUSE, "--order: \"%.80s\" is neither asc nor desc", order);
	return 0;
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

/* Reads one image; one that went away meanwhile, or whose record is damaged, is left out. */
static void read_row(const struct cli *c, const struct store *s, const struct digest *id,
		     struct rows *rows)
{
	struct image_row *row = &rows->v[rows->n];
	struct err e = ERR_INIT;
	record_init(&row->record);
	int r = catalog_get(s, id, &row->record, &e);
	if (r < 0)
		cli_message(c, "%s", e.text);
	if (r != 0) {
		image_row_deinit(row);
		return;
	}
	drop_moved_names(s, &row->record);
	row->last_use_ns = catalog_last_use(s, id);
	row->size = row->record.size + catalog_rendered_size(s, &row->record);
	rows->n++;
}

static int read_rows(struct cli *c, struct rows *rows, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	cleanup_store struct store *s = NULL;
	int r = cli_open_store(c, &s, e);
	if (r == 0)
		r = catalog_list(s, &l, e);
	if (r < 0)
		return r;
	rows->v = calloc(MAX(l.n, (size_t)1), sizeof(*rows->v));
	if (!rows->v)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < l.n; i++)
		read_row(c, s, &l.ids[i], rows);
	return 0;
}

static int format_table(const struct rows *rows, const struct plan *p, const struct list_opts *o,
			struct buf *out)
{
	CLEANUP(table_deinit) struct table t;
	table_init(&t, p->columns.n);
	int64_t now = clock_realtime_ns();
	int r = o->no_legend ? 0 : image_rows_header(&t, &p->columns);
	for (size_t i = 0; r == 0 && i < rows->n; i++)
		r = image_rows_add(&t, &p->columns, &rows->v[i], o->full, now);
	return r < 0 ? r : table_format(&t, out);
}

static int format_json(const struct rows *rows, enum show_format format, struct buf *out)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < rows->n; i++)
		if (json_append(list, image_row_json(&rows->v[i])) < 0)
			return -ENOMEM;
	return show_new_json(TAKE_PTR(list), format, out);
}

static int image_list_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct list_opts *o = opts;
	struct plan p;
	cleanup_buf struct buf out;
	CLEANUP(rows_deinit) struct rows rows = { .n = 0 };
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = operands->n > 0 ? err_set(e, CLI_MISUSE, "\"%.80s\": image list takes no arguments",
					  operands->v[0])
				: make_plan(o, &p, e);
	if (r == 0)
		r = read_rows(c, &rows, e);
	if (r < 0)
		return r;
	image_rows_sort(rows.v, rows.n, &p.by, p.descending);
	r = o->format == SHOW_TEXT ? format_table(&rows, &p, o, &out)
				   : format_json(&rows, o->format, &out);
	if (r == 0 && buf_len(&out) == 0) /* like rkt */
		r = buf_puts(&out, "\n");
	if (r < 0)
		return err_sys(e, r, "cannot print the list");
	cli_print(&out);
	fflush(stdout);
	return 0;
}

const struct command cmd_image_list = {
	.name = "list",
	.path = "image list",
	.usage = "[OPTIONS]",
	.summary = "list the images of the store",
	.description =
		"A line for each name of each image. The size is that of the image's blobs and of\n"
		"its rendered file system; what images share is counted for each.",
	COMMAND_FLAGS(flags, struct list_opts),
	.run = image_list_run,
};
