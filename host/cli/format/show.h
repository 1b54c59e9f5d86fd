/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How `husk list`, `husk status` and `husk events` show pods: text and JSON. Pure, but for the time
 * zone.
 */
#ifndef HOST_CLI_FORMAT_SHOW_H
#define HOST_CLI_FORMAT_SHOW_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/cli/flags/flags.h"
#include "host/cli/format/table.h"
#include "host/events/event_state.h"
#include "host/pod/info.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"

enum show_format {
	SHOW_TEXT,
	SHOW_JSON,
	SHOW_JSON_PRETTY,
};

/* Longest output: POD_LIST_MAX pods of 4 KiB; or one with all the notes that its apps may have. */
#define SHOW_OUTPUT_MAX ((size_t)64 * 1024 * 1024)

/* --format of a struct opts with this member, an enum show_format; and its setter. */
#define FLAG_FORMAT(type, help_) \
	FLAG_AT("format", "json|json-pretty", show_set_format, type, format, help_)
int show_set_format(void *opts, const struct flag *f, const char *value, struct err *e);

/*
 * Of a listing: as rkt's, with the pod's name behind it; rkt's with everything in full; a
 * terminal's.
 */
enum show_layout {
	SHOW_SHORT,
	SHOW_FULL,
	SHOW_NARROW,
	SHOW_LAYOUT_COUNT_,
};

/* How many columns the listing has. */
size_t show_list_columns(enum show_layout layout);

/* Adds the header. Errors as table_add_row(). */
int show_list_header(struct table *t, enum show_layout layout);

/*
 * Adds the rows of one pod, one per app: short UUIDs, image IDs and relative times, or with
 * SHOW_FULL everything in full. Errors as table_add_row().
 */
int show_list_pod(struct table *t, const struct pod_info *info, enum show_layout layout,
		  int64_t now_ns);

/* Appends the lines of `husk status`. Errors as buf_append(). */
int show_status(const struct pod_info *info, struct buf *out);

/* Appends the lines of `husk app status`. Errors as buf_append(). */
int show_app(const struct app_info *app, struct buf *out);

/*
 * The JSON object of one app of the pod @info, and the list of those of a pod, as husk-json(7) has
 * them; @data_dir is the path of the data directory. As below.
 */
struct json_object *show_app_json(const struct pod_info *info, const struct app_info *app,
				  const char *data_dir);
struct json_object *show_apps_json(const struct pod_info *info, const char *data_dir);

/* The JSON object of one pod, owned by the caller; NULL if memory is short. */
struct json_object *show_pod_json(const struct pod_info *info, const char *data_dir);

/* The JSON object of one event of the pod @pod. As above. */
struct json_object *show_event_json(const struct uuid *pod, const struct pod_event *ev);

/* The JSON object that stands between what happened before @now_ns and what happens. As above. */
struct json_object *show_live_json(int64_t now_ns);

/* Appends @obj in @format (not SHOW_TEXT) and a newline. Errors as buf_append(). */
int show_json(struct json_object *obj, enum show_format format, struct buf *out);

/* The same; @obj is taken over, and memory was short if it is NULL. */
int show_new_json(struct json_object *obj, enum show_format format, struct buf *out);

/*
 * Appends the JSON document @text of @len bytes, written anew: it may hold anything between its
 * words. Errors as json_parse() and buf_append().
 */
int show_manifest(const char *text, size_t len, bool pretty, struct buf *out);

#endif
