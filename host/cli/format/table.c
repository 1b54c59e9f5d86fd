/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/table.h"

#include <errno.h>
#include <string.h>

#define TAB_WIDTH ((size_t)8)
#define GAP       ((size_t)2) /* between columns on terminals */

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
	if (r == 0) /* it gets no longer */
		str_copy_printable(t->cells.v[t->cells.n - 1], strlen(text) + 1, text);
	return r;
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

static size_t longest_cell(const struct table *t, size_t column)
{
	size_t longest = 0;
	for (size_t i = column; i < t->cells.n; i += t->n_columns)
		longest = MAX(longest, str_chars(t->cells.v[i]));
	return longest;
}

/* Width of a column in characters: its longest cell, one blank, up to the next tab stop. */
static size_t column_width(const struct table *t, size_t column)
{
	return (longest_cell(t, column) + 1 + TAB_WIDTH - 1) / TAB_WIDTH * TAB_WIDTH;
}

static int format_cell(const char *text, size_t width, struct buf *out)
{
	int r = buf_puts(out, text);
	for (size_t at = str_chars(text); r == 0 && at < width; at += TAB_WIDTH - at % TAB_WIDTH)
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

/* Cuts the widest columns until all fit into @width with the gaps between them. */
static void fit(size_t *widths, size_t n, size_t width)
{
	size_t sum = GAP * (n - 1);
	for (size_t c = 0; c < n; c++)
		sum += widths[c];
	for (; sum > width; sum--) {
		size_t widest = 0;
		for (size_t c = 1; c < n; c++)
			if (widths[c] > widths[widest])
				widest = c;
		if (widths[widest] <= TABLE_CUT_MIN)
			return;
		widths[widest]--;
	}
}

/* One line; blanks are held back until something follows them. */
static int format_line(char *const *cells, const size_t *widths, size_t n, struct buf *out)
{
	size_t blanks = 0;
	int r = 0;
	for (size_t c = 0; r == 0 && c < n; c++) {
		size_t len = str_chars(cells[c]), shown = MIN(len, widths[c]);
		for (; r == 0 && shown > 0 && blanks > 0; blanks--)
			r = buf_puts(out, " ");
		if (r == 0 && shown > 0)
			r = buf_append(out, cells[c],
				       str_chars_len(cells[c], shown < len ? shown - 1 : shown));
		if (r == 0 && shown < len)
			r = buf_puts(out, "~");
		blanks += widths[c] - shown + GAP;
	}
	return r < 0 ? r : buf_puts(out, "\n");
}

int table_format_width(const struct table *t, size_t width, struct buf *out)
{
	size_t widths[TABLE_COLUMNS_MAX];
	int r = 0;
	if (t->n_columns == 0)
		return 0;
	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = longest_cell(t, c);
	fit(widths, t->n_columns, width);
	for (size_t i = 0; r == 0 && i < t->cells.n; i += t->n_columns)
		r = format_line(t->cells.v + i, widths, t->n_columns, out);
	return r;
}
