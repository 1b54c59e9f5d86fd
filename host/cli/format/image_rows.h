/* SPDX-License-Identifier: Apache-2.0 */
/* How `husk image list` shows the images of the store. Pure, but for the time zone. */
#ifndef HOST_CLI_FORMAT_IMAGE_ROWS_H
#define HOST_CLI_FORMAT_IMAGE_ROWS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/cli/format/table.h"
#include "images/images.h"
#include "lib/base/err.h"

/* Columns, and what can be sorted by. */
enum image_field {
	IMAGE_FIELD_ID,
	IMAGE_FIELD_NAME,
	IMAGE_FIELD_SIZE,
	IMAGE_FIELD_IMPORTTIME,
	IMAGE_FIELD_LASTUSED,
	IMAGE_FIELDS,
};

/* Which columns, in which order. */
struct image_columns {
	enum image_field v[IMAGE_FIELDS];
	size_t n;
};

/* Reads "id,name,...", each once. 0, or -EINVAL and @e. */
int image_columns_parse(const char *text, struct image_columns *ret, struct err *e);

/* Reads a list of fields to sort by: name, importtime, lastused, size. 0, or -EINVAL and @e. */
int image_sort_parse(const char *text, struct image_columns *ret, struct err *e);

/* Sorts @n rows by the fields of @by, the first counts most, in ascending order or the reverse. */
void image_rows_sort(struct listed_image *rows, size_t n, const struct image_columns *by,
		     bool descending);

/* Adds the header. Errors as table_add_row(). */
int image_rows_header(struct table *t, const struct image_columns *columns);

/*
 * Adds the rows of one image, one for each of its names: a short ID, sizes for people and relative
 * times, or with @full everything in full. Errors as table_add_row().
 */
int image_rows_add(struct table *t, const struct image_columns *columns,
		   const struct listed_image *row, bool full, int64_t now_ns);

/* The JSON object of one image, owned by the caller; NULL if memory is short. */
struct json_object *image_row_json(const struct listed_image *row);

#define SIZE_TEXT_MAX 24 /* "18446744073709551615" and a unit */

/* @bytes as rkt shows them: "0B", "9.5MiB", "126KiB"; one decimal below 10. */
void image_size_text(uint64_t bytes, char out[SIZE_TEXT_MAX]);

#endif
