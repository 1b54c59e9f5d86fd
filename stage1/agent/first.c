/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/agent/first.h"

#include <errno.h>
#include <sys/socket.h>

#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"

#define FIRST_ID 0 /* of the only request on a connection */

int first_send(int fd, const char *method, struct json_object *body)
{
	cleanup_buf struct buf out;
	buf_init(&out, FRAME_MAX);
	int r = rpc_append_request(&out, FIRST_ID, method, body);
	if (r < 0)
		return r;
	/* A fresh connection takes some hundred bytes at once. */
	ssize_t n = send(fd, buf_data(&out), buf_len(&out), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n != (ssize_t)buf_len(&out))
		return n < 0 ? -errno : -EIO;
	return 0;
}

/* 0, -EAGAIN while it is incomplete, -errno. */
static int read_frame(int fd, struct buf *reply, const char **ret_payload, size_t *ret_len)
{
	int r;
	while ((r = frame_peek(reply, ret_payload, ret_len)) == FRAME_INCOMPLETE) {
		char *where;
		size_t missing = frame_missing(reply);
		r = buf_reserve(reply, missing, &where);
		if (r < 0)
			return r;
		ssize_t n = recv(fd, where, missing, MSG_DONTWAIT);
		if (n <= 0)
			return n == 0 ? -ECONNRESET : errno == EINTR ? -EAGAIN : -errno;
		buf_commit(reply, (size_t)n);
	}
	return r;
}

int first_receive(int fd, struct buf *reply, struct err *why)
{
	const char *payload;
	size_t len;
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = read_frame(fd, reply, &payload, &len);
	if (r == 0)
		r = rpc_decode(payload, len, &msg);
	if (r < 0)
		return r;
	buf_deinit(reply);
	if (msg.id != FIRST_ID || (msg.kind != RPC_RESULT && msg.kind != RPC_ERROR))
		return -EPROTO;
	return msg.kind == RPC_RESULT ? 0 : err_set(why, -EPERM, "%s", msg.text);
}
