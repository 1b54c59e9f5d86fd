/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each message is described by a table of fields; encoding and decoding walk the table. So a limit
 * is written once and holds in both directions.
 */
#include "lib/wire/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/json.h"

enum field_type {
	FIELD_TEXT,   /* char array of size max + 1, at most max bytes */
	FIELD_PROSE,  /* the same, for people: what is not UTF-8 is replaced when encoding */
	FIELD_NAME,   /* the same, must be an app name */
	FIELD_SECRET, /* the same, must be AGENT_SECRET_LEN hex digits */
	FIELD_INT,    /* int64_t from min to max */
	FIELD_COUNT,  /* int64_t from 0 on that may be absent: -1 */
	FIELD_BOOL,
	FIELD_FLAG,   /* bool that may be absent: false */
	FIELD_NUMBER, /* int64_t from 1 to max that may be absent: 0 */
	FIELD_LIST,   /* struct strv, members of at most AGENT_STRING_MAX bytes */
	FIELD_EXTRA,  /* the same that may be absent: empty */
	FIELD_STREAM, /* enum agent_stream */
	FIELD_BLOB,   /* char *, owned text of at most max bytes; NULL is an empty text */
	FIELD_FILE,   /* the same that may be absent: NULL */
	FIELD_NET,    /* struct net *, owned, that may be absent: NULL */
	FIELD_VOLUME, /* enum agent_volume */
	FIELD_MOUNTS, /* struct agent_mounts that may be absent: none */
};

struct field {
	const char *key;
	enum field_type type;
	size_t offset;
	int64_t min, max;
};

/* The member @path of the structure @s, under the name @m. */
#define FIELD(s, m, path, type, min, max)             \
	{                                             \
#m, type, offsetof(s, path), min, max \
	}
#define TEXT(s, m)          FIELD(s, m, m, FIELD_TEXT, 0, sizeof(((s *)0)->m) - 1)
#define PROSE(s, m)         FIELD(s, m, m, FIELD_PROSE, 0, sizeof(((s *)0)->m) - 1)
#define NAME(s, m)          FIELD(s, m, m, FIELD_NAME, 0, AGENT_NAME_MAX)
#define SECRET(s, m)        FIELD(s, m, m, FIELD_SECRET, 0, AGENT_SECRET_LEN)
#define INT(s, m, min, max) FIELD(s, m, m, FIELD_INT, min, max)
#define COUNT(s, m)         FIELD(s, m, m, FIELD_COUNT, 0, INT64_MAX)
#define BOOL(s, m)          FIELD(s, m, m, FIELD_BOOL, 0, 1)
#define FLAG(s, m)          FIELD(s, m, m, FIELD_FLAG, 0, 1)
#define EXTRA(s, m)         FIELD(s, m, m, FIELD_EXTRA, 0, AGENT_STRING_MAX)
#define STREAM(s, m)        FIELD(s, m, m, FIELD_STREAM, 0, 0)
#define END                               \
	{                                 \
		NULL, FIELD_TEXT, 0, 0, 0 \
	}

static const struct field hello_fields[] = {
	INT(struct agent_hello, version_min, 0, INT32_MAX),
	INT(struct agent_hello, version_max, 0, INT32_MAX),
	SECRET(struct agent_hello, secret),
	END,
};

static const struct field hello_reply_fields[] = {
	INT(struct agent_hello_reply, version, 0, INT32_MAX),
	PROSE(struct agent_hello_reply, agent),
	PROSE(struct agent_hello_reply, kernel),
	END,
};

static const struct field attach_fields[] = {
	SECRET(struct agent_attach, secret),          NAME(struct agent_attach, app),
	INT(struct agent_attach, exec, 0, INT32_MAX), STREAM(struct agent_attach, stream),
	FLAG(struct agent_attach, end_stdin),         END,
};

static const struct field connect_fields[] = {
	SECRET(struct agent_connect, secret),
	INT(struct agent_connect, port, 1, UINT16_MAX),
	END,
};

