/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/show.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "host/cli/format/when.h"
#include "host/pod/networks.h"
#include "lib/base/json.h"
#include "lib/wire/stage1.h"

/* A name, "ip4=", an address, and what is between them, as often as there can be addresses. */
#define NETWORKS_TEXT_MAX \
	((size_t)NET_INTERFACES_MAX * NET_ADDRESSES_MAX * (NET_INFO_NAME_MAX + NET_IP_TEXT_MAX + 8))

#define SHORT_UUID_LEN 8
#define SHORT_ID_LEN   19 /* "sha512-" and 12 digits: all that rkt shows in any list */

enum column {
	COL_UUID,
	COL_APP,
	COL_IMAGE_NAME,
	COL_IMAGE_ID,
	COL_STATE,
	COL_CREATED,
	COL_STARTED,
	COL_NETWORKS,
	COL_NAME,
	COL_FLAVOR,
	COL_COUNT_,
};

/*
 * Which columns there are, in which order: those of rkt, which scripts count from the left, and in
 * the long list, which they take apart from its end, from the right.
 */
static const struct {
	size_t n;
	enum column columns[COL_COUNT_];
} layouts[SHOW_LAYOUT_COUNT_] = {
	[SHOW_SHORT] = { 9,
			 { COL_UUID, COL_APP, COL_IMAGE_NAME, COL_STATE, COL_CREATED, COL_STARTED,
			   COL_NETWORKS, COL_NAME, COL_FLAVOR } },
	[SHOW_FULL] = { 10,
			{ COL_UUID, COL_APP, COL_IMAGE_NAME, COL_IMAGE_ID, COL_NAME, COL_FLAVOR,
			  COL_STATE, COL_CREATED, COL_STARTED, COL_NETWORKS } },
	[SHOW_NARROW] = { 6,
			  { COL_UUID, COL_NAME, COL_APP, COL_IMAGE_NAME, COL_STATE, COL_CREATED } },
};

int show_set_format(void *opts, const struct flag *f, const char *value, struct err *e)
{
	enum show_format *format = (enum show_format *)(void *)((char *)opts + f->offset);
	if (!*value)
		*format = SHOW_TEXT;
	else if (strcmp(value, "json") == 0)
		*format = SHOW_JSON;
	else if (strcmp(value, "json-pretty") == 0)
		*format = SHOW_JSON_PRETTY;
	else
		return err_set(e, -EINVAL, "invalid format \"%.40s\" (json or json-pretty)", value);
	return 0;
}

size_t show_list_columns(enum show_layout layout)
{
	return layouts[layout].n;
}

/* Adds a row of those of all the cells that the layout has. */
static int add_row(struct table *t, const char *const cells[COL_COUNT_], enum show_layout layout)
{
	const char *row[COL_COUNT_];
	for (size_t i = 0; i < layouts[layout].n; i++)
		row[i] = cells[layouts[layout].columns[i]];
	return table_add_row(t, row);
}

int show_list_header(struct table *t, enum show_layout layout)
{
	static const char *const header[COL_COUNT_] = { "UUID",     "APP",      "IMAGE NAME",
							"IMAGE ID", "STATE",    "CREATED",
							"STARTED",  "NETWORKS", "NAME",
							"FLAVOR" };
	return add_row(t, header, layout);
}

static void show_time(int64_t then_ns, int64_t now_ns, bool full, char out[WHEN_TEXT_MAX])
{
	if (then_ns == 0)
		out[0] = '\0';
	else if (full)
		when_absolute(then_ns, out);
	else
		when_relative(then_ns, now_ns, out);
}

static int add_address(void *ctx, const char *net, bool is_ipv6, const char *ip)
{
	struct buf *out = ctx;
	return buf_printf(out, "%s%s:ip%d=%s", buf_len(out) > 0 ? ", " : "", net, is_ipv6 ? 6 : 4,
			  ip);
}

/* The addresses as rkt shows them: "default:ip4=172.16.28.2, ...". Errors as buf_append(). */
static int show_networks(const struct pod_info *info, struct buf *out)
{
	buf_init(out, NETWORKS_TEXT_MAX);
	int r = pod_networks_each_ip(info->networks, add_address, out);
	return r == 0 ? buf_append(out, "", 1) : r;
}

