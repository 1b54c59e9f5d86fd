/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `husk top` shows: looks at all pods, one after the other, and what has changed in between.
 * Pure.
 */
#ifndef HOST_CLI_FORMAT_TOP_H
#define HOST_CLI_FORMAT_TOP_H

#include <json-c/json_object.h>
#include <stddef.h>
#include <stdint.h>

#include "host/cli/format/table.h"
#include "lib/base/uuid.h"

#define TOP_TEXT_MAX 128 /* names in a row, and a NUL; what is longer ends with "~" */
#define TOP_COLUMNS  8

/* A pod at a moment. -1: not known, or no limit. */
struct top_row {
	char uuid[UUID_TEXT_LEN + 1];
	char name[TOP_TEXT_MAX], apps[TOP_TEXT_MAX]; /* apps: with commas in between */
	int64_t at_ns;                               /* when it was looked at, CLOCK_MONOTONIC */
	int64_t cpu_usec, memory, pids;              /* what it has used, and uses */
	int64_t cpu_millis, memory_limit;            /* what it may use */
	int64_t busy_permille;                       /* of one processor, since the look before */
};

/* Takes the numbers of @row out of @doc, the statistics of its pod; NULL: there are none. */
void top_count(struct top_row *row, struct json_object *doc);

/* Adds @name to the apps of @row. */
void top_add_app(struct top_row *row, const char *name);

/* Fills in how busy the @n pods of @rows were since @before, of @n_before; both are sorted. */
void top_compare(struct top_row *rows, size_t n, const struct top_row *before, size_t n_before);

enum top_order {
	TOP_BY_CPU,    /* the busiest first */
	TOP_BY_MEMORY, /* likewise of what they use */
	TOP_BY_PIDS,
	TOP_BY_NAME,
	TOP_BY_UUID, /* as top_compare() needs it */
	TOP_ORDERS,
};

/* "cpu", "memory", "pids", "name", "uuid"; -EINVAL. */
int top_order_find(const char *text, enum top_order *ret);

/* Those that are equal are in the order of their UUIDs. */
void top_sort(struct top_row *rows, size_t n, enum top_order by);

/* Adds a header and the @n rows to @t, which has TOP_COLUMNS. Errors as table_add_row(). */
int top_format(const struct top_row *rows, size_t n, struct table *t);

#endif
