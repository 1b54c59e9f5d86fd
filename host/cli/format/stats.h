/* SPDX-License-Identifier: Apache-2.0 */
/* How `husk stats` shows what the stats entrypoint of stage1 has printed. Pure. */
#ifndef HOST_CLI_FORMAT_STATS_H
#define HOST_CLI_FORMAT_STATS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define STATS_CELL_MAX 24 /* the largest number of seconds or bytes, its unit, a NUL */

/*
 * Parses what stage1 printed and checks its form: a list of at most AGENT_APPS_MAX apps, each with
 * a name. 0 and *ret, owned by the caller, or -errno and @e.
 */
int stats_parse(const char *text, size_t len, struct json_object **ret, struct err *e);

/*
 * Appends the table of @doc: a row for each app, and with @host for the processes of the pod on the
 * host. Errors as table_format().
 */
int stats_format(struct json_object *doc, bool host, struct buf *out);

/* Why app number @i of @doc has no numbers: a text borrowed from @doc, or NULL if it has. */
const char *stats_app_error(struct json_object *doc, size_t i);

/* The number of apps of @doc. */
size_t stats_n_apps(struct json_object *doc);

/* A number of @obj, which may be no object and may be NULL; -1 if it has none such. */
int64_t stats_number(struct json_object *obj, const char *key);

/*
 * @bytes like "512B", "9.5MiB", "128MiB"; @usec like "1.25s"; @millis of a processor like "0.25";
 * @n as it is; "-" if it is negative.
 */
void stats_size(int64_t bytes, char ret[STATS_CELL_MAX]);
void stats_seconds(int64_t usec, char ret[STATS_CELL_MAX]);
void stats_processors(int64_t millis, char ret[STATS_CELL_MAX]);
void stats_plain(int64_t n, char ret[STATS_CELL_MAX]);

#endif