static const struct field pod_setup_fields[] = {
	TEXT(struct agent_pod_setup, hostname),
	INT(struct agent_pod_setup, clock_ns, 0, INT64_MAX),
	INT(struct agent_pod_setup, scratch_lun, -1, AGENT_LUN_MAX),
	FIELD(struct agent_pod_setup, net, net, FIELD_NET, 0, 0),
	FIELD(struct agent_pod_setup, sysctls, sysctls, FIELD_EXTRA, 0, SYSCTL_TEXT_MAX),
	FIELD(struct agent_pod_setup, resolv_conf, resolv_conf, FIELD_FILE, 0, NET_RESOLV_CONF_MAX),
	FIELD(struct agent_pod_setup, hosts, hosts, FIELD_FILE, 0, NET_HOSTS_TEXT_MAX),
	END,
};

/*
 * The members of a struct agent_process stand in the same object as those of the message around it.
 */
#define PROCESS_FIELD(s, m, type, max) FIELD(s, m, process.m, type, 0, max)
#define PROCESS(s)                                                     \
	PROCESS_FIELD(s, exec, FIELD_LIST, AGENT_STRING_MAX),          \
		PROCESS_FIELD(s, env, FIELD_LIST, AGENT_STRING_MAX),   \
		PROCESS_FIELD(s, cwd, FIELD_TEXT, AGENT_PATH_MAX),     \
		PROCESS_FIELD(s, cwd_is_there, FIELD_FLAG, 1),         \
		PROCESS_FIELD(s, user, FIELD_TEXT, AGENT_USER_MAX),    \
		PROCESS_FIELD(s, group, FIELD_TEXT, AGENT_USER_MAX),   \
		PROCESS_FIELD(s, with_stdin, FIELD_BOOL, 1),           \
		PROCESS_FIELD(s, with_tty, FIELD_BOOL, 1),             \
		PROCESS_FIELD(s, null_stdout, FIELD_FLAG, 1),          \
		PROCESS_FIELD(s, null_stderr, FIELD_FLAG, 1),          \
		PROCESS_FIELD(s, rows, FIELD_INT, AGENT_TTY_SIZE_MAX), \
		PROCESS_FIELD(s, cols, FIELD_INT, AGENT_TTY_SIZE_MAX)

static const struct field mount_fields[] = {
	TEXT(struct agent_mount, volume),
	TEXT(struct agent_mount, path),
	FIELD(struct agent_mount, kind, kind, FIELD_VOLUME, 0, 0),
	FLAG(struct agent_mount, is_own),
	FLAG(struct agent_mount, read_only),
	FLAG(struct agent_mount, no_exec),
	FLAG(struct agent_mount, no_suid),
	INT(struct agent_mount, mode, 0, AGENT_MODE_MAX),
	INT(struct agent_mount, uid, 0, AGENT_ID_MAX),
	INT(struct agent_mount, gid, 0, AGENT_ID_MAX),
	INT(struct agent_mount, size, 0, INT64_MAX),
	INT(struct agent_mount, slot, 0, AGENT_VOLUME_SLOTS - 1),
	END,
};

/* As with PROCESS. */
#define CONFINEMENT_FIELD(m, type, min, max) \
	FIELD(struct agent_app_add, m, confinement.m, type, min, max)

