/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/agent/control.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#define READ_SIZE ((size_t)4096) /* replies are small; a larger frame takes some reads */

static void control_fail(struct control *c, int code, const char *what)
{
	struct err e = ERR_INIT;
	err_sys(&e, code, "agent: %s", what);
	const struct control_ops *ops = c->ops;
	void *ctx = c->ctx;
	control_close(c);
	ops->closed(ctx, &e);
}

static int control_flush(struct control *c)
{
	int r = unix_send_buf(c->fd, &c->out);
	if (r < 0)
		return r;
	uint32_t events = EPOLLIN | (buf_len(&c->out) > 0 ? EPOLLOUT : 0);
	return loop_watch_modify(&c->watch, events);
}

/* Hands one message to the owner. Returns false if it is none that may come now. */
static bool dispatch(struct control *c, const struct rpc_msg *msg)
{
	switch (msg->kind) {
	case RPC_NOTIFICATION:
		c->ops->notification(c->ctx, msg);
		return true;
	case RPC_RESULT:
	case RPC_ERROR:
		if (msg->id >= CONTROL_CALLS_MAX || !c->outstanding[msg->id])
			return false;
		c->outstanding[msg->id] = false;
		c->ops->reply(c->ctx, (int)msg->id, msg);
		return true;
	case RPC_REQUEST:
		return false; /* the agent has nothing to ask */
	}
	return false;
}

/* Handles the first frame of the input. 0, FRAME_INCOMPLETE or -errno. */
static int take_message(struct control *c)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = rpc_take(&c->in, &msg);
	if (r != 0)
		return r;
	return dispatch(c, &msg) ? 0 : -EPROTO;
}

/* Reads once. 0, 1 at end of file, or -errno. */
static int read_some(struct control *c)
{
	char *where;
	size_t size = MIN(READ_SIZE, buf_room(&c->in));
	int r = buf_reserve(&c->in, size, &where);
	if (r < 0)
		return r;
	ssize_t n = read(c->fd, where, size);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	buf_commit(&c->in, (size_t)n);
	return n == 0;
}

static void on_event(void *ctx, uint32_t events)
{
	struct control *c = ctx;
	if (events & EPOLLOUT) {
		int r = control_flush(c);
		if (r < 0) {
			control_fail(c, r, "cannot send");
			return;
		}
	}
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	int got = read_some(c);
	int r = got < 0 ? got : 0;
	while (r == 0 && c->loop) /* the owner may close it from a callback */
		r = take_message(c);
	if (!c->loop)
		return;
	/* A unix socket whose other end has not read everything says so, instead of ending. */
	if (got == 1 || got == -ECONNRESET)
		control_fail(c, -ECONNRESET, "ended the connection");
	else if (r < 0)
		control_fail(c, r,
			     got < 0 ? "cannot receive"
				     : "sent what is not a message of the protocol");
}

int control_open(struct control *c, struct loop *loop, int fd, const struct control_ops *ops,
		 void *ctx)
{
	*c = (struct control){ .fd = fd, .ops = ops, .ctx = ctx };
	buf_init(&c->in, CONTROL_IN_MAX);
	buf_init(&c->out, CONTROL_OUT_MAX);
	int r = loop_watch_add(loop, &c->watch, fd, EPOLLIN, on_event, c);
	if (r < 0) {
		c->fd = fd_close(fd);
		return r;
	}
	c->loop = loop;
	return 0;
}

int control_call(struct control *c, int id, const char *method, struct json_object *body)
{
	assert(id >= 0 && id < CONTROL_CALLS_MAX);
	int r = 0;
	if (!c->loop)
		r = -ENOTCONN;
	else if (c->outstanding[id])
		r = -EBUSY;
	if (r < 0) {
		json_object_put(body);
		return r;
	}
	r = rpc_append_request(&c->out, id, method, body);
	if (r < 0)
		return r;
	c->outstanding[id] = true;
	return control_flush(c);
}

_Static_assert(AGENT_VERSION_MIN == AGENT_VERSION_MAX,
	       "with a choice of versions, wait for the hello's reply before sending more");

int control_hello(struct control *c, int id, const char *secret)
{
	struct agent_hello hello = { .version_min = AGENT_VERSION_MIN,
				     .version_max = AGENT_VERSION_MAX };
	struct json_object *body = NULL;
	memcpy(hello.secret, secret, AGENT_SECRET_LEN);
	int r = agent_hello_encode(&hello, &body);
	return r < 0 ? r : control_call(c, id, AGENT_HELLO, body);
}

void control_close(struct control *c)
{
	if (!c->loop)
		return;
	loop_watch_remove(&c->watch);
	c->fd = fd_close(c->fd);
	buf_deinit(&c->in);
	buf_deinit(&c->out);
	c->loop = NULL;
}
