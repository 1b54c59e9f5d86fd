/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables with columns separated by tabs: tab stops every 8 characters, at least one tab between two
 * columns, the last cell of a row not padded (the format of rkt's listings).
 */
#ifndef HOST_CLI_FORMAT_TABLE_H
#define HOST_CLI_FORMAT_TABLE_H

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/str.h"

#define TABLE_COLUMNS_MAX 10 /* those of `husk list --full` */
#define TABLE_CUT_MIN     ((size_t)4)
#define TABLE_CELLS_MAX   ((size_t)4 * 1024 * 1024) /* 16,384 pods with 32 apps, 8 columns */

struct table {
	size_t n_columns;  /* 1 to TABLE_COLUMNS_MAX */
	struct strv cells; /* row by row */
};

/* An empty table of @n_columns (1 to TABLE_COLUMNS_MAX). Allocates nothing. */
void table_init(struct table *t, size_t n_columns);

/* Frees the cells. */
void table_deinit(struct table *t);

/*
 * Adds a row of n_columns cells. What is no printable UTF-8 becomes '?', so that nothing from an
 * image or another user's pod reaches the terminal as a control sequence. -E2BIG, -ENOMEM.
 */
int table_add_row(struct table *t, const char *const *cells);

/* Appends the text of the table to @out, one line per row. Errors as buf_append(). */
int table_format(const struct table *t, struct buf *out);

/*
 * The same for a terminal with lines of @width characters: two blanks between columns, and where
 * lines would be longer, the widest columns are cut, with "~" at the end of what is cut, down to
 * TABLE_CUT_MIN characters each. Nothing behind the last cell of a line that has something.
 */
int table_format_width(const struct table *t, size_t width, struct buf *out);

#endif