static const struct field app_add_fields[] = {
	NAME(struct agent_app_add, app),
	INT(struct agent_app_add, lun, 0, AGENT_LUN_MAX),
	FLAG(struct agent_app_add, keep_streams),
	FLAG(struct agent_app_add, with_init),
	FLAG(struct agent_app_add, shares_processes),
	FIELD(struct agent_app_add, stop_signal, stop_signal, FIELD_NUMBER, 1, AGENT_SIGNAL_MAX),
	PROCESS(struct agent_app_add),
	EXTRA(struct agent_app_add, pre_start),
	EXTRA(struct agent_app_add, post_stop),
	FIELD(struct agent_app_add, mounts, mounts, FIELD_MOUNTS, 0, AGENT_MOUNTS_MAX),
	CONFINEMENT_FIELD(capabilities, FIELD_INT, 0, INT64_MAX),
	CONFINEMENT_FIELD(no_new_privs, FIELD_BOOL, 0, 1),
	CONFINEMENT_FIELD(read_only_root, FIELD_BOOL, 0, 1),
	CONFINEMENT_FIELD(open_paths, FIELD_FLAG, 0, 1),
	CONFINEMENT_FIELD(masked_paths, FIELD_EXTRA, 0, AGENT_PATH_MAX),
	CONFINEMENT_FIELD(read_only_paths, FIELD_EXTRA, 0, AGENT_PATH_MAX),
	CONFINEMENT_FIELD(umask, FIELD_COUNT, 0, AGENT_UMASK_MAX),
	CONFINEMENT_FIELD(groups, FIELD_LIST, 0, AGENT_USER_MAX),
	CONFINEMENT_FIELD(rlimits, FIELD_LIST, 0, AGENT_USER_MAX),
	CONFINEMENT_FIELD(seccomp, FIELD_BLOB, 0, AGENT_SECCOMP_MAX),
	CONFINEMENT_FIELD(oom_score_adj, FIELD_INT, -1000, 1000),
	CONFINEMENT_FIELD(memory_max, FIELD_INT, 0, INT64_MAX),
	CONFINEMENT_FIELD(cpu_millis, FIELD_INT, 0, AGENT_CPU_MILLIS_MAX),
	CONFINEMENT_FIELD(cpu_weight, FIELD_INT, 0, AGENT_CPU_WEIGHT_MAX),
	CONFINEMENT_FIELD(pids_max, FIELD_INT, 0, INT32_MAX),
	END,
};

static const struct field app_exec_fields[] = {
	NAME(struct agent_app_exec, app),
	PROCESS(struct agent_app_exec),
	EXTRA(struct agent_app_exec, groups),
	END,
};

#define EXEC(s) INT(s, exec, 1, INT32_MAX)

static const struct field exec_ref_fields[] = {
	EXEC(struct agent_exec_ref),
	END,
};

static const struct field exec_signal_fields[] = {
	EXEC(struct agent_exec_signal),
	INT(struct agent_exec_signal, signal, 1, AGENT_SIGNAL_MAX),
	END,
};

static const struct field exec_resize_fields[] = {
	EXEC(struct agent_exec_resize),
	INT(struct agent_exec_resize, rows, 0, AGENT_TTY_SIZE_MAX),
	INT(struct agent_exec_resize, cols, 0, AGENT_TTY_SIZE_MAX),
	END,
};

static const struct field exec_exited_fields[] = {
	EXEC(struct agent_exec_exited),
	INT(struct agent_exec_exited, code, 0, 255),
	INT(struct agent_exec_exited, signal, 0, AGENT_SIGNAL_MAX),
	PROSE(struct agent_exec_exited, message),
	END,
};

static const struct field app_ref_fields[] = {
	NAME(struct agent_app_ref, app),
	END,
};

static const struct field app_signal_fields[] = {
	NAME(struct agent_app_signal, app),
	INT(struct agent_app_signal, signal, 1, AGENT_SIGNAL_MAX),
	FLAG(struct agent_app_signal, all),
	END,
};

static const struct field app_freeze_fields[] = {
	NAME(struct agent_app_freeze, app),
	BOOL(struct agent_app_freeze, frozen),
	END,
};

static const struct field app_resize_fields[] = {
	NAME(struct agent_app_resize, app),
	INT(struct agent_app_resize, rows, 0, AGENT_TTY_SIZE_MAX),
	INT(struct agent_app_resize, cols, 0, AGENT_TTY_SIZE_MAX),
	END,
};

static const struct field app_update_fields[] = {
	NAME(struct agent_app_update, app),
	INT(struct agent_app_update, memory_max, 0, INT64_MAX),
	INT(struct agent_app_update, cpu_millis, 0, AGENT_CPU_MILLIS_MAX),
	INT(struct agent_app_update, cpu_weight, 0, AGENT_CPU_WEIGHT_MAX),
	INT(struct agent_app_update, pids_max, 0, INT32_MAX),
	END,
};

