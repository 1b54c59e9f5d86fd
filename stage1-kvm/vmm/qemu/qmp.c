/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Input is a bounded buffer of bytes in which complete lines are looked for;
 * `scanned` remembers how far, so that a peer that sends byte by byte costs linear time. A line is
 * parsed as a whole, turned into one struct qmp_msg and dropped. A buffer that is full without a
 * newline can never become a message: that is -EBADMSG, and the caller gives up on QEMU. Between
 * calls nothing is held but that buffer, so a QEMU that talks for ever costs QMP_LINE_MAX bytes.
 */
#include "stage1-kvm/vmm/qemu/qmp.h"

#include <errno.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"

#define VERSION_MAX 100000 /* of a component of QEMU's version */

void qmp_init(struct qmp *q)
{
	buf_init(&q->in, QMP_LINE_MAX);
	q->scanned = 0;
	q->next_id = 0;
}

void qmp_deinit(struct qmp *q)
{
	if (!q)
		return;
	buf_deinit(&q->in);
	q->scanned = 0;
}

size_t qmp_room(const struct qmp *q)
{
	return buf_room(&q->in);
}

int qmp_feed(struct qmp *q, const void *data, size_t len)
{
	return buf_append(&q->in, data, len);
}

/* Length of the first line with its newline; 0 if there is none. */
static size_t find_line(struct qmp *q)
{
	const char *data = buf_data(&q->in);
	size_t len = buf_len(&q->in);
	const char *end;

	if (q->scanned == len)
		return 0;
	end = memchr(data + q->scanned, '\n', len - q->scanned);
	if (!end) {
		q->scanned = len;
		return 0;
	}
	return (size_t)(end - data) + 1;
}

/* Copies a string member, cut at @size - 1 bytes. -EBADMSG if it is none. */
static int copy_cut(struct json_object *obj, const char *key, char *dst, size_t size)
{
	const char *s;
	size_t len;
	int r = json_get_str(obj, key, QMP_LINE_MAX, &s);

	if (r < 0)
		return -EBADMSG;
	len = strnlen(s, size - 1);
	memcpy(dst, s, len);
	dst[len] = '\0';
	return 0;
}

/* Copies a name: printable, of at most QMP_NAME_MAX bytes. */
static int copy_name(struct json_object *obj, const char *key, char dst[QMP_NAME_MAX + 1])
{
	const char *s;

	if (json_get_str(obj, key, QMP_NAME_MAX, &s) < 0 || !str_is_printable(s, QMP_NAME_MAX))
		return -EBADMSG;
	return str_copy(dst, QMP_NAME_MAX + 1, s);
}

static int decode_greeting(struct json_object *line, struct qmp_msg *m)
{
	struct json_object *version = json_member(json_member(line, "QMP"), "version");
	struct json_object *qemu = json_member(version, "qemu");

	m->kind = QMP_GREETING;
	if (json_get_int(qemu, "major", 0, VERSION_MAX, &m->major) < 0 ||
	    json_get_int(qemu, "minor", 0, VERSION_MAX, &m->minor) < 0)
		return -EBADMSG;
	return 0;
}

static int decode_return(struct json_object *line, struct qmp_msg *m)
{
	m->kind = QMP_RETURN;
	if (json_get_int(line, "id", 0, QMP_ID_MAX, &m->id) < 0)
		return -EBADMSG;
	m->body = json_object_get(json_member(line, "return"));
	return 0;
}

static int decode_error(struct json_object *line, struct qmp_msg *m)
{
	struct json_object *error = json_member(line, "error");
	int r = json_get_int(line, "id", 0, QMP_ID_MAX, &m->id);

	m->kind = QMP_ERROR;
	if (r == -ENOENT)
		m->id = -1; /* QEMU could not parse the command that far */
	else if (r < 0)
		return -EBADMSG;
	if (copy_name(error, "class", m->name) < 0)
		return -EBADMSG;
	return copy_cut(error, "desc", m->text, sizeof(m->text));
}

static int decode_event(struct json_object *line, struct qmp_msg *m)
{
	m->kind = QMP_EVENT;
	if (copy_name(line, "event", m->name) < 0)
		return -EBADMSG;
	m->body = json_object_get(json_member(line, "data"));
	return 0;
}

static int decode_line(const char *text, size_t len, struct qmp_msg *m)
{
	static const struct {
		const char *key;
		int (*decode)(struct json_object *line, struct qmp_msg *m);
	} kinds[] = {
		{ "return", decode_return },
		{ "event", decode_event },
		{ "error", decode_error },
		{ "QMP", decode_greeting },
	};
	cleanup_json struct json_object *line = NULL;
	int r = json_parse(text, len, &line);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (json_member(line, kinds[i].key))
			return kinds[i].decode(line, m);
	}
	return -EBADMSG;
}

int qmp_next(struct qmp *q, struct qmp_msg *ret)
{
	struct qmp_msg m = { .id = -1 };
	size_t len = find_line(q);
	int r;

	if (len == 0)
		return buf_room(&q->in) == 0 ? -EBADMSG : QMP_INCOMPLETE;
	r = decode_line(buf_data(&q->in), len, &m);
	buf_consume(&q->in, len);
	q->scanned = 0;
	if (r < 0) {
		qmp_msg_deinit(&m);
		return r;
	}
	*ret = m;
	return 0;
}

void qmp_msg_deinit(struct qmp_msg *m)
{
	if (!m)
		return;
	json_object_put(m->body);
	m->body = NULL;
}

/* A command as an object. Takes @args over, also on failure. Errors as json_put(). */
static int command_object(const char *name, struct json_object *args, int64_t id,
			  struct json_object **ret_cmd)
{
	cleanup_json struct json_object *a = args;
	cleanup_json struct json_object *cmd = json_object_new_object();
	int r;

	if ((r = json_put_str(cmd, "execute", name)) < 0)
		return r;
	if (a && (r = json_put(cmd, "arguments", TAKE_PTR(a))) < 0)
		return r;
	if ((r = json_put_int(cmd, "id", id)) < 0)
		return r;
	*ret_cmd = TAKE_PTR(cmd);
	return 0;
}

int qmp_command(struct qmp *q, struct buf *out, const char *name, struct json_object *args,
		int64_t *ret_id)
{
	cleanup_json struct json_object *cmd = NULL;
	cleanup_buf struct buf text;
	int r;

	buf_init(&text, QMP_COMMAND_MAX);
	if ((r = command_object(name, args, q->next_id, &cmd)) < 0 ||
	    (r = json_write(cmd, false, &text)) < 0 || (r = buf_puts(&text, "\n")) < 0 ||
	    (r = buf_append(out, buf_data(&text), buf_len(&text))) < 0)
		return r;
	if (ret_id)
		*ret_id = q->next_id;
	q->next_id = q->next_id == QMP_ID_MAX ? 0 : q->next_id + 1;
	return 0;
}