int show_list_pod(struct table *t, const struct pod_info *info, enum show_layout layout,
		  int64_t now_ns)
{
	bool full = layout == SHOW_FULL;
	cleanup_buf struct buf networks;
	char uuid[UUID_TEXT_LEN + 1], id[POD_IMAGE_ID_MAX + 1];
	char created[WHEN_TEXT_MAX], started[WHEN_TEXT_MAX];
	show_time(info->created_ns, now_ns, full, created);
	show_time(info->started_ns, now_ns, full, started);
	snprintf(uuid, sizeof(uuid), "%.*s", full ? UUID_TEXT_LEN : SHORT_UUID_LEN,
		 info->uuid.text);
	int r = show_networks(info, &networks);
	if (r < 0)
		return r;
	const char *row[COL_COUNT_] = { uuid,
					"-",
					"-",
					"-",
					pod_state_name(info->state),
					created,
					started,
					buf_data(&networks),
					info->name,
					info->flavor };
	if (info->n_apps == 0)
		return add_row(t, row, layout);
	for (size_t i = 0; i < info->n_apps; i++) {
		const struct app_info *app = &info->apps[i];
		snprintf(id, sizeof(id), "%.*s", SHORT_ID_LEN, app->image_id);
		row[COL_APP] = app->name;
		row[COL_IMAGE_NAME] = app->image_name[0] ? app->image_name : "--";
		row[COL_IMAGE_ID] = id;
		r = add_row(t, row, layout);
		if (r < 0)
			return r;
		/* The pod's own columns stand in its first row only. */
		row[COL_UUID] = row[COL_STATE] = row[COL_CREATED] = row[COL_STARTED] =
			row[COL_NETWORKS] = row[COL_NAME] = row[COL_FLAVOR] = "";
	}
	return 0;
}

/* A line "KEYNAME=..." unless the exit code says all. */
static int show_reason(const char *key, const char *name, const struct app_info *app,
		       struct buf *out)
{
	enum app_end end = app_end_of(app);
	if (end == APP_END_NONE || end == APP_END_COMPLETED ||
	    (end == APP_END_FAILED && !*app->why.message))
		return 0;
	int r = buf_printf(out, "%s%s=%s", key, name, app_end_name(end));
	if (r == 0 && end == APP_END_SIGNALED)
		r = buf_printf(out, " (%d)", app->why.signal);
	if (r == 0 && app->why.message[0])
		r = buf_printf(out, ": %s", app->why.message);
	return r < 0 ? r : buf_puts(out, "\n");
}

/* The lines that only a pod has that runs or ran. */
static int show_run(const struct pod_info *info, struct buf *out)
{
	bool ended = info->state == POD_STATE_EXITED || info->state == POD_STATE_EXITED_GARBAGE;
	int r = 0;
	if (info->pid > 0)
		r = buf_printf(out, "pid=%d\n", (int)info->pid);
	if (r == 0)
		r = buf_printf(out, "exited=%s\n", ended ? "true" : "false");
	if (r == 0 && info->suspended)
		r = buf_puts(out, "suspended=true\n");
	if (r == 0 && info->disk_full)
		r = buf_puts(out, "disk=full\n");
	for (size_t i = 0; r == 0 && info->state != POD_STATE_RUNNING && i < info->n_apps; i++)
		if (info->apps[i].has_exit_code)
			r = buf_printf(out, "app-%s=%d\n", info->apps[i].name,
				       info->apps[i].exit_code);
	for (size_t i = 0; r == 0 && i < info->n_apps; i++)
		r = show_reason("reason-", info->apps[i].name, &info->apps[i], out);
	return r;
}

static int show_networks_line(const struct pod_info *info, struct buf *out)
{
	cleanup_buf struct buf networks;
	int r = show_networks(info, &networks);
	return r == 0 ? buf_printf(out, "networks=%s\n", buf_data(&networks)) : r;
}

