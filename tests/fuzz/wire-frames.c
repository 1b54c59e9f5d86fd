/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent protocol as either side sees it: bytes arrive in pieces, frames are cut out of them,
 * are decoded as JSON-RPC and, by their method, as messages. The first byte sets the size of the
 * pieces. Properties: a frame is accepted or the stream given up for good; what a decoder accepts
 * keeps its limits, encodes again and fits a frame; nothing depends on how the bytes were cut.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/agent.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

/* A message that was decoded can be sent: @body is what it was encoded to, or @r why not. */
static void check_sendable(int r, struct json_object *body)
{
	cleanup_buf struct buf out;
	buf_init(&out, FRAME_MAX);
	check(r == 0 || r == -EILSEQ);
	if (r == 0)
		check(rpc_append_request(&out, 1, "m", body) == 0);
}

/* For messages without owned memory: decode, encode, decode, compare. */
#define DEFINE_TRY(name)                                               \
	static void try_##name(struct json_object *body)               \
	{                                                              \
		struct agent_##name m, back;                           \
		memset(&m, 0, sizeof(m));                              \
		memset(&back, 0, sizeof(back));                        \
		if (agent_##name##_decode(body, &m) != 0)              \
			return;                                        \
		struct json_object *out = NULL;                        \
		int r = agent_##name##_encode(&m, &out);               \
		if (r == 0)                                            \
			check(agent_##name##_decode(out, &back) == 0); \
		check_sendable(r, out);                                \
	}

DEFINE_TRY(hello)
DEFINE_TRY(hello_reply)
DEFINE_TRY(attach)
DEFINE_TRY(connect)
DEFINE_TRY(pod_setup)
DEFINE_TRY(app_ref)
DEFINE_TRY(app_signal)
DEFINE_TRY(app_freeze)
DEFINE_TRY(app_resize)
DEFINE_TRY(app_update)
DEFINE_TRY(pod_clock)
DEFINE_TRY(pod_shutdown)
DEFINE_TRY(app_exited)
DEFINE_TRY(info)
DEFINE_TRY(exec_ref)
DEFINE_TRY(exec_signal)
DEFINE_TRY(exec_resize)
DEFINE_TRY(exec_exited)
DEFINE_TRY(app_stats)

static void check_list(const struct strv *sv, size_t max)
{
	check(sv->n <= max);
	for (size_t i = 0; i < sv->n; i++)
		check(strlen(sv->v[i]) <= AGENT_STRING_MAX);
}

static void check_process(const struct agent_process *p)
{
	check(p->exec.n > 0);
	check_list(&p->exec, AGENT_EXEC_MAX);
	check_list(&p->env, AGENT_ENV_MAX);
}

static void try_app_add(struct json_object *body)
{
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	agent_app_add_init(&m);
	if (agent_app_add_decode(body, &m) != 0)
		return;
	check(agent_name_is_valid(m.app));
	check_process(&m.process);
	cleanup_json struct json_object *out = NULL;
	int r = agent_app_add_encode(&m, &out);
	check(r == 0 || r == -EILSEQ);
}

static void try_app_exec(struct json_object *body)
{
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	agent_app_exec_init(&m);
	if (agent_app_exec_decode(body, &m) != 0)
		return;
	check(agent_name_is_valid(m.app));
	check_process(&m.process);
	check_list(&m.groups, AGENT_GROUPS_MAX);
	cleanup_json struct json_object *out = NULL;
	int r = agent_app_exec_encode(&m, &out);
	check(r == 0 || r == -EILSEQ);
}

/*
 * The decoders whose names DEFINE_TRY() puts together, for those who search:
 * agent_hello_decode agent_hello_reply_decode agent_attach_decode agent_connect_decode
 * agent_pod_setup_decode
 * agent_app_add_decode agent_app_ref_decode agent_app_signal_decode agent_app_resize_decode
 * agent_pod_shutdown_decode agent_app_exited_decode agent_info_decode agent_app_exec_decode
 * agent_exec_ref_decode agent_exec_signal_decode agent_exec_resize_decode agent_exec_exited_decode
 * agent_app_stats_decode agent_app_freeze_decode agent_app_update_decode agent_pod_clock_decode
 */
static const struct {
	const char *method;
	void (*try)(struct json_object *body);
} methods[] = {
	{ AGENT_HELLO, try_hello },
	{ AGENT_ATTACH, try_attach },
	{ AGENT_CONNECT, try_connect },
	{ AGENT_POD_SETUP, try_pod_setup },
	{ AGENT_POD_CLOCK, try_pod_clock },
	{ AGENT_POD_SHUTDOWN, try_pod_shutdown },
	{ AGENT_APP_ADD, try_app_add },
	{ AGENT_APP_START, try_app_ref },
	{ AGENT_APP_STATS, try_app_ref },
	{ AGENT_APP_SIGNAL, try_app_signal },
	{ AGENT_APP_FREEZE, try_app_freeze },
	{ AGENT_APP_RESIZE, try_app_resize },
	{ AGENT_APP_UPDATE, try_app_update },
	{ AGENT_APP_EXITED, try_app_exited },
	{ AGENT_APP_EXEC, try_app_exec },
	{ AGENT_EXEC_STARTED, try_exec_ref },
	{ AGENT_EXEC_SIGNAL, try_exec_signal },
	{ AGENT_EXEC_RESIZE, try_exec_resize },
	{ AGENT_EXEC_EXITED, try_exec_exited },
};

static void try_message(const struct rpc_msg *m)
{
	switch (m->kind) {
	case RPC_REQUEST:
	case RPC_NOTIFICATION:
		check(strlen(m->method) <= RPC_METHOD_MAX);
		for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
			if (strcmp(m->method, methods[i].method) == 0)
				methods[i].try(m->body);
		break;
	case RPC_RESULT: /* what was asked is not in the message */
		try_hello_reply(m->body);
		try_info(m->body);
		try_exec_ref(m->body);
		try_app_stats(m->body);
		break;
	case RPC_ERROR:
		check(strlen(m->text) <= RPC_ERROR_TEXT_MAX);
		break;
	}
}

/* Takes all whole frames out of @in. False if the stream is useless from here. */
static bool drain(struct buf *in, size_t *frames)
{
	for (;;) {
		const char *p;
		size_t len;
		int r = frame_peek(in, &p, &len);
		if (r == FRAME_INCOMPLETE)
			return true;
		if (r < 0)
			return false;
		check(len >= 1 && len <= FRAME_PAYLOAD_MAX);
		(*frames)++;
		CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
		r = rpc_decode(p, len, &m);
		check(r == 0 || r == -EBADMSG);
		if (r == 0)
			try_message(&m);
		frame_consume(in, len);
	}
}

/* Feeds the bytes in pieces of @step. The number of frames seen. */
static size_t feed(const uint8_t *data, size_t size, size_t step)
{
	cleanup_buf struct buf in;
	buf_init(&in, FRAME_MAX);
	size_t frames = 0;
	while (size > 0) {
		size_t n = MIN(MIN(size, step), buf_room(&in));
		check(n > 0); /* a whole frame always fits */
		check(buf_append(&in, data, n) == 0);
		if (!drain(&in, &frames))
			break;
		data += n;
		size -= n;
	}
	return frames;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t step = (size_t)data[0] + 1;
	size_t frames = feed(data + 1, size - 1, step);
	check(frames == feed(data + 1, size - 1, FRAME_MAX));
	return 0;
}
