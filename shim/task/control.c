/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/control.h"

#include <errno.h>
#include <string.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "lib/wire/stage1.h"

/* What an agent may say, which the other end passes on. */
#define MESSAGE_MAX (FRAME_HEADER_LEN + (size_t)AGENT_REPLY_MAX)

static void on_message(const struct control *c, const struct rpc_msg *msg)
{
	struct agent_exec_exited m;
	if (msg->kind != RPC_NOTIFICATION)
		return;
	if (strcmp(msg->method, AGENT_EXEC_STARTED) == 0)
		c->ops->started(c->ctx);
	else if (strcmp(msg->method, AGENT_EXEC_EXITED) == 0 &&
		 agent_exec_exited_decode(msg->body, &m) == 0)
		c->ops->exited(c->ctx, &m);
}

/* Takes one message. 0, or else nothing more is to be had now. */
static int take_message(struct control *c)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = rpc_take(&c->in, &msg);
	if (r == 0)
		on_message(c, &msg);
	return r;
}

/* Hears what one read yields. False if nothing more is to be had now. */
static bool listen_once(struct control *c)
{
	size_t n = 0;
	int r = unix_recv_buf(c->fd, &c->in, buf_room(&c->in), &n);
	if (r == -EAGAIN)
		return false;
	bool ends = r < 0 || n == 0;
	while (r == 0 && c->fd >= 0) /* a callback may close it */
		r = take_message(c);
	ends |= r < 0;
	if (ends)
		loop_watch_remove(&c->watch); /* nothing comes any more */
	return !ends && c->fd >= 0;
}

void control_listen(struct control *c)
{
	while (c->fd >= 0 && listen_once(c))
		;
}

/* One piece at a time: others are served in between. */
static void on_readable(void *ctx, uint32_t events)
{
	(void)events;
	listen_once(ctx);
}

int control_open(struct control *c, struct loop *loop, const struct control_ops *ops, void *ctx,
		 int *ret)
{
	int ends[2];
	int r = unix_pair(ends);
	if (r < 0)
		return r;
	*c = CONTROL_NONE;
	c->fd = ends[0];
	c->ops = ops;
	c->ctx = ctx;
	buf_init(&c->in, MESSAGE_MAX);
	r = loop_watch_add(loop, &c->watch, c->fd, EPOLLIN, on_readable, c);
	if (r < 0) {
		control_close(c);
		fd_close(ends[1]);
		return r;
	}
	*ret = ends[1];
	return 0;
}

static void say(struct control *c, const char *method, int r, struct json_object *body)
{
	cleanup_buf struct buf out;
	buf_init(&out, MESSAGE_MAX);
	if (r == 0 && rpc_append_notification(&out, method, body) == 0)
		(void)unix_send_buf(c->fd, &out);
}

void control_signal(struct control *c, int number)
{
	const struct agent_exec_signal m = { .exec = STAGE1_CONTROL_EXEC, .signal = number };
	struct json_object *body = NULL;
	int r = c->fd < 0 ? -EBADF : agent_exec_signal_encode(&m, &body);
	say(c, AGENT_EXEC_SIGNAL, r, body);
}

void control_resize(struct control *c, int64_t rows, int64_t columns)
{
	const struct agent_exec_resize m = { .exec = STAGE1_CONTROL_EXEC,
					     .rows = rows,
					     .cols = columns };
	struct json_object *body = NULL;
	int r = c->fd < 0 ? -EBADF : agent_exec_resize_encode(&m, &body);
	say(c, AGENT_EXEC_RESIZE, r, body);
}

void control_close(struct control *c)
{
	loop_watch_remove(&c->watch);
	if (c->fd >= 0)
		buf_deinit(&c->in);
	c->fd = fd_close(c->fd);
}
