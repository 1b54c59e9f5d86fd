/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile agent: the bytes that a control connection gives to the supervisor, through the
 * decoders that it uses. What a decoder accepts must satisfy the limits and survive encoding.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/wire/agent.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Decodes; if that works, encodes, decodes and encodes again: both texts must be equal. */
#define ROUND_TRIP(name, body, ret_ok)                                            \
	({                                                                        \
		static struct agent_##name a, b;                                  \
		ret_ok = agent_##name##_decode(body, &a) == 0;                    \
		if (ret_ok) {                                                     \
			cleanup_json struct json_object *one = NULL, *two = NULL; \
			require(agent_##name##_encode(&a, &one) == 0);            \
			require(agent_##name##_decode(one, &b) == 0);             \
			require(agent_##name##_encode(&b, &two) == 0);            \
			require(json_object_equal(one, two));                     \
		}                                                                 \
		&a;                                                               \
	})

static void try_bodies(struct json_object *body)
{
	bool ok;
	ROUND_TRIP(hello_reply, body, ok);
	ROUND_TRIP(info, body, ok);
	const struct agent_app_stats *stats = ROUND_TRIP(app_stats, body, ok);
	require(!ok || (stats->cpu_usec >= -1 && stats->oom_kills >= -1));
	const struct agent_app_exited *m = ROUND_TRIP(app_exited, body, ok);
	if (!ok)
		return;
	require(agent_name_is_valid(m->app));
	require(m->code >= 0 && m->code <= 255);
	require(m->signal >= 0 && m->signal <= AGENT_SIGNAL_MAX);
	require(strlen(m->message) <= AGENT_TEXT_MAX);
}

static void try_message(const char *payload, size_t len)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
	if (rpc_decode(payload, len, &m) < 0)
		return;
	require(m.id >= 0 && m.id <= RPC_ID_MAX);
	require(strlen(m.method) <= RPC_METHOD_MAX && strlen(m.text) <= RPC_ERROR_TEXT_MAX);
	if (m.kind == RPC_RESULT || m.kind == RPC_NOTIFICATION)
		try_bodies(m.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_buf struct buf in;
	buf_init(&in, FRAME_MAX);
	while (size > 0) {
		size_t n = MIN(size, buf_room(&in));
		if (buf_append(&in, data, n) < 0)
			return 0;
		data += n;
		size -= n;
		const char *payload;
		size_t len;
		int r;
		while ((r = frame_peek(&in, &payload, &len)) == 0) {
			try_message(payload, len);
			frame_consume(&in, len);
		}
		if (r < 0)
			return 0; /* the supervisor closes the connection */
	}
	return 0;
}
