/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/rpc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/wire/frame.h"

void rpc_msg_deinit(struct rpc_msg *m)
{
	if (!m)
		return;
	json_object_put(m->body);
	m->body = NULL;
}

static int decode_error(struct json_object *error, struct rpc_msg *m)
{
	const char *text;
	int r = json_get_int(error, "code", INT32_MIN, INT32_MAX, &m->code);
	if (r == 0)
		r = json_get_str(error, "message", RPC_ERROR_TEXT_MAX, &text);
	if (r == 0)
		r = str_copy(m->text, sizeof(m->text), text);
	if (r == 0)
		str_make_printable(m->text);
	m->kind = RPC_ERROR;
	return r;
}

/* Fills kind and the members of that kind; the id is already there if @has_id. */
static int decode_kind(struct json_object *obj, bool has_id, struct rpc_msg *m)
{
	const char *method;
	int r = json_get_str(obj, "method", RPC_METHOD_MAX, &method);
	if (r == 0) {
		m->kind = has_id ? RPC_REQUEST : RPC_NOTIFICATION;
		m->body = json_object_get(json_member(obj, "params"));
		return str_copy(m->method, sizeof(m->method), method);
	}
	if (r != -ENOENT || !has_id)
		return -EBADMSG;
	struct json_object *error = json_member(obj, "error");
	if (error)
		return decode_error(error, m);
	m->kind = RPC_RESULT;
	m->body = json_object_get(json_member(obj, "result"));
	return m->body ? 0 : -EBADMSG;
}

int rpc_decode(const char *payload, size_t len, struct rpc_msg *ret)
{
	cleanup_json struct json_object *obj = NULL;
	int r = json_count_containers(payload, len) > RPC_CONTAINERS_MAX
			? -EBADMSG
			: json_parse(payload, len, &obj);
	if (r < 0)
		return r;
	const char *version;
	if (json_get_str(obj, "jsonrpc", 3, &version) < 0 || strcmp(version, "2.0") != 0)
		return -EBADMSG;
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	r = json_get_int(obj, "id", 0, RPC_ID_MAX, &m.id);
	if (r < 0 && r != -ENOENT)
		return -EBADMSG;
	if (decode_kind(obj, r == 0, &m) < 0)
		return -EBADMSG;
	*ret = m;
	m.body = NULL;
	return 0;
}

int rpc_take(struct buf *in, struct rpc_msg *ret)
{
	const char *payload;
	size_t len;
	int r = frame_peek(in, &payload, &len);
	if (r != 0)
		return r == FRAME_INCOMPLETE && buf_room(in) == 0 ? -EMSGSIZE : r;
	r = rpc_decode(payload, len, ret);
	frame_consume(in, len);
	return r;
}

/*
 * Frames an object with the version, the id unless it is negative, @body under @key and @method, if
 * any. @body is consumed.
 */
static int append_message(struct buf *out, int64_t id, const char *method, const char *key,
			  struct json_object *body)
{
	cleanup_json struct json_object *value = body ? body : json_object_new_object();
	cleanup_json struct json_object *obj = json_object_new_object();
	cleanup_buf struct buf text;
	buf_init(&text, FRAME_PAYLOAD_MAX);
	int r = json_put_str(obj, "jsonrpc", "2.0");
	if (r == 0 && id >= 0)
		r = json_put_int(obj, "id", id);
	if (r == 0)
		r = json_put(obj, key, TAKE_PTR(value));
	if (r == 0 && method)
		r = json_put_str(obj, "method", method);
	if (r == 0)
		r = json_write(obj, false, &text);
	return r < 0 ? r : frame_append(out, buf_data(&text), buf_len(&text));
}

int rpc_append_request(struct buf *out, int64_t id, const char *method, struct json_object *body)
{
	return append_message(out, id, method, "params", body);
}

int rpc_append_notification(struct buf *out, const char *method, struct json_object *body)
{
	return append_message(out, -1, method, "params", body);
}

int rpc_append_result(struct buf *out, int64_t id, struct json_object *body)
{
	return append_message(out, id, NULL, "result", body);
}

int rpc_append_error(struct buf *out, int64_t id, int64_t code, const char *text)
{
	cleanup_json struct json_object *error = json_object_new_object();
	char message[RPC_ERROR_TEXT_MAX + 1];
	str_copy_text(message, sizeof(message), text);
	int r = json_put_int(error, "code", code);
	if (r == 0)
		r = json_put_str(error, "message", message);
	return r < 0 ? r : append_message(out, id, NULL, "error", TAKE_PTR(error));
}
