/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/top.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/format/stats.h"
#include "lib/base/json.h"
#include "lib/base/macros.h"
#include "lib/os/clock.h"

#define UUID_SHOWN_LEN 8 /* as `husk list` shows it */

/*
 * What a pod without a control group uses is what its processes do: of a VM all, of namespaces
 * nobody counts the apps.
 */
static void add_processes(struct top_row *row, struct json_object *doc)
{
	if (!json_member(doc, "vmm"))
		return;
	row->cpu_usec = row->memory = 0;
	json_object_object_foreach(doc, key, value)
	{
		(void)key;
		int64_t pss = stats_number(value, "pss_bytes");
		int64_t cpu = stats_number(value, "cpu_usec");
		int64_t memory = pss >= 0 ? pss : stats_number(value, "rss_bytes");
		/* Numbers of a stage1 that nobody here has written: no sum is beyond its type. */
		if (json_member(value, "pid") && cpu >= 0 && cpu < INT64_MAX - row->cpu_usec)
			row->cpu_usec += cpu;
		if (json_member(value, "pid") && memory >= 0 && memory < INT64_MAX - row->memory)
			row->memory += memory;
	}
}

void top_count(struct top_row *row, struct json_object *doc)
{
	struct json_object *total = json_member(doc, "total");
	row->cpu_usec = stats_number(total, "cpu_usec");
	row->memory = stats_number(total, "memory_bytes");
	row->pids = stats_number(total, "pids");
	row->cpu_millis = stats_number(total, "cpu_limit_millis");
	row->memory_limit = stats_number(total, "memory_limit");
	row->busy_permille = -1;
	if (doc && !total)
		add_processes(row, doc);
}

void top_add_app(struct top_row *row, const char *name)
{
	size_t len = strlen(row->apps);
	int n = snprintf(row->apps + len, sizeof(row->apps) - len, "%s%s", len ? "," : "", name);
	if ((size_t)n >= sizeof(row->apps) - len)
		row->apps[sizeof(row->apps) - 2] = '~';
}

/* -1 of a pod that has begun anew, or whose clock stood still. */
static int64_t busy(const struct top_row *now, const struct top_row *before)
{
	int64_t usec = (now->at_ns - before->at_ns) / (NS_PER_MS / 1000);
	int64_t used = now->cpu_usec - before->cpu_usec;
	if (now->cpu_usec < 0 || before->cpu_usec < 0 || used < 0 || usec <= 0 ||
	    __builtin_mul_overflow(used, 1000, &used))
		return -1;
	return used / usec;
}

void top_compare(struct top_row *rows, size_t n, const struct top_row *before, size_t n_before)
{
	size_t at = 0;
	for (size_t i = 0; i < n; i++) {
		while (at < n_before && strcmp(before[at].uuid, rows[i].uuid) < 0)
			at++;
		if (at < n_before && strcmp(before[at].uuid, rows[i].uuid) == 0)
			rows[i].busy_permille = busy(&rows[i], &before[at]);
	}
}

static const char *const orders[TOP_ORDERS] = {
	[TOP_BY_CPU] = "cpu",   [TOP_BY_MEMORY] = "memory", [TOP_BY_PIDS] = "pids",
	[TOP_BY_NAME] = "name", [TOP_BY_UUID] = "uuid",
};

/* The larger comes first; 0 of all in an order by text. */
static int64_t number_of(const struct top_row *row, enum top_order by)
{
	switch (by) {
	case TOP_BY_CPU:
		return row->busy_permille;
	case TOP_BY_MEMORY:
		return row->memory;
	case TOP_BY_PIDS:
		return row->pids;
	case TOP_BY_NAME:
	case TOP_BY_UUID:
	case TOP_ORDERS:
		break;
	}
	return 0;
}

static int compare(const void *a, const void *b, void *order)
{
	const struct top_row *x = a, *y = b;
	const enum top_order by = *(const enum top_order *)order;
	int64_t n = number_of(x, by), m = number_of(y, by);
	int r = (n < m) - (n > m);
	if (r == 0 && by == TOP_BY_NAME)
		r = strcmp(x->name, y->name);
	return r ? r : strcmp(x->uuid, y->uuid);
}

int top_order_find(const char *text, enum top_order *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (strcmp(orders[i], text) == 0) {
			*ret = (enum top_order)i;
			return 0;
		}
	return -EINVAL;
}

void top_sort(struct top_row *rows, size_t n, enum top_order by)
{
	if (n > 1)
		qsort_r(rows, n, sizeof(*rows), compare, &by);
}

static void percent(int64_t permille, char ret[STATS_CELL_MAX])
{
	if (permille < 0)
		snprintf(ret, STATS_CELL_MAX, "-");
	else
		snprintf(ret, STATS_CELL_MAX, "%" PRId64 ".%d", permille / 10,
			 (int)(permille % 10));
}

static int add_row(struct table *t, const struct top_row *r)
{
	char uuid[UUID_SHOWN_LEN + 1], cells[5][STATS_CELL_MAX];
	snprintf(uuid, sizeof(uuid), "%.*s", UUID_SHOWN_LEN, r->uuid);
	percent(r->busy_permille, cells[0]);
	stats_processors(r->cpu_millis, cells[1]);
	stats_size(r->memory, cells[2]);
	stats_size(r->memory_limit, cells[3]);
	stats_plain(r->pids, cells[4]);
	const char *row[TOP_COLUMNS] = { uuid,     cells[0], cells[1], cells[2],
					 cells[3], cells[4], r->name,  r->apps };
	return table_add_row(t, row);
}

int top_format(const struct top_row *rows, size_t n, struct table *t)
{
	static const char *const header[TOP_COLUMNS] = { "UUID",  "CPU%", "CPUS", "MEMORY",
							 "LIMIT", "PIDS", "NAME", "APPS" };
	int r = table_add_row(t, header);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_row(t, &rows[i]);
	return r;
}