static const struct field pod_clock_fields[] = {
	INT(struct agent_pod_clock, clock_ns, 1, INT64_MAX),
	END,
};

static const struct field pod_shutdown_fields[] = {
	INT(struct agent_pod_shutdown, grace_ms, 0, AGENT_GRACE_MS_MAX),
	INT(struct agent_pod_shutdown, drain_ms, 0, AGENT_DRAIN_MS_MAX),
	END,
};

static const struct field app_exited_fields[] = {
	NAME(struct agent_app_exited, app),
	INT(struct agent_app_exited, code, 0, 255),
	INT(struct agent_app_exited, signal, 0, AGENT_SIGNAL_MAX),
	BOOL(struct agent_app_exited, oom),
	PROSE(struct agent_app_exited, message),
	END,
};

static const struct field app_stats_fields[] = {
	COUNT(struct agent_app_stats, cpu_usec),
	COUNT(struct agent_app_stats, user_usec),
	COUNT(struct agent_app_stats, system_usec),
	COUNT(struct agent_app_stats, throttled_usec),
	COUNT(struct agent_app_stats, memory_bytes),
	COUNT(struct agent_app_stats, memory_peak_bytes),
	COUNT(struct agent_app_stats, memory_limit),
	COUNT(struct agent_app_stats, pids),
	COUNT(struct agent_app_stats, pids_limit),
	COUNT(struct agent_app_stats, io_read_bytes),
	COUNT(struct agent_app_stats, io_write_bytes),
	COUNT(struct agent_app_stats, oom_kills),
	COUNT(struct agent_app_stats, cpu_limit_millis),
	COUNT(struct agent_app_stats, memory_anon_bytes),
	COUNT(struct agent_app_stats, memory_file_bytes),
	COUNT(struct agent_app_stats, memory_inactive_file_bytes),
	COUNT(struct agent_app_stats, page_faults),
	COUNT(struct agent_app_stats, major_page_faults),
	END,
};

static const struct field info_fields[] = {
	INT(struct agent_info, rss_kib, 0, INT64_MAX),
	INT(struct agent_info, uptime_ms, 0, INT64_MAX),
	INT(struct agent_info, init_ms, 0, INT64_MAX),
	COUNT(struct agent_info, memory_total),
	COUNT(struct agent_info, memory_free),
	COUNT(struct agent_info, memory_available),
	COUNT(struct agent_info, cpus),
	END,
};

static const char *const stream_names[AGENT_STREAM_COUNT_] = {
	[AGENT_STREAM_STDIN] = "stdin",
	[AGENT_STREAM_STDOUT] = "stdout",
	[AGENT_STREAM_STDERR] = "stderr",
	[AGENT_STREAM_TTY] = "tty",
};

static const char *const volume_names[AGENT_VOLUME_COUNT_] = {
	[AGENT_VOLUME_EMPTY] = "empty", [AGENT_VOLUME_MEMORY] = "memory",
	[AGENT_VOLUME_IMAGE] = "image", [AGENT_VOLUME_HOST] = "host",
	[AGENT_VOLUME_BLOCK] = "block",
};

const char *agent_stream_name(enum agent_stream stream)
{
	return stream_names[stream];
}

