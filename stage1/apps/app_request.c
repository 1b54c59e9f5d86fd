/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/app_request.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "stage1/pod/podfiles.h"

static const char *const verbs[APP_VERB_COUNT_] = {
	[APP_VERB_ADD] = "app/add",       [APP_VERB_START] = "app/start",
	[APP_VERB_STOP] = "app/stop",     [APP_VERB_RM] = "app/rm",
	[APP_VERB_UPDATE] = "app/update", [APP_VERB_SIGNAL] = "app/signal",
	[APP_VERB_PAUSE] = "app/pause",   [APP_VERB_RESUME] = "app/resume",
};

const char *app_verb_name(enum app_verb verb)
{
	return verbs[verb];
}

int app_request_encode(const struct app_request *q, struct buf *out)
{
	cleanup_json struct json_object *body = json_object_new_object();
	int r = json_put_str(body, "app", q->app);
	if (r == 0)
		r = json_put_int(body, "grace_ms", q->grace_ms);
	if (r == 0 && q->verb == APP_VERB_SIGNAL)
		r = json_put_int(body, "signal", q->signal);
	if (r == 0 && q->all)
		r = json_put_bool(body, "all", true);
	return r < 0 ? r : rpc_append_request(out, 0, verbs[q->verb], TAKE_PTR(body));
}

static int decode_request(const struct rpc_msg *msg, struct app_request *ret)
{
	struct app_request q = { .verb = APP_VERB_COUNT_ };
	const char *app;
	if (msg->kind != RPC_REQUEST)
		return -EBADMSG;
	for (int i = 0; i < APP_VERB_COUNT_; i++)
		if (strcmp(msg->method, verbs[i]) == 0)
			q.verb = (enum app_verb)i;
	if (q.verb == APP_VERB_COUNT_ || json_get_str(msg->body, "app", AGENT_NAME_MAX, &app) < 0 ||
	    !agent_name_is_valid(app) ||
	    json_get_int(msg->body, "grace_ms", 0, AGENT_GRACE_MS_MAX, &q.grace_ms) < 0)
		return -EBADMSG;
	if (q.verb == APP_VERB_SIGNAL &&
	    json_get_int(msg->body, "signal", 1, AGENT_SIGNAL_MAX, &q.signal) < 0)
		return -EBADMSG;
	if (q.verb == APP_VERB_SIGNAL && json_member(msg->body, "all") &&
	    json_get_bool(msg->body, "all", &q.all) < 0)
		return -EBADMSG;
	str_copy(q.app, sizeof(q.app), app);
	*ret = q;
	return 0;
}

int app_request_decode(struct buf *in, struct app_request *ret)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = rpc_take(in, &msg);
	if (r == -EMSGSIZE)
		r = -EBADMSG;
	return r != 0 ? r : decode_request(&msg, ret);
}

int app_request_encode_reply(const struct err *why, struct buf *out)
{
	if (!why)
		return rpc_append_result(out, 0, NULL);
	int64_t code = APP_REQUEST_E_FAILED;
	if (why->code == -ESRCH)
		code = APP_REQUEST_E_NOT_RUNNING;
	else if (why->code == -EBADMSG)
		code = APP_REQUEST_E_REQUEST;
	return rpc_append_error(out, 0, code, why->text);
}

/* ---- the entrypoint's side ---- */

/* Waits until @fd can do @events. 0, -ETIMEDOUT or -errno. */
static int wait_fd(int fd, short events, int64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		int64_t left = (deadline_ns - clock_monotonic_ns()) / NS_PER_MS;
		if (left <= 0)
			return -ETIMEDOUT;
		int n = poll(&p, 1, (int)MIN(left, (int64_t)INT32_MAX));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* Reads until the reply is complete. */
static int read_reply(int fd, struct buf *in, int64_t deadline_ns, struct rpc_msg *ret)
{
	int r;
	while ((r = rpc_take(in, ret)) == FRAME_INCOMPLETE) {
		size_t n = 0;
		r = wait_fd(fd, POLLIN, deadline_ns);
		if (r == 0)
			r = unix_recv_buf(fd, in, buf_room(in), &n);
		if (r == 0 && n == 0)
			return -ECONNRESET;
		if (r < 0 && r != -EAGAIN)
			return r;
	}
	return r == -EMSGSIZE ? -EBADMSG : r;
}

static int converse(const struct app_request *q, struct rpc_msg *ret)
{
	cleanup_buf struct buf bytes;
	int64_t deadline = clock_monotonic_ns() + (q->grace_ms + APP_REQUEST_LIMIT_MS) * NS_PER_MS;
	cleanup_fd int fd = unix_connect(POD_FILE_CONTROL);
	buf_init(&bytes, APP_REQUEST_FRAME_MAX);
	if (fd < 0)
		return fd;
	int r = app_request_encode(q, &bytes);
	if (r == 0)
		r = fd_write_all(fd, buf_data(&bytes), buf_len(&bytes));
	if (r < 0)
		return r;
	buf_consume(&bytes, buf_len(&bytes));
	return read_reply(fd, &bytes, deadline, ret);
}

int app_request_call(const struct app_request *q, struct err *e)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = converse(q, &msg);
	if (r == 0 && msg.kind == RPC_RESULT)
		return 0;
	if (r == 0 && msg.kind == RPC_ERROR)
		return err_set(e, msg.code == APP_REQUEST_E_NOT_RUNNING ? -ESRCH : -EIO, "%s",
			       msg.text);
	return err_sys(e, r < 0 ? r : -EBADMSG, "app \"%s\": the supervisor of the pod", q->app);
}
