/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/stats.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "host/cli/format/table.h"
#include "lib/base/json.h"
#include "lib/wire/agent.h"

#define PROCESSES_MAX    8  /* a pod of husk has at most four */
#define PROCESS_NAME_MAX 31 /* "supervisor" has ten bytes */
#define COLUMNS          8
#define CPUS_MAX         65536                      /* more than Linux knows */
#define ERROR_TEXT_MAX   ((size_t)4 * ERR_TEXT_MAX) /* of UTF-8 */

size_t stats_n_apps(struct json_object *doc)
{
	return json_object_array_length(json_member(doc, "apps"));
}

static struct json_object *get_app(struct json_object *doc, size_t i)
{
	return json_object_array_get_idx(json_member(doc, "apps"), i);
}

const char *stats_app_error(struct json_object *doc, size_t i)
{
	const char *text;
	return json_get_str(get_app(doc, i), "error", ERROR_TEXT_MAX, &text) == 0 ? text : NULL;
}

static int stats_check(struct json_object *doc)
{
	struct json_object *apps = json_member(doc, "apps");
	if (!apps || !json_object_is_type(apps, json_type_array) ||
	    json_object_array_length(apps) > AGENT_APPS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(apps); i++) {
		const char *name;
		int r = json_get_str(json_object_array_get_idx(apps, i), "name", AGENT_NAME_MAX,
				     &name);
		if (r < 0)
			return -EBADMSG;
	}
	return 0;
}

int stats_parse(const char *text, size_t len, struct json_object **ret, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	int r = json_parse(text, len, &doc);
	if (r == 0)
		r = stats_check(doc);
	if (r < 0)
		return err_set(e, r, "stage1 printed no statistics");
	*ret = TAKE_PTR(doc);
	return 0;
}

