/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/image_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/format/when.h"
#include "lib/base/json.h"

#define ID_LEN       19 /* "sha512-" and 12 hex digits */
#define CELL_MAX     ((size_t)256)
#define UNIT_DECIMAL 9.95 /* below that many of a unit a decimal is shown; then it is 10 */

static const struct {
	const char *name, *title;
	bool sortable;
} fields[IMAGE_FIELDS] = {
	[IMAGE_FIELD_ID] = { "id", "ID", false },
	[IMAGE_FIELD_NAME] = { "name", "NAME", true },
	[IMAGE_FIELD_SIZE] = { "size", "SIZE", true },
	[IMAGE_FIELD_IMPORTTIME] = { "importtime", "IMPORT TIME", true },
	[IMAGE_FIELD_LASTUSED] = { "lastused", "LAST USED", true },
};

static int find_field(const char *text, size_t len, enum image_field *ret)
{
	for (enum image_field f = 0; f < IMAGE_FIELDS; f++) {
		if (strlen(fields[f].name) == len && memcmp(fields[f].name, text, len) == 0) {
			*ret = f;
			return 0;
		}
	}
	return -EINVAL;
}

static bool contains(const struct image_columns *columns, enum image_field f)
{
	for (size_t i = 0; i < columns->n; i++)
		if (columns->v[i] == f)
			return true;
	return false;
}

static int parse_fields(const char *flag, const char *text, bool sortable, const char *known,
			struct image_columns *ret, struct err *e)
{
	*ret = (struct image_columns){ .n = 0 };
	for (;;) {
		size_t len = strcspn(text, ",");
		int shown = (int)MIN(len, (size_t)80);
		enum image_field f;
		if (find_field(text, len, &f) < 0 || (sortable && !fields[f].sortable))
			return err_set(e, -EINVAL, "--%s: unknown field \"%.*s\" (%s)", flag, shown,
				       text, known);
		if (contains(ret, f))
			return err_set(e, -EINVAL, "--%s: \"%.*s\" is named twice", flag, shown,
				       text);
		ret->v[ret->n++] = f;
		if (text[len] == '\0')
			return 0;
		text += len + 1;
	}
}

int image_columns_parse(const char *text, struct image_columns *ret, struct err *e)
{
	return parse_fields("fields", text, false, "id, name, size, importtime, lastused", ret, e);
}

int image_sort_parse(const char *text, struct image_columns *ret, struct err *e)
{
	return parse_fields("sort", text, true, "name, size, importtime, lastused", ret, e);
}

struct order {
	const struct image_columns *by;
	bool descending;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static const char *newest_name(const struct listed_image *row)
{
	return row->names.n > 0 ? row->names.v[row->names.n - 1] : "";
}

static int compare_field(const struct listed_image *a, const struct listed_image *b,
			 enum image_field f)
{
	switch (f) {
	case IMAGE_FIELD_NAME:
		return strcmp(newest_name(a), newest_name(b));
	case IMAGE_FIELD_SIZE:
		return compare_numbers(a->size, b->size);
	case IMAGE_FIELD_IMPORTTIME:
		return compare_numbers((uint64_t)a->imported_ns, (uint64_t)b->imported_ns);
	case IMAGE_FIELD_LASTUSED:
		return compare_numbers((uint64_t)a->last_use_ns, (uint64_t)b->last_use_ns);
	case IMAGE_FIELD_ID:
	case IMAGE_FIELDS:
	default:
		return strcmp(a->id, b->id);
	}
}

static int compare_rows(const void *x, const void *y, void *ctx)
{
	const struct order *order = ctx;
	int r = 0;
	for (size_t i = 0; r == 0 && i < order->by->n; i++)
		r = compare_field(x, y, order->by->v[i]);
	if (r == 0) /* so that the order is always the same */
		r = compare_field(x, y, IMAGE_FIELD_ID);
	return order->descending ? -r : r;
}

void image_rows_sort(struct listed_image *rows, size_t n, const struct image_columns *by,
		     bool descending)
{
	struct order order = { by, descending };
	if (n > 0)
		qsort_r(rows, n, sizeof(*rows), compare_rows, &order);
}

int image_rows_header(struct table *t, const struct image_columns *columns)
{
	const char *cells[IMAGE_FIELDS];
	for (size_t i = 0; i < columns->n; i++)
		cells[i] = fields[columns->v[i]].title;
	return table_add_row(t, cells);
}

void image_size_text(uint64_t bytes, char out[SIZE_TEXT_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;
	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	/* One decimal, unless that is a zero too much: 9.5MiB, 10MiB. */
	snprintf(out, SIZE_TEXT_MAX, unit > 0 && value < UNIT_DECIMAL ? "%.1f%s" : "%.0f%s", value,
		 units[unit]);
}

/* The text of one cell. */
static void format_cell(const struct listed_image *row, const char *name, enum image_field f,
			bool full, int64_t now_ns, char out[CELL_MAX])
{
	int64_t time = f == IMAGE_FIELD_LASTUSED ? row->last_use_ns : row->imported_ns;
	switch (f) {
	case IMAGE_FIELD_ID:
		str_copy_text(out, full ? CELL_MAX : ID_LEN + 1, row->id);
		return;
	case IMAGE_FIELD_NAME:
		str_copy_text(out, CELL_MAX, name);
		return;
	case IMAGE_FIELD_SIZE:
		if (full)
			snprintf(out, CELL_MAX, "%" PRIu64, row->size);
		else
			image_size_text(row->size, out);
		return;
	case IMAGE_FIELD_IMPORTTIME:
	case IMAGE_FIELD_LASTUSED:
	case IMAGE_FIELDS:
	default:
		if (full)
			when_absolute(time, out);
		else
			when_relative(time, now_ns, out);
	}
}

/* What a row is made of. */
struct row_format {
	const struct image_columns *columns;
	bool full;
	int64_t now_ns;
};

static int add_row(struct table *t, const struct row_format *f, const struct listed_image *row,
		   const char *name)
{
	char text[IMAGE_FIELDS][CELL_MAX];
	const char *cells[IMAGE_FIELDS];
	for (size_t i = 0; i < f->columns->n; i++) {
		format_cell(row, name, f->columns->v[i], f->full, f->now_ns, text[i]);
		cells[i] = text[i];
	}
	return table_add_row(t, cells);
}

int image_rows_add(struct table *t, const struct image_columns *columns,
		   const struct listed_image *row, bool full, int64_t now_ns)
{
	const struct row_format f = { columns, full, now_ns };
	const struct strv *names = &row->names;
	int r = names->n == 0 ? add_row(t, &f, row, "") : 0; /* its names have moved */
	for (size_t k = names->n; r == 0 && k-- > 0;)
		r = add_row(t, &f, row, names->v[k]);
	return r;
}

struct json_object *image_row_json(const struct listed_image *row)
{
	cleanup_json struct json_object *o = json_object_new_object();
	if (json_put_str(o, "id", row->id) < 0 || json_put_str(o, "name", newest_name(row)) < 0 ||
	    json_put_strv(o, "names", &row->names) < 0 ||
	    json_put_int(o, "import_time", row->imported_ns) < 0 ||
	    json_put_int(o, "last_used_time", row->last_use_ns) < 0 ||
	    json_put_int(o, "size", (int64_t)row->size) < 0)
		return NULL;
	return TAKE_PTR(o);
}