int show_status(const struct pod_info *info, struct buf *out)
{
	char when[WHEN_TEXT_MAX];
	int r = buf_printf(out, "state=%s\n", pod_state_name(info->state));
	if (r == 0 && info->name[0])
		r = buf_printf(out, "name=%s\n", info->name);
	if (r == 0 && info->flavor[0])
		r = buf_printf(out, "flavor=%s\n", info->flavor);
	if (r == 0 && info->created_ns > 0) {
		when_absolute(info->created_ns, when);
		r = buf_printf(out, "created=%s\n", when);
	}
	if (r == 0 && info->started_ns > 0) {
		when_absolute(info->started_ns, when);
		r = buf_printf(out, "started=%s\n", when);
	}
	if (r == 0 && (info->state == POD_STATE_RUNNING || info->state == POD_STATE_EXITED))
		r = show_networks_line(info, out);
	if (r == 0 && (info->state == POD_STATE_RUNNING || info->state == POD_STATE_DELETING ||
		       pod_state_is_after_run(info->state)))
		r = show_run(info, out);
	return r;
}

/* Adds a time unless it is unknown. */
static int put_time(struct json_object *obj, const char *key, int64_t ns)
{
	char when[WHEN_TEXT_MAX];
	if (ns <= 0)
		return 0;
	when_rfc3339(ns, when);
	return json_put_str(obj, key, when);
}

/* Adds the path of a file of the pod if it is there. */
static int put_path(struct json_object *obj, const char *key, const struct pod_info *info,
		    const char *data_dir, const char *dir, const char *name, bool there)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/pods/%s/%s/%s%s", data_dir,
			 pod_phase_name(info->phase), info->uuid.text, dir, name);
	if (!there || n < 0 || (size_t)n >= sizeof(path) || !str_is_utf8(path))
		return 0;
	return json_put_str(obj, key, path);
}

/* How the app ended. */
static int put_end(struct json_object *obj, const struct app_info *app)
{
	const char *reason = app_end_name(app_end_of(app));
	int r = app->has_exit_code ? json_put_int(obj, "exit_code", app->exit_code) : 0;
	if (r == 0 && app->why.signal > 0)
		r = json_put_int(obj, "signal", app->why.signal);
	if (r == 0 && reason)
		r = json_put_str(obj, "reason", reason);
	if (r == 0 && app->why.message[0])
		r = json_put_str(obj, "message", app->why.message);
	return r == 0 && app->oom ? json_put_bool(obj, "oom_killed", true) : r;
}

static int put_tags(struct json_object *obj, const struct pod_tags *tags)
{
	int r = 0;
	if (tags->annotations.n > 0)
		r = json_put(obj, "user_annotations", json_pairs_strv(&tags->annotations));
	if (r == 0 && tags->labels.n > 0)
		r = json_put(obj, "user_labels", json_pairs_strv(&tags->labels));
	return r;
}

/* rkt has the directory of the host, too: here there is none. */
static int put_mounts(struct json_object *obj, const struct volume_mounts *m)
{
	if (m->n == 0)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < m->n; i++) {
		const struct volume_mount *one = &m->v[i];
		if (json_append(list, json_make("name", json_object_new_string(one->volume),
						"container_path", json_object_new_string(one->path),
						"read_only",
						json_object_new_boolean(one->read_only), NULL)) < 0)
			return -ENOMEM;
	}
	return json_put(obj, "mounts", TAKE_PTR(list));
}

struct json_object *show_app_json(const struct pod_info *info, const struct app_info *app,
				  const char *data_dir)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", app->name) < 0 ||
	    json_put_str(obj, "state", app_state_name(app->state)) < 0 ||
	    put_time(obj, "created_at", app->created_ns) < 0 ||
	    put_time(obj, "started_at", app->started_ns) < 0 ||
	    put_time(obj, "finished_at", app->finished_ns) < 0 || put_end(obj, app) < 0 ||
	    json_put_str(obj, "image_id", app->image_id) < 0 ||
	    (app->image_name[0] && str_is_utf8(app->image_name) &&
	     json_put_str(obj, "image_name", app->image_name) < 0) ||
	    put_path(obj, "log_path", info, data_dir, POD_DIR_LOGS "/", app->name, app->has_log) <
		    0 ||
	    put_mounts(obj, &app->mounts) < 0 || put_tags(obj, &app->tags) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

