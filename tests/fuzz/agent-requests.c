/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile host: bytes of several connections, in any order with the events of the pod. Below the
 * decisions of the agent the machine is played (tests/unit/guest-agent/seam.c).
 *
 * Input: a sequence of steps. The low three bits of a step's first byte say what it is, the next
 * two which connection it is for; FEED and FRAME have a 16-bit big-endian length and that many
 * bytes.
 */
#include <assert.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "guest-agent/serve/session.h"
#include "lib/os/fd.h"
#include "tests/unit/guest-agent/seam.h"

#define CONNS     4
#define SECRET    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define STEPS_MAX 256

enum step {
	STEP_FEED,    /* bytes as they are */
	STEP_FRAME,   /* bytes as the payload of a frame */
	STEP_JOB,     /* the oldest job ends; bit 5: badly */
	STEP_APP,     /* the oldest app ends; bit 5: by a signal */
	STEP_READ,    /* the host reads what was answered */
	STEP_RENEW,   /* the connection ends, a new one begins */
	STEP_NO_FORK, /* bit 5: no process can be started from now on */
	STEP_HELLO,   /* a right hello */
};

static struct session sessions[CONNS];
static struct session_env env;
static struct loop loop;

static void on_done(void *ctx, struct pod_caller to, const struct fault *f)
{
	(void)ctx;
	for (int i = 0; i < CONNS; i++)
		if (sessions[i].serial == to.conn)
			session_answer(&sessions[i], to.id, f);
}

static void on_stats(void *ctx, struct pod_caller to, const struct agent_app_stats *m)
{
	(void)ctx;
	for (int i = 0; i < CONNS; i++)
		if (sessions[i].serial == to.conn)
			session_answer_stats(&sessions[i], to.id, m);
}

static void on_exited(void *ctx, const struct agent_app_exited *m)
{
	(void)ctx;
	for (int i = 0; i < CONNS; i++)
		session_notify_exited(&sessions[i], m);
}

static void on_exec_started(void *ctx, uint64_t conn, const struct agent_exec_ref *m)
{
	(void)ctx;
	for (int i = 0; i < CONNS; i++)
		if (sessions[i].serial == conn)
			session_notify_exec_started(&sessions[i], m);
}

static void on_exec_exited(void *ctx, uint64_t conn, const struct agent_exec_exited *m)
{
	(void)ctx;
	for (int i = 0; i < CONNS; i++)
		if (sessions[i].serial == conn)
			session_notify_exec_exited(&sessions[i], m);
}

static void on_off(void *ctx)
{
	(void)ctx;
}

static void renew(struct session *s)
{
	static uint64_t serial;
	if (s->state != SESSION_STREAM)
		pod_conn_closed(env.pod, s->serial);
	session_deinit(s);
	session_init(s, &env, ++serial);
}

/* What the server does with a session that wants a stream. */
static void hand_over(struct session *s)
{
	int fds[2];
	struct fault f;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	session_hand_over(s, fds[0], &f);
	fd_close(fds[1]);
	renew(s);
}

static void feed(struct session *s, const uint8_t *data, size_t len)
{
	size_t want;
	while (len > 0 && (want = session_wants(s)) > 0) {
		size_t n = MIN(want, len);
		if (buf_append(&s->in, data, n) < 0)
			abort();
		data += n;
		len -= n;
		session_process(s);
		if (buf_len(&s->out) > SESSION_OUT_MAX)
			abort();
	}
	if (s->state == SESSION_STREAM)
		hand_over(s);
}

static void feed_frame(struct session *s, const uint8_t *data, size_t len)
{
	const uint8_t header[FRAME_HEADER_LEN] = { 0, 0, (uint8_t)(len >> 8), (uint8_t)len };
	feed(s, header, sizeof(header));
	feed(s, data, len);
}

static void step(uint8_t what, const uint8_t *data, size_t len)
{
	static const char hello[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"agent.hello\","
				    "\"params\":{\"version_min\":1,\"version_max\":1,"
				    "\"secret\":\"" SECRET "\"}}";
	struct session *s = &sessions[what >> 3 & (CONNS - 1)];
	bool flag = what & 0x20;
	switch ((enum step)(what & 7)) {
	case STEP_FEED:
		feed(s, data, len);
		break;
	case STEP_FRAME:
		feed_frame(s, data, len);
		break;
	case STEP_JOB:
		if (!seam_end_job(flag ? AGENT_E_DISK : 0) &&
		    seam_mount_app(flag ? AGENT_E_USER : 0))
			loop_turn(&loop);
		pod_reap(env.pod);
		break;
	case STEP_APP:
		seam_end_app(flag ? 9 : 203 << 8);
		pod_reap(env.pod);
		break;
	case STEP_READ:
		buf_consume(&s->out, buf_len(&s->out));
		session_process(s);
		break;
	case STEP_RENEW:
		renew(s);
		break;
	case STEP_NO_FORK:
		seam.no_fork = flag;
		break;
	case STEP_HELLO:
		feed_frame(s, (const uint8_t *)hello, sizeof(hello) - 1);
		break;
	}
}

static void run(const uint8_t *data, size_t size)
{
	for (int i = 0; size > 0 && i < STEPS_MAX; i++) {
		uint8_t what = *data++;
		size_t len = 0;
		size--;
		if ((what & 7) == STEP_FEED || (what & 7) == STEP_FRAME) {
			if (size < 2)
				return;
			len = MIN((size_t)(data[0] << 8 | data[1]), size - 2);
			data += 2;
			size -= 2;
		}
		step(what, data, len);
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct pod_config config = { .rootfs = { .run_dir = "/run" } };
	const struct pod_events events = { on_done,        on_stats, on_exited, on_exec_started,
					   on_exec_exited, on_off,   NULL };
	signal(SIGPIPE, SIG_IGN); /* as the agent does */
	seam_reset();
	if (loop_init(&loop) < 0)
		abort();
	env = (struct session_env){ .pod = pod_new(&loop, &config, &events), .secret = SECRET };
	if (!env.pod)
		abort();
	for (int i = 0; i < CONNS; i++)
		session_init(&sessions[i], &env, 0);
	for (int i = 0; i < CONNS; i++)
		renew(&sessions[i]);
	run(data, size);
	for (int i = 0; i < CONNS; i++)
		session_deinit(&sessions[i]);
	if (env.n_control != 0)
		abort();
	pod_free(env.pod);
	loop_deinit(&loop);
	return 0;
}
