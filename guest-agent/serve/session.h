/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection's conversation, without its descriptor: bytes in, bytes out, requests to the pod.
 *
 * A new connection has SESSION_FIRST_MAX bytes to say hello or to attach a stream with the right
 * secret; only then does it get buffers worth the name.
 */
#ifndef GUEST_AGENT_SERVE_SESSION_H
#define GUEST_AGENT_SERVE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/serve/session_env.h"
#include "lib/base/buf.h"
#include "lib/wire/frame.h"

/* The first frame with its header: a secret, an app's name and the envelope fit three times. */
#define SESSION_FIRST_MAX 1024

/*
 * Control connections at a time: one for each further process, the supervisor, and a few commands.
 */
#define SESSION_CONTROL_MAX (AGENT_EXECS_MAX + 8)

/*
 * Replies and notifications that wait for a slow host. Above SESSION_OUT_HIGH no request is
 * processed; above it must fit what may still come by itself: an answer and a notification for each
 * app, a notification for each further process, each call of app.stats, pod.setup and the calls of
 * pod.shutdown, each of at most 1300 bytes.
 */
#define SESSION_OUT_HIGH ((size_t)32 * 1024)
#define SESSION_OUT_MAX     \
	(SESSION_OUT_HIGH + \
	 (size_t)(3 * AGENT_APPS_MAX + AGENT_EXECS_MAX + AGENT_STATS_MAX + 16) * 1300)

enum session_state {
	SESSION_NEW,     /* waits for the first frame */
	SESSION_CONTROL, /* has said hello */
	SESSION_STREAM,  /* has asked for a stream: send out, then session_hand_over() */
	SESSION_CLOSED,  /* send out, then close */
};

struct session {
	enum session_state state;
	struct session_env *env;
	uint64_t serial; /* of the connection, for pod_caller */
	struct buf in, out;
	/* In SESSION_STREAM: which stream, or a socket that is owned, to a port of the pod. */
	struct agent_attach attach;
	int port_fd; /* -EBADF: none */
};

/* A new conversation; @serial names it in pod_caller. @env is borrowed. */
void session_init(struct session *s, struct session_env *env, uint64_t serial);

/* Frees the buffers; the conversation is CLOSED. */
void session_deinit(struct session *s);

/*
 * How many bytes may be appended to s->in now. Of a new connection never more than its first frame,
 * since what follows may be a stream's. 0: none until s->out has been sent, or at the end.
 */
size_t session_wants(const struct session *s);

/* Acts on what is in s->in; replies go to s->out. */
void session_process(struct session *s);

/*
 * Gives @sock, the connection of a session in SESSION_STREAM, to the pod, also on failure. 0 or
 * FAULT_SET.
 */
int session_hand_over(struct session *s, int sock, struct fault *f);

/* Answers request @id; @f is NULL for success. */
void session_answer(struct session *s, int64_t id, const struct fault *f);

/* The answer to app.stats. */
void session_answer_stats(struct session *s, int64_t id, const struct agent_app_stats *m);

/* Append a notification, if the session is a control connection. */
void session_notify_exited(struct session *s, const struct agent_app_exited *m);
void session_notify_exec_started(struct session *s, const struct agent_exec_ref *m);
void session_notify_exec_exited(struct session *s, const struct agent_exec_exited *m);

#endif