struct json_object *show_apps_json(const struct pod_info *info, const char *data_dir)
{
	cleanup_json struct json_object *apps = json_object_new_array();
	for (size_t i = 0; i < info->n_apps; i++)
		if (json_append(apps, show_app_json(info, &info->apps[i], data_dir)) < 0)
			return NULL;
	return TAKE_PTR(apps);
}

static int put_apps(struct json_object *obj, const struct pod_info *info, const char *data_dir)
{
	cleanup_json struct json_object *names = json_object_new_array();
	for (size_t i = 0; i < info->n_apps; i++)
		if (json_append(names, json_object_new_string(info->apps[i].name)) < 0)
			return -ENOMEM;
	int r = json_put(obj, "app_names", TAKE_PTR(names));
	return r < 0 ? r : json_put(obj, "apps", show_apps_json(info, data_dir));
}

/* A line "KEY=TIME" if the time is known. */
static int show_app_time(const char *key, int64_t ns, struct buf *out)
{
	char when[WHEN_TEXT_MAX];
	if (ns == 0)
		return 0;
	when_exact(ns, when);
	return buf_printf(out, "%s=%s\n", key, when);
}

/* As rkt: the key, then a line "NAME:VALUE,NAME:VALUE", then an empty one. */
static int show_tags(const char *key, const struct strv *list, struct buf *out)
{
	int r = list->n > 0 ? buf_printf(out, "%s=\n", key) : 0;
	for (size_t i = 0; r == 0 && i < list->n; i++) {
		char text[POD_TAG_NAME_MAX + POD_TAG_VALUE_MAX + 2];
		struct err printable = ERR_INIT;
		str_copy_text(text, sizeof(text), list->v[i]);
		text[strcspn(text, "=")] = ':';
		err_set(&printable, -EINVAL, "%s", text);
		r = buf_printf(out, "%s%s", i > 0 ? "," : "", printable.text);
	}
	return r == 0 && list->n > 0 ? buf_puts(out, "\n\n") : r;
}

static int show_mounts(const struct volume_mounts *m, struct buf *out)
{
	int r = m->n > 0 ? buf_puts(out, "mounts=\n") : 0;
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		struct err path = ERR_INIT; /* makes it printable */
		err_set(&path, -EINVAL, "%s", m->v[i].path);
		r = buf_printf(out, "%s%s:%s:(read_only:%s)", i > 0 ? "," : "", m->v[i].volume,
			       path.text, m->v[i].read_only ? "true" : "false");
	}
	return r == 0 && m->n > 0 ? buf_puts(out, "\n\n") : r;
}

int show_app(const struct app_info *app, struct buf *out)
{
	int r = buf_printf(out, "name=%s\nstate=%s\nimage_id=%s\n", app->name,
			   app_state_name(app->state), app->image_id);
	if (r == 0)
		r = show_app_time("created_at", app->created_ns, out);
	if (r == 0)
		r = show_app_time("started_at", app->started_ns, out);
	if (r == 0)
		r = show_app_time("finished_at", app->finished_ns, out);
	if (r == 0 && app->has_exit_code)
		r = buf_printf(out, "exit_code=%d\n", app->exit_code);
	if (r == 0)
		r = show_reason("reason", "", app, out);
	if (r == 0)
		r = show_mounts(&app->mounts, out);
	if (r == 0)
		r = show_tags("user_annotations", &app->tags.annotations, out);
	return r < 0 ? r : show_tags("user_labels", &app->tags.labels, out);
}

/* All that is known of the networks, as the file has it. */
static int put_networks(struct json_object *obj, const struct pod_info *info)
{
	cleanup_json struct json_object *list = NULL;
	if (!info->networks)
		return json_put(obj, "networks", json_object_new_array());
	cleanup_buf struct buf text;
	buf_init(&text, NET_INFO_FILE_MAX);
	int r = net_info_format(info->networks, &text);
	if (r == 0)
		r = json_parse(buf_data(&text), buf_len(&text), &list);
	return r == 0 ? json_put(obj, "networks", TAKE_PTR(list)) : r;
}

