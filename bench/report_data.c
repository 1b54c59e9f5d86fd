/* SPDX-License-Identifier: Apache-2.0 */
/* The reports for programs: JSON and CSV. */
#include <errno.h>
#include <json-c/json_object.h>
#include <stdio.h>
#include <string.h>

#include "bench/report.h"
#include "lib/base/json.h"

/* JSON with six digits that count, more than any clock here has. */
static struct json_object *number(double value)
{
	char text[32];
	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *text(const char *s)
{
	char clean[RESULTS_TEXT_MAX];
	str_copy_text(clean, sizeof(clean), s);
	return json_object_new_string(clean);
}

static struct json_object *json_columns(const struct results *r)
{
	struct json_object *list = json_object_new_array();
	for (size_t i = 0; list && i < r->n_columns; i++) {
		const struct column *c = &r->columns[i];
		struct json_object *o =
			json_make("name", text(c->name), "title", text(c->title), "emulated",
				  json_object_new_boolean(c->emulated), NULL);
		if (c->version[0] != '\0')
			(void)json_put(o, "version", text(c->version));
		if (c->kernel[0] != '\0')
			(void)json_put(o, "kernel", text(c->kernel));
		if (c->why[0] != '\0')
			(void)json_put(o, "missing", text(c->why));
		(void)json_append(list, o);
	}
	return list;
}

static struct json_object *json_cell(const struct results *r, const struct shown_row *row, size_t i)
{
	const struct cell *cell = &row->cells[i];
	struct json_object *o = json_make("contender", text(r->columns[i].name), NULL);
	struct json_object *values = json_object_new_array();
	for (size_t k = 0; values && k < cell->n; k++)
		(void)json_append(values, number(cell->v[k]));
	(void)json_put(o, "values", values);
	if (cell->n > 0) {
		struct stats s = stats_of(cell->v, cell->n);
		(void)json_put(o, "min", number(s.min));
		(void)json_put(o, "q1", number(s.q1));
		(void)json_put(o, "median", number(s.median));
		(void)json_put(o, "q3", number(s.q3));
		(void)json_put(o, "max", number(s.max));
	}
	double ratio;
	if (results_ratio(row, i, &ratio))
		(void)json_put(o, "ratio", number(ratio));
	if (cell->why[0] != '\0')
		(void)json_put(o, "missing", text(cell->why));
	return o;
}

static struct json_object *json_rows(const struct results *r)
{
	struct json_object *list = json_object_new_array();
	for (size_t i = 0; list && i < r->n_rows; i++) {
		const struct shown_row *row = &r->rows[i];
		struct json_object *cells = json_object_new_array();
		for (size_t k = 0; cells && k < r->n_columns; k++)
			(void)json_append(cells, json_cell(r, row, k));
		(void)json_append(
			list,
			json_make(
				"suite", text(row->suite), "id", text(row->row->id), "title",
				text(row->row->title), "unit", text(row->row->unit), "better",
				json_object_new_string(row->row->less_is_better ? "less" : "more"),
				"how", text(row->row->how), "cells", cells, NULL));
	}
	return list;
}

int report_json(const struct results *r, struct buf *out)
{
	struct json_object *facts = json_object_new_object();
	for (size_t i = 0; i < r->n_facts; i++)
		(void)json_put(facts, r->facts[i].key, text(r->facts[i].text));
	cleanup_json struct json_object *all =
		json_make("partial", json_object_new_boolean(r->partial), "rounds",
			  json_object_new_int((int)r->rounds), "facts", facts, "contenders",
			  json_columns(r), "rows", json_rows(r), NULL);
	size_t len = 0;
	const char *s = all ? json_object_to_json_string_length(
				      all,
				      JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
					      JSON_C_TO_STRING_NOSLASHESCAPE,
				      &len)
			    : NULL;
	if (!s)
		return -ENOMEM;
	int x = buf_append(out, s, len);
	return x < 0 ? x : buf_puts(out, "\n");
}

/* A field of RFC 4180: in quotes, which are doubled. */
static int csv_text(struct buf *out, const char *s)
{
	int r = buf_puts(out, "\"");
	for (; r == 0 && *s; s++) {
		r = buf_append(out, s, 1);
		if (r == 0 && *s == '"')
			r = buf_append(out, s, 1);
	}
	return r < 0 ? r : buf_puts(out, "\"");
}

static int csv_figures(const struct shown_row *row, size_t i, struct buf *out)
{
	const struct cell *cell = &row->cells[i];
	double ratio;
	int r = buf_printf(out, ",%zu", cell->n);
	if (r == 0 && cell->n == 0)
		return buf_puts(out, ",,,,,,");
	struct stats s = stats_of(cell->v, cell->n);
	if (r == 0)
		r = buf_printf(out, ",%.6g,%.6g,%.6g,%.6g,%.6g,", s.min, s.q1, s.median, s.q3,
			       s.max);
	if (r == 0 && results_ratio(row, i, &ratio))
		r = buf_printf(out, "%.6g", ratio);
	return r;
}

int report_csv(const struct results *r, struct buf *out)
{
	int x = buf_puts(out, "suite,row,unit,better,contender,n,min,q1,median,q3,max,ratio,"
			      "partial,missing\n");
	for (size_t i = 0; i < r->n_rows; i++)
		for (size_t k = 0; x == 0 && k < r->n_columns; k++) {
			const struct shown_row *row = &r->rows[i];
			x = buf_printf(out, "%s,%s,%s,%s,", row->suite, row->row->id,
				       row->row->unit, row->row->less_is_better ? "less" : "more");
			if (x == 0)
				x = csv_text(out, r->columns[k].title);
			if (x == 0)
				x = csv_figures(row, k, out);
			if (x == 0)
				x = buf_puts(out, r->partial ? ",yes," : ",no,");
			if (x == 0)
				x = csv_text(out, row->cells[k].why);
			if (x == 0)
				x = buf_puts(out, "\n");
		}
	return x;
}
