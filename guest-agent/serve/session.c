/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that breaks the protocol (no frame, no message, a frame beyond the limit, a reply to a
 * question nobody asked) is disconnected: what it sends next cannot be understood. A request that
 * is understood but wrong gets an error and the conversation goes on.
 */
#include "guest-agent/serve/session.h"

#include <errno.h>
#include <string.h>

#include "guest-agent/serve/methods.h"
#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "lib/wire/rpc.h"

/* Bytes read at a time when nothing is known about the next frame. */
#define READ_CHUNK ((size_t)4096)

void session_init(struct session *s, struct session_env *env, uint64_t serial)
{
	*s = (struct session){
		.state = SESSION_NEW, .env = env, .serial = serial, .port_fd = -EBADF
	};
	buf_init(&s->in, SESSION_FIRST_MAX);
	buf_init(&s->out, SESSION_OUT_MAX);
}

static void set_state(struct session *s, enum session_state state)
{
	if (s->state == SESSION_CONTROL)
		s->env->n_control--;
	if (state == SESSION_CONTROL)
		s->env->n_control++;
	s->state = state;
}

void session_deinit(struct session *s)
{
	set_state(s, SESSION_CLOSED);
	buf_deinit(&s->in);
	buf_deinit(&s->out);
	memset(&s->attach, 0, sizeof(s->attach));
	s->port_fd = fd_close(s->port_fd);
}