/* An AC name (appc spec 0.8.11, "AC Name Type"). */
static bool is_ac_name(const char *s, size_t max)
{
	size_t n = strnlen(s, max + 1);
	if (n == 0 || n > max || s[0] == '-' || s[n - 1] == '-')
		return false;
	return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

bool agent_name_is_valid(const char *s)
{
	return is_ac_name(s, AGENT_NAME_MAX);
}

bool agent_volume_is_valid(const char *s)
{
	return is_ac_name(s, AGENT_VOLUME_NAME_MAX);
}

int agent_choose_version(int64_t min, int64_t max)
{
	int64_t version = MIN(max, (int64_t)AGENT_VERSION_MAX);
	if (version < AGENT_VERSION_MIN || version < min)
		return -EPROTONOSUPPORT;
	return (int)version;
}

static int encode_prose(const struct field *f, const char *at, struct json_object *body)
{
	char text[AGENT_TEXT_MAX + 1];
	str_copy_text(text, sizeof(text), at);
	return json_put_str(body, f->key, text);
}

static int encode_blob(const struct field *f, const char *text, struct json_object *body)
{
	return json_put_str(body, f->key, text ? text : "");
}

static int encode_count(const struct field *f, int64_t n, struct json_object *body)
{
	return n < 0 ? 0 : json_put_int(body, f->key, n);
}

static int encode_extra(const struct field *f, const struct strv *list, struct json_object *body)
{
	return list->n == 0 ? 0 : json_put_strv(body, f->key, list);
}

static int encode_net(const struct field *f, const struct net *net, struct json_object *body)
{
	struct json_object *value = NULL;
	int r = net ? net_encode(net, &value) : 0;
	return r == 0 && net ? json_put(body, f->key, value) : r;
}

static int agent_encode(const struct field *fields, const void *m, struct json_object **ret);

static int encode_mounts(const struct field *f, const struct agent_mounts *m,
			 struct json_object *body)
{
	if (m->n == 0)
		return 0;
	cleanup_json struct json_object *list = json_object_new_array();
	for (size_t i = 0; i < m->n; i++) {
		struct json_object *one = NULL;
		int r = agent_encode(mount_fields, &m->v[i], &one);
		if (r < 0)
			return r;
		r = json_append(list, one);
		if (r < 0)
			return r;
	}
	return json_put(body, f->key, TAKE_PTR(list));
}

static int encode_field(const struct field *f, const void *at, struct json_object *body)
{
	switch (f->type) {
	case FIELD_TEXT:
	case FIELD_NAME:
	case FIELD_SECRET:
		return json_put_str(body, f->key, at);
	case FIELD_PROSE:
		return encode_prose(f, at, body);
	case FIELD_INT:
		return json_put_int(body, f->key, *(const int64_t *)at);
	case FIELD_COUNT:
		return encode_count(f, *(const int64_t *)at, body);
	case FIELD_BOOL:
		return json_put_bool(body, f->key, *(const bool *)at);
	case FIELD_FLAG:
		return *(const bool *)at ? json_put_bool(body, f->key, true) : 0;
	case FIELD_NUMBER:
		return *(const int64_t *)at ? json_put_int(body, f->key, *(const int64_t *)at) : 0;
	case FIELD_LIST:
		return json_put_strv(body, f->key, at);
	case FIELD_EXTRA:
		return encode_extra(f, at, body);
	case FIELD_STREAM:
		return json_put_str(body, f->key, stream_names[*(const enum agent_stream *)at]);
	case FIELD_BLOB:
		return encode_blob(f, *(char *const *)at, body);
	case FIELD_FILE:
		return *(char *const *)at ? encode_blob(f, *(char *const *)at, body) : 0;
	case FIELD_NET:
		return encode_net(f, *(struct net *const *)at, body);
	case FIELD_VOLUME:
		return json_put_str(body, f->key, volume_names[*(const enum agent_volume *)at]);
	case FIELD_MOUNTS:
		return encode_mounts(f, at, body);
	}
	return -EINVAL;
}

static int agent_encode(const struct field *fields, const void *m, struct json_object **ret)
{
	cleanup_json struct json_object *body = json_object_new_object();
	if (!body)
		return -ENOMEM;
	for (const struct field *f = fields; f->key; f++) {
		int r = encode_field(f, (const char *)m + f->offset, body);
		if (r < 0)
			return r;
	}
	*ret = TAKE_PTR(body);
	return 0;
}

static int decode_text(const struct field *f, struct json_object *body, char *at)
{
	const char *s;
	int r = json_get_str(body, f->key, (size_t)f->max, &s);
	if (r < 0)
		return r;
	if (f->type == FIELD_NAME && !agent_name_is_valid(s))
		return -EBADMSG;
	if (f->type == FIELD_SECRET && !hex_is_valid(s, AGENT_SECRET_LEN))
		return -EBADMSG;
	r = str_copy(at, (size_t)f->max + 1, s);
	if (r == 0 && f->type == FIELD_PROSE)
		str_make_printable(at);
	return r;
}

/* Which of the @n names the member has. 0, -ENOENT, -EBADMSG. */
static int decode_name(const struct field *f, struct json_object *body, const char *const *names,
		       int n, int *ret)
{
	const char *s;
	int r = json_get_str(body, f->key, AGENT_NAME_MAX, &s);
	for (int i = 0; r == 0 && i < n; i++) {
		if (strcmp(s, names[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	return r < 0 ? r : -EBADMSG;
}

static int decode_stream(const struct field *f, struct json_object *body, enum agent_stream *at)
{
	int i = 0;
	int r = decode_name(f, body, stream_names, AGENT_STREAM_COUNT_, &i);
	*at = (enum agent_stream)i;
	return r;
}

static int decode_volume(const struct field *f, struct json_object *body, enum agent_volume *at)
{
	int i = 0;
	int r = decode_name(f, body, volume_names, AGENT_VOLUME_COUNT_, &i);
	*at = (enum agent_volume)i;
	return r;
}

static int decode_blob(const struct field *f, struct json_object *body, char **at)
{
	const char *s;
	int r = json_get_str(body, f->key, (size_t)f->max, &s);
	if (r < 0 || !*s)
		return r;
	*at = strdup(s);
	return *at ? 0 : -ENOMEM;
}

static int decode_file(const struct field *f, struct json_object *body, char **at)
{
	const char *s;
	int r = json_get_str(body, f->key, (size_t)f->max, &s);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	*at = strdup(s);
	return *at ? 0 : -ENOMEM;
}

static int decode_net(const struct field *f, struct json_object *body, struct net **at)
{
	struct json_object *value = json_member(body, f->key);
	if (!value)
		return 0;
	*at = malloc(sizeof(**at));
	return *at ? net_decode(value, *at) : -ENOMEM;
}

static int decode_count(const struct field *f, struct json_object *body, int64_t *at)
{
	if (json_member(body, f->key))
		return json_get_int(body, f->key, f->min, f->max, at);
	*at = -1;
	return json_object_is_type(body, json_type_object) ? 0 : -EBADMSG;
}

static int decode_extra(const struct field *f, struct json_object *body, struct strv *at)
{
	int r = json_get_strv(body, f->key, (size_t)f->max, at);
	return r == -ENOENT ? 0 : r;
}

static int decode(const struct field *fields, struct json_object *body, void *m);

static int decode_mounts(const struct field *f, struct json_object *body, struct agent_mounts *at)
{
	struct json_object *list = json_member(body, f->key);
	if (!list)
		return 0;
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) > AGENT_MOUNTS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct agent_mount m = { 0 };
		int r = decode(mount_fields, json_object_array_get_idx(list, i), &m);
		if (r == 0 && (!agent_volume_is_valid(m.volume) || m.path[0] != '/' ||
			       (agent_mount_is_root(&m) &&
				(m.kind != AGENT_VOLUME_HOST || agent_mounts_root(at)))))
			r = -EBADMSG;
		if (r == 0)
			r = agent_mounts_add(at, &m);
		if (r < 0)
			return r;
	}
	return 0;
}

static int decode_field(const struct field *f, struct json_object *body, void *at)
{
	switch (f->type) {
	case FIELD_TEXT:
	case FIELD_PROSE:
	case FIELD_NAME:
	case FIELD_SECRET:
		return decode_text(f, body, at);
	case FIELD_INT:
		return json_get_int(body, f->key, f->min, f->max, at);
	case FIELD_COUNT:
		return decode_count(f, body, at);
	case FIELD_BOOL:
		return json_get_bool(body, f->key, at);
	case FIELD_FLAG:
		return json_member(body, f->key) ? json_get_bool(body, f->key, at) : 0;
	case FIELD_NUMBER:
		return json_member(body, f->key) ? json_get_int(body, f->key, f->min, f->max, at)
						 : 0;
	case FIELD_LIST:
		return json_get_strv(body, f->key, (size_t)f->max, at);
	case FIELD_EXTRA:
		return decode_extra(f, body, at);
	case FIELD_STREAM:
		return decode_stream(f, body, at);
	case FIELD_BLOB:
		return decode_blob(f, body, at);
	case FIELD_FILE:
		return decode_file(f, body, at);
	case FIELD_NET:
		return decode_net(f, body, at);
	case FIELD_VOLUME:
		return decode_volume(f, body, at);
	case FIELD_MOUNTS:
		return decode_mounts(f, body, at);
	}
	return -EBADMSG;
}

static int decode(const struct field *fields, struct json_object *body, void *m)
{
	for (const struct field *f = fields; f->key; f++) {
		int r = decode_field(f, body, (char *)m + f->offset);
		if (r < 0)
			return r == -ENOMEM ? r : -EBADMSG;
	}
	return 0;
}

#define DEFINE_ENCODE(name)                                                               \
	int agent_##name##_encode(const struct agent_##name *m, struct json_object **ret) \
	{                                                                                 \
		return agent_encode(name##_fields, m, ret);                               \
	}

/* For structures without owned memory: decode aside, hand over on success only. */
#define DEFINE_CODEC(name)                                                            \
	DEFINE_ENCODE(name)                                                           \
	int agent_##name##_decode(struct json_object *body, struct agent_##name *ret) \
	{                                                                             \
		struct agent_##name m = { 0 };                                        \
		int r = decode(name##_fields, body, &m);                              \
		if (r == 0)                                                           \
			*ret = m;                                                     \
		return r;                                                             \
	}

DEFINE_CODEC(hello)
DEFINE_CODEC(hello_reply)
DEFINE_CODEC(attach)
DEFINE_CODEC(connect)
DEFINE_CODEC(app_ref)
DEFINE_CODEC(app_signal)
DEFINE_CODEC(app_freeze)
DEFINE_CODEC(app_resize)
DEFINE_CODEC(app_update)
DEFINE_CODEC(pod_clock)
DEFINE_CODEC(pod_shutdown)
DEFINE_CODEC(app_exited)
DEFINE_CODEC(app_stats)
DEFINE_CODEC(info)
DEFINE_CODEC(exec_ref)
DEFINE_CODEC(exec_signal)
DEFINE_CODEC(exec_resize)
DEFINE_CODEC(exec_exited)

DEFINE_ENCODE(pod_setup)

int agent_pod_setup_decode(struct json_object *body, struct agent_pod_setup *ret)
{
	CLEANUP(agent_pod_setup_deinit) struct agent_pod_setup m;
	agent_pod_setup_init(&m);
	int r = decode(pod_setup_fields, body, &m);
	if (r < 0)
		return r;
	*ret = m;
	agent_pod_setup_init(&m);
	return 0;
}

void agent_pod_setup_init(struct agent_pod_setup *m)
{
	memset(m, 0, sizeof(*m));
	strv_init(&m->sysctls, SYSCTLS_MAX);
}

void agent_pod_setup_deinit(struct agent_pod_setup *m)
{
	if (!m)
		return;
	free(m->net);
	strv_deinit(&m->sysctls);
	free(m->resolv_conf);
	free(m->hosts);
	agent_pod_setup_init(m);
}

void agent_process_init(struct agent_process *m)
{
	memset(m, 0, sizeof(*m));
	strv_init(&m->exec, AGENT_EXEC_MAX);
	strv_init(&m->env, AGENT_ENV_MAX);
}

void agent_process_deinit(struct agent_process *m)
{
	if (!m)
		return;
	strv_deinit(&m->exec);
	strv_deinit(&m->env);
}

void agent_confinement_init(struct agent_confinement *m)
{
	*m = (struct agent_confinement){ .umask = -1 };
	strv_init(&m->groups, AGENT_GROUPS_MAX);
	strv_init(&m->rlimits, AGENT_RLIMITS_MAX);
	strv_init(&m->masked_paths, AGENT_PATHS_MAX);
	strv_init(&m->read_only_paths, AGENT_PATHS_MAX);
}

void agent_confinement_deinit(struct agent_confinement *m)
{
	if (!m)
		return;
	strv_deinit(&m->groups);
	strv_deinit(&m->rlimits);
	strv_deinit(&m->masked_paths);
	strv_deinit(&m->read_only_paths);
	free(m->seccomp);
	m->seccomp = NULL;
}

void agent_app_exec_init(struct agent_app_exec *m)
{
	memset(m, 0, sizeof(*m));
	agent_process_init(&m->process);
	strv_init(&m->groups, AGENT_GROUPS_MAX);
}

void agent_app_exec_deinit(struct agent_app_exec *m)
{
	agent_process_deinit(m ? &m->process : NULL);
	if (m)
		strv_deinit(&m->groups);
}

int agent_mounts_add(struct agent_mounts *m, const struct agent_mount *mount)
{
	if (m->n >= AGENT_MOUNTS_MAX)
		return -E2BIG;
	if (!GROW(m->v, m->n))
		return -ENOMEM;
	m->v[m->n++] = *mount;
	return 0;
}

bool agent_mount_is_root(const struct agent_mount *m)
{
	return strcmp(m->path, "/") == 0;
}

const struct agent_mount *agent_mounts_root(const struct agent_mounts *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (agent_mount_is_root(&m->v[i]))
			return &m->v[i];
	return NULL;
}

void agent_app_add_init(struct agent_app_add *m)
{
	memset(m, 0, sizeof(*m));
	agent_process_init(&m->process);
	agent_confinement_init(&m->confinement);
	strv_init(&m->pre_start, AGENT_EXEC_MAX);
	strv_init(&m->post_stop, AGENT_EXEC_MAX);
}

void agent_app_add_deinit(struct agent_app_add *m)
{
	if (!m)
		return;
	agent_process_deinit(&m->process);
	agent_confinement_deinit(&m->confinement);
	strv_deinit(&m->pre_start);
	strv_deinit(&m->post_stop);
	free(m->mounts.v);
	m->mounts = (struct agent_mounts){ 0 };
}

size_t agent_words_size(const struct strv *words)
{
	size_t size = words->n * AGENT_WORD_COST;
	for (size_t i = 0; i < words->n; i++)
		size += strlen(words->v[i]);
	return size;
}

/* Messages that own memory: decode aside, hand over on success only. */
#define DEFINE_PROCESS_CODEC(name)                                                    \
	DEFINE_ENCODE(name)                                                           \
	int agent_##name##_decode(struct json_object *body, struct agent_##name *ret) \
	{                                                                             \
		CLEANUP(agent_##name##_deinit) struct agent_##name m;                 \
		agent_##name##_init(&m);                                              \
		int r = decode(name##_fields, body, &m);                              \
		if (r < 0)                                                            \
			return r;                                                     \
		if (m.process.exec.n == 0 || !name##_fits(&m))                        \
			return -EBADMSG;                                              \
		*ret = m;                                                             \
		agent_##name##_init(&m);                                              \
		return 0;                                                             \
	}

static bool fit(const struct strv *exec, const struct strv *env)
{
	return agent_words_size(exec) + agent_words_size(env) <= AGENT_WORDS_MAX;
}

static bool app_add_fits(const struct agent_app_add *m)
{
	const struct strv *env = &m->process.env;
	return fit(&m->process.exec, env) && fit(&m->pre_start, env) && fit(&m->post_stop, env);
}

static bool app_exec_fits(const struct agent_app_exec *m)
{
	return fit(&m->process.exec, &m->process.env);
}

DEFINE_PROCESS_CODEC(app_add)
DEFINE_PROCESS_CODEC(app_exec)
