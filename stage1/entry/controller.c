/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/entry/controller.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "lib/wire/stage1.h"

/* The longest message is of a few hundred bytes, and what has an end sends no more than that. */
#define MESSAGE_MAX (FRAME_HEADER_LEN + (size_t)AGENT_REPLY_MAX)

bool controller_option(const char *arg, int *ret)
{
	static const char option[] = "--control=";
	uint64_t fd = 0;
	if (!str_starts(arg, option) || num_parse_u64(arg + strlen(option), INT_MAX, &fd) < 0 ||
	    fd <= STDERR_FILENO || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return false;
	*ret = (int)fd;
	return true;
}

static void on_message(const struct controller *c, const struct rpc_msg *msg)
{
	struct agent_exec_signal s;
	struct agent_exec_resize r;
	if (msg->kind != RPC_NOTIFICATION)
		return;
	if (strcmp(msg->method, AGENT_EXEC_SIGNAL) == 0 && c->ops->signal &&
	    agent_exec_signal_decode(msg->body, &s) == 0)
		c->ops->signal(c->ctx, s.signal);
	else if (strcmp(msg->method, AGENT_EXEC_RESIZE) == 0 &&
		 agent_exec_resize_decode(msg->body, &r) == 0)
		c->ops->resize(c->ctx, r.rows, r.cols);
}

/* One message of those that have come. 0, FRAME_INCOMPLETE, -EBADMSG, -ENOMEM. */
static int take_message(struct controller *c)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = rpc_take(&c->in, &msg);
	if (r == 0)
		on_message(c, &msg);
	return r;
}

static void on_readable(void *ctx, uint32_t events)
{
	struct controller *c = ctx;
	size_t n = 0;
	(void)events;
	int r = unix_recv_buf(c->fd, &c->in, buf_room(&c->in), &n);
	if (r == -EAGAIN)
		return;
	bool ends = r < 0 || n == 0;
	while (r == 0 && c->fd >= 0) /* a callback may close it */
		r = take_message(c);
	if (ends || r < 0)
		controller_ignore(c);
}

int controller_listen(struct controller *c, struct loop *loop, int fd,
		      const struct controller_ops *ops, void *ctx)
{
	*c = CONTROLLER_NONE;
	if (fd < 0)
		return 0;
	c->fd = fd;
	c->ops = ops;
	c->ctx = ctx;
	buf_init(&c->in, MESSAGE_MAX);
	int r = loop_watch_add(loop, &c->watch, fd, EPOLLIN, on_readable, c);
	if (r < 0)
		controller_ignore(c);
	else
		on_readable(c, EPOLLIN);
	return r;
}

void controller_ignore(struct controller *c)
{
	if (c->fd < 0)
		return;
	loop_watch_remove(&c->watch);
	buf_deinit(&c->in);
	c->fd = -EBADF;
}

/* What the socket does not take is for somebody who does not read. */
static void tell(int fd, const char *method, int r, struct json_object *body)
{
	cleanup_buf struct buf out;
	buf_init(&out, MESSAGE_MAX);
	if (r == 0 && rpc_append_notification(&out, method, body) == 0)
		(void)unix_send_buf(fd, &out);
}

void controller_tell_started(int fd)
{
	const struct agent_exec_ref m = { .exec = STAGE1_CONTROL_EXEC };
	struct json_object *body = NULL;
	if (fd < 0)
		return;
	int r = agent_exec_ref_encode(&m, &body);
	tell(fd, AGENT_EXEC_STARTED, r, body);
}

void controller_tell_exited(int fd, const struct agent_exec_exited *m)
{
	struct agent_exec_exited named = *m;
	struct json_object *body = NULL;
	if (fd < 0)
		return;
	named.exec = STAGE1_CONTROL_EXEC;
	int r = agent_exec_exited_encode(&named, &body);
	tell(fd, AGENT_EXEC_EXITED, r, body);
}
