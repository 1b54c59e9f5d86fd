/* SPDX-License-Identifier: Apache-2.0 */
/* husk image list */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/format/image_rows.h"
#include "host/cli/format/show.h"
#include "host/cli/images.h"
#include "images/images.h"
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

static void tell_damaged(void *ctx, const char *why)
{
	const struct cli *c = ctx;
	cli_message(c, "%s", why);
}

static int read_list(struct cli *c, struct store_list *l, struct err *e)
{
	cleanup_store struct store *s = NULL;
	int r = cli_open_store(c, &s, e);
	return r == 0 ? store_list_read(s, tell_damaged, c, l, e) : r;
}

static int format_table(const struct store_list *l, const struct plan *p, const struct list_opts *o,
			struct buf *out)
{
	CLEANUP(table_deinit) struct table t;
	table_init(&t, p->columns.n);
	int64_t now = clock_realtime_ns();
	int r = o->no_legend ? 0 : image_rows_header(&t, &p->columns);
	for (size_t i = 0; r == 0 && i < l->n; i++)
		r = image_rows_add(&t, &p->columns, &l->v[i], o->full, now);
	return r < 0 ? r : table_format(&t, out);
}

static int format_json(const struct store_list *l, enum show_format format, struct buf *out)
{
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < l->n; i++)
		if (json_append(list, image_row_json(&l->v[i])) < 0)
			return -ENOMEM;
	return show_new_json(TAKE_PTR(list), format, out);
}

static int image_list_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct list_opts *o = opts;
	struct plan p;
	cleanup_buf struct buf out;
	CLEANUP(store_list_deinit) struct store_list l = STORE_LIST_INIT;
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = operands->n > 0 ? err_set(e, CLI_MISUSE, "\"%.80s\": image list takes no arguments",
					  operands->v[0])
				: make_plan(o, &p, e);
	if (r == 0)
		r = read_list(c, &l, e);
	if (r < 0)
		return r;
	image_rows_sort(l.v, l.n, &p.by, p.descending);
	r = o->format == SHOW_TEXT ? format_table(&l, &p, o, &out)
				   : format_json(&l, o->format, &out);
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