struct json_object *show_pod_json(const struct pod_info *info, const char *data_dir)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	if (json_put_str(obj, "name", info->uuid.text) < 0 ||
	    (info->name[0] && json_put_str(obj, "pod_name", info->name) < 0) ||
	    json_put_str(obj, "state", pod_state_name(info->state)) < 0 ||
	    (info->flavor[0] && json_put_str(obj, "flavor", info->flavor) < 0) ||
	    put_networks(obj, info) < 0 || put_apps(obj, info, data_dir) < 0 ||
	    put_time(obj, "created_at", info->created_ns) < 0 ||
	    put_time(obj, "started_at", info->started_ns) < 0 ||
	    (info->pid > 0 && info->state == POD_STATE_RUNNING &&
	     json_put_int(obj, "pid", info->pid) < 0) ||
	    put_path(obj, "console_path", info, data_dir, "", POD_FILE_CONSOLE, info->has_console) <
		    0 ||
	    put_path(obj, "supervisor_log_path", info, data_dir, "", POD_FILE_LOG,
		     info->has_supervisor_log) < 0 ||
	    (info->suspended && json_put_bool(obj, "suspended", true) < 0) ||
	    (info->disk_full && json_put_bool(obj, "disk_full", true) < 0) ||
	    put_tags(obj, &info->tags) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

/* The members that every line of `husk events` has. */
static struct json_object *line_json(int64_t time_ns, const char *type, const char *event)
{
	char when[WHEN_TEXT_MAX];
	cleanup_json struct json_object *obj = json_object_new_object();
	when_rfc3339(time_ns, when);
	if (json_put_str(obj, "time", when) < 0 || json_put_str(obj, "type", type) < 0 ||
	    json_put_str(obj, "event", event) < 0)
		return NULL;
	return TAKE_PTR(obj);
}

/* The words of @ips as a list, which may be empty; nothing if that is NULL. */
static int put_ips(struct json_object *obj, const char *ips)
{
	if (!ips)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t len; list && *ips; ips += len + (ips[len] == ' ')) {
		len = strcspn(ips, " ");
		if (json_append(list, json_object_new_string_len(ips, (int)len)) < 0)
			return -ENOMEM;
	}
	return json_put(obj, "ips", TAKE_PTR(list));
}

struct json_object *show_event_json(const struct uuid *pod, const struct pod_event *ev)
{
	bool is_app = ev->app[0] != '\0';
	const char *reason = app_end_name(ev->end);
	cleanup_json struct json_object *obj =
		line_json(ev->time_ns, is_app ? "app" : "pod", pod_event_name(ev->kind));
	if (json_put_str(obj, "pod", pod->text) < 0 ||
	    (ev->pod_name && *ev->pod_name && json_put_str(obj, "pod_name", ev->pod_name) < 0) ||
	    put_ips(obj, ev->ips) < 0 || (is_app && json_put_str(obj, "app", ev->app) < 0) ||
	    (ev->has_exit_code && json_put_int(obj, "exit_code", ev->exit_code) < 0) ||
	    (ev->signal > 0 && json_put_int(obj, "signal", ev->signal) < 0) ||
	    (reason && json_put_str(obj, "reason", reason) < 0) ||
	    (ev->end == APP_END_OOM_KILLED && json_put_bool(obj, "oom_killed", true) < 0))
		return NULL;
	return TAKE_PTR(obj);
}

struct json_object *show_live_json(int64_t now_ns)
{
	return line_json(now_ns, "stream", "live");
}

int show_json(struct json_object *obj, enum show_format format, struct buf *out)
{
	int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
	if (format == SHOW_JSON_PRETTY)
		flags = JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_PRETTY_TAB |
			JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text = json_object_to_json_string_ext(obj, flags);
	int r = text ? buf_puts(out, text) : -ENOMEM;
	return r < 0 ? r : buf_puts(out, "\n");
}

int show_new_json(struct json_object *obj, enum show_format format, struct buf *out)
{
	cleanup_json struct json_object *owned = obj;
	return owned ? show_json(owned, format, out) : -ENOMEM;
}

int show_manifest(const char *text, size_t len, bool pretty, struct buf *out)
{
	cleanup_json struct json_object *obj = NULL;
	int r = json_parse(text, len, &obj);
	if (r == 0)
		r = json_write(obj, pretty, out);
	return r == 0 ? buf_puts(out, "\n") : r;
}