void stats_size(int64_t bytes, char ret[STATS_CELL_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;
	int64_t divisor = 1;
	if (bytes < 0) {
		snprintf(ret, STATS_CELL_MAX, "-");
		return;
	}
	while (unit + 1 < ARRAY_SIZE(units) && bytes / divisor >= 1024) {
		divisor *= 1024;
		unit++;
	}
	int64_t whole = bytes / divisor;
	int64_t tenth = bytes % divisor / (MAX(divisor / 10, (int64_t)1));
	if (unit > 0 && whole < 10)
		snprintf(ret, STATS_CELL_MAX, "%lld.%lld%s", (long long)whole,
			 (long long)MIN(tenth, (int64_t)9), units[unit]);
	else
		snprintf(ret, STATS_CELL_MAX, "%lld%s", (long long)whole, units[unit]);
}

void stats_seconds(int64_t usec, char ret[STATS_CELL_MAX])
{
	if (usec < 0)
		snprintf(ret, STATS_CELL_MAX, "-");
	else
		snprintf(ret, STATS_CELL_MAX, "%lld.%02ds", (long long)(usec / 1000000),
			 (int)(usec % 1000000 / 10000));
}

void stats_plain(int64_t n, char ret[STATS_CELL_MAX])
{
	if (n < 0)
		snprintf(ret, STATS_CELL_MAX, "-");
	else
		snprintf(ret, STATS_CELL_MAX, "%lld", (long long)n);
}

int64_t stats_number(struct json_object *obj, const char *key)
{
	int64_t n;
	return json_get_int(obj, key, 0, INT64_MAX, &n) < 0 ? -1 : n;
}

void stats_processors(int64_t millis, char ret[STATS_CELL_MAX])
{
	if (millis < 0)
		snprintf(ret, STATS_CELL_MAX, "-");
	else
		snprintf(ret, STATS_CELL_MAX, "%g", (double)millis / 1000);
}

/* What a row has; -1: a dash. */
struct row {
	int64_t cpu_usec, cpu_millis, memory, memory_limit, pids, read, written;
};

static int add_row(struct table *t, const char *name, const struct row *r)
{
	char cells[COLUMNS - 1][STATS_CELL_MAX];
	stats_seconds(r->cpu_usec, cells[0]);
	stats_processors(r->cpu_millis, cells[1]);
	stats_size(r->memory, cells[2]);
	stats_size(r->memory_limit, cells[3]);
	stats_plain(r->pids, cells[4]);
	stats_size(r->read, cells[5]);
	stats_size(r->written, cells[6]);
	const char *row[COLUMNS] = { name,     cells[0], cells[1], cells[2],
				     cells[3], cells[4], cells[5], cells[6] };
	return table_add_row(t, row);
}

/* Of an app, or of all of the pod. */
static int add_group(struct table *t, const char *name, struct json_object *obj)
{
	const struct row row = { .cpu_usec = stats_number(obj, "cpu_usec"),
				 .cpu_millis = stats_number(obj, "cpu_limit_millis"),
				 .memory = stats_number(obj, "memory_bytes"),
				 .memory_limit = stats_number(obj, "memory_limit"),
				 .pids = stats_number(obj, "pids"),
				 .read = stats_number(obj, "io_read_bytes"),
				 .written = stats_number(obj, "io_write_bytes") };
	return add_row(t, name, &row);
}

/* What a guest has of its memory in use, for itself as well, that no app could have instead. */
static int add_guest(struct table *t, struct json_object *guest)
{
	int64_t total = stats_number(guest, "memory_total_bytes");
	int64_t available = stats_number(guest, "memory_available_bytes");
	int64_t cpus = stats_number(guest, "cpus");
	const struct row row = { .cpu_usec = -1,
				 .cpu_millis = cpus < 0 || cpus > CPUS_MAX ? -1 : cpus * 1000,
				 .memory = available < 0 || available > total ? -1
									      : total - available,
				 .memory_limit = total,
				 .pids = -1,
				 .read = -1,
				 .written = -1 };
	return add_row(t, "[guest]", &row);
}

static int add_app(struct table *t, struct json_object *app)
{
	const char *name = "";
	json_get_str(app, "name", AGENT_NAME_MAX, &name);
	return add_group(t, name, app);
}

static bool is_process(const char *key, struct json_object *value)
{
	return json_object_is_type(value, json_type_object) && json_member(value, "pid") &&
	       str_is_printable(key, PROCESS_NAME_MAX);
}

/* Whatever processes the stage1 tells of; in brackets, which no app has in its name. */
static int add_processes(struct table *t, struct json_object *doc)
{
	char name[PROCESS_NAME_MAX + sizeof("[]")];
	int r = 0, n = 0;
	json_object_object_foreach(doc, key, value)
	{
		if (r < 0 || n == PROCESSES_MAX || !is_process(key, value))
			continue;
		const char *memory = json_member(value, "pss_bytes") ? "pss_bytes" : "rss_bytes";
		const struct row row = { stats_number(value, "cpu_usec"),
					 -1,
					 stats_number(value, memory),
					 -1,
					 -1,
					 -1,
					 -1 };
		snprintf(name, sizeof(name), "[%s]", key);
		r = add_row(t, name, &row);
		n++;
	}
	return r;
}

int stats_format(struct json_object *doc, bool host, struct buf *out)
{
	static const char *const header[COLUMNS] = { "NAME",  "CPU",  "CPUS", "MEMORY",
						     "LIMIT", "PIDS", "READ", "WRITE" };
	CLEANUP(table_deinit) struct table t;
	table_init(&t, COLUMNS);
	int r = table_add_row(&t, header);
	for (size_t i = 0; r == 0 && i < stats_n_apps(doc); i++)
		r = add_app(&t, get_app(doc, i));
	if (r == 0 && host && json_member(doc, "guest"))
		r = add_guest(&t, json_member(doc, "guest"));
	if (r == 0 && host && json_member(doc, "total"))
		r = add_group(&t, "[pod]", json_member(doc, "total"));
	if (r == 0 && host)
		r = add_processes(&t, doc);
	return r < 0 ? r : table_format(&t, out);
}
