/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/table.h"

#include <errno.h>
#include <string.h>

#define TAB_WIDTH ((size_t)8)

void table_init(struct table *t, size_t n_columns)
{
	t->n_columns = n_columns;
	strv_init(&t->cells, TABLE_CELLS_MAX);
}

void table_deinit(struct table *t)
{
	strv_deinit(&t->cells);
}

static int add_cell(struct table *t, const char *text)
{
	int r = strv_add(&t->cells, text);
	if (r < 0)
		return r;
	for (char *c = t->cells.v[t->cells.n - 1]; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	return 0;
}

int table_add_row(struct table *t, const char *const *cells)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		int r = add_cell(t, cells[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Width of a column in characters: its longest cell, one blank, up to the next tab stop. */
static size_t column_width(const struct table *t, size_t column)
{
	size_t longest = 0;
	for (size_t i = column; i < t->cells.n; i += t->n_columns)
		longest = MAX(longest, strlen(t->cells.v[i]));
	return (longest + 1 + TAB_WIDTH - 1) / TAB_WIDTH * TAB_WIDTH;
}

static int format_cell(const char *text, size_t width, struct buf *out)
{
	int r = buf_puts(out, text);
	for (size_t at = strlen(text); r == 0 && at < width; at += TAB_WIDTH - at % TAB_WIDTH)
		r = buf_puts(out, "\t");
	return r;
}

int table_format(const struct table *t, struct buf *out)
{
	size_t widths[TABLE_COLUMNS_MAX];
	if (t->n_columns == 0)
		return 0;
	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = column_width(t, c);
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t column = i % t->n_columns;
		bool last = column + 1 == t->n_columns;
		int r = format_cell(t->cells.v[i], last ? 0 : widths[column], out);
		if (r == 0 && last)
			r = buf_puts(out, "\n");
		if (r < 0)
			return r;
	}
	return 0;
}