/* The length that the header of the first frame in @in announces, or 0 if it is not there yet. */
static size_t session_announced(const struct buf *in)
{
	if (buf_len(in) < FRAME_HEADER_LEN)
		return 0;
	const unsigned char *p = (const unsigned char *)buf_data(in);
	return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

size_t session_wants(const struct session *s)
{
	size_t have = buf_len(&s->in);
	size_t len = session_announced(&s->in);
	size_t missing =
		len > 0 && FRAME_HEADER_LEN + len > have ? FRAME_HEADER_LEN + len - have : 0;
	switch (s->state) {
	case SESSION_NEW:
		return MIN(len > 0 ? missing : FRAME_HEADER_LEN - have, buf_room(&s->in));
	case SESSION_CONTROL:
		if (buf_len(&s->out) > SESSION_OUT_HIGH)
			return 0;
		return MIN(MAX(missing, READ_CHUNK), buf_room(&s->in));
	case SESSION_STREAM:
	case SESSION_CLOSED:
		break;
	}
	return 0;
}

static void reply(struct session *s, int64_t id, struct json_object *body)
{
	if (rpc_append_result(&s->out, id, body) < 0)
		set_state(s, SESSION_CLOSED);
}

void session_answer(struct session *s, int64_t id, const struct fault *f)
{
	if (!f)
		reply(s, id, NULL);
	else if (rpc_append_error(&s->out, id, f->code, f->text) < 0)
		set_state(s, SESSION_CLOSED);
}

void session_answer_stats(struct session *s, int64_t id, const struct agent_app_stats *m)
{
	struct json_object *body = NULL;
	if (agent_app_stats_encode(m, &body) < 0)
		set_state(s, SESSION_CLOSED);
	else
		reply(s, id, body);
}

/*
 * Appends the notification @method with @body, which is taken over, unless making it has failed
 * (@r).
 */
static void notify(struct session *s, const char *method, int r, struct json_object *body)
{
	if (r < 0 || rpc_append_notification(&s->out, method, body) < 0)
		set_state(s, SESSION_CLOSED);
}

void session_notify_exited(struct session *s, const struct agent_app_exited *m)
{
	struct json_object *body = NULL;
	if (s->state != SESSION_CONTROL)
		return;
	int r = agent_app_exited_encode(m, &body);
	notify(s, AGENT_APP_EXITED, r, body);
}

void session_notify_exec_started(struct session *s, const struct agent_exec_ref *m)
{
	struct json_object *body = NULL;
	if (s->state != SESSION_CONTROL)
		return;
	int r = agent_exec_ref_encode(m, &body);
	notify(s, AGENT_EXEC_STARTED, r, body);
}

void session_notify_exec_exited(struct session *s, const struct agent_exec_exited *m)
{
	struct json_object *body = NULL;
	if (s->state != SESSION_CONTROL)
		return;
	int r = agent_exec_exited_encode(m, &body);
	notify(s, AGENT_EXEC_EXITED, r, body);
}

static void notify_exited(void *ctx, const struct agent_app_exited *m)
{
	session_notify_exited(ctx, m);
}

/* Takes the same time whatever the guess is. Both have AGENT_SECRET_LEN digits. */
static bool secret_is_right(const struct session *s, const char *guess)
{
	unsigned difference = 0;
	for (size_t i = 0; i < AGENT_SECRET_LEN; i++)
		difference |= (unsigned)(unsigned char)(s->env->secret[i] ^ guess[i]);
	return difference == 0;
}

static int hello(struct session *s, const struct rpc_msg *msg, struct fault *f)
{
	struct agent_hello m;
	struct agent_hello_reply r = { 0 };
	struct json_object *body;
	if (agent_hello_decode(msg->body, &m) < 0)
		return fault_set(f, AGENT_E_PARAMS, "%s: parameters", AGENT_HELLO);
	if (!secret_is_right(s, m.secret))
		return fault_set(f, AGENT_E_SECRET, "wrong secret");
	int version = agent_choose_version(m.version_min, m.version_max);
	if (version < 0)
		return fault_set(f, AGENT_E_VERSION, "this agent speaks versions %d to %d",
				 AGENT_VERSION_MIN, AGENT_VERSION_MAX);
	if (s->env->n_control >= SESSION_CONTROL_MAX)
		return fault_set(f, AGENT_E_LIMIT, "%d control connections are open",
				 SESSION_CONTROL_MAX);
	r.version = version;
	methods_describe(&r);
	if (agent_hello_reply_encode(&r, &body) < 0)
		return fault_set(f, AGENT_E_INTERNAL, "out of memory");
	set_state(s, SESSION_CONTROL);
	s->in.max = FRAME_MAX;
	reply(s, msg->id, body);
	pod_each_exited(s->env->pod, notify_exited, s);
	return 0;
}

static int attach(struct session *s, const struct rpc_msg *msg, struct fault *f)
{
	struct agent_attach m;
	if (agent_attach_decode(msg->body, &m) < 0)
		return fault_set(f, AGENT_E_PARAMS, "%s: parameters", AGENT_ATTACH);
	if (!secret_is_right(s, m.secret))
		return fault_set(f, AGENT_E_SECRET, "wrong secret");
	int r = pod_attach_check(s->env->pod, &m, f);
	if (r != 0)
		return r;
	s->attach = m;
	set_state(s, SESSION_STREAM);
	reply(s, msg->id, NULL);
	return 0;
}

static int connect_port(struct session *s, const struct rpc_msg *msg, struct fault *f)
{
	struct agent_connect m;
	if (agent_connect_decode(msg->body, &m) < 0)
		return fault_set(f, AGENT_E_PARAMS, "%s: parameters", AGENT_CONNECT);
	if (!secret_is_right(s, m.secret))
		return fault_set(f, AGENT_E_SECRET, "wrong secret");
	int r = pod_connect(s->env->pod, m.port, &s->port_fd, f);
	if (r != 0)
		return r;
	set_state(s, SESSION_STREAM);
	reply(s, msg->id, NULL);
	return 0;
}

int session_hand_over(struct session *s, int sock, struct fault *f)
{
	if (s->port_fd >= 0)
		return pod_attach_port(s->env->pod, TAKE_FD(s->port_fd), sock, f);
	return pod_attach(s->env->pod, &s->attach, sock, f);
}

/* The first message of a connection. Any failure ends the connection. */
static void process_first(struct session *s, const struct rpc_msg *msg)
{
	struct fault f = { 0 };
	int r;
	if (strcmp(msg->method, AGENT_HELLO) == 0)
		r = hello(s, msg, &f);
	else if (strcmp(msg->method, AGENT_ATTACH) == 0)
		r = attach(s, msg, &f);
	else if (strcmp(msg->method, AGENT_CONNECT) == 0)
		r = connect_port(s, msg, &f);
	else
		r = fault_set(&f, AGENT_E_SECRET, "say " AGENT_HELLO " first");
	if (r == 0)
		return;
	session_answer(s, msg->id, &f);
	set_state(s, SESSION_CLOSED);
}

static void process_request(struct session *s, const struct rpc_msg *msg)
{
	struct fault f = { 0 };
	struct json_object *result = NULL;
	struct pod_caller caller = { s->serial, msg->id };
	int r = methods_call(s->env, msg, caller, &result, &f);
	if (r == FAULT_SET)
		session_answer(s, msg->id, &f);
	else if (r == 0)
		reply(s, msg->id, result);
}

/* Acts on one payload. -EBADMSG if the peer does not speak the protocol, -ENOMEM. */
static int process_payload(struct session *s, const char *payload, size_t len)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	int r = rpc_decode(payload, len, &msg);
	if (r < 0)
		return r;
	if (msg.kind == RPC_NOTIFICATION && s->state == SESSION_CONTROL)
		return 0; /* of a later minor revision, by definition without effect here */
	if (msg.kind != RPC_REQUEST)
		return -EBADMSG;
	if (s->state == SESSION_NEW)
		process_first(s, &msg);
	else
		process_request(s, &msg);
	return 0;
}

/* Acts on the first frame. 0, FRAME_INCOMPLETE, or -errno if the connection is to end. */
static int process_frame(struct session *s)
{
	const char *payload;
	size_t len;
	if (session_announced(&s->in) > s->in.max - FRAME_HEADER_LEN)
		return -EMSGSIZE;
	int r = frame_peek(&s->in, &payload, &len);
	if (r != 0)
		return r;
	r = process_payload(s, payload, len);
	frame_consume(&s->in, len);
	return r;
}

void session_process(struct session *s)
{
	while (s->state == SESSION_NEW ||
	       (s->state == SESSION_CONTROL && buf_len(&s->out) <= SESSION_OUT_HIGH)) {
		int r = process_frame(s);
		if (r == FRAME_INCOMPLETE)
			break;
		if (r < 0)
			set_state(s, SESSION_CLOSED);
	}
	/* A large request has come and gone: do not keep its buffer. */
	if (buf_len(&s->in) == 0)
		buf_deinit(&s->in);
}
