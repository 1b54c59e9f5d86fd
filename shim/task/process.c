/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"

int process_init(struct process *p, const char *in, const char *out, const char *err, bool terminal)
{
	const char *const paths[STDIO_COUNT] = { in, out, err };
	*p = (struct process){ .exec_id = "",
			       .status = PROCESS_CREATED,
			       .terminal = terminal,
			       .stdio = STDIO_NONE,
			       .control = CONTROL_NONE };
	for (int i = 0; i < STDIO_COUNT; i++) {
		p->paths[i] = strdup(paths[i]);
		if (!p->paths[i]) {
			process_deinit(p);
			return -ENOMEM;
		}
	}
	return 0;
}

void process_deinit(struct process *p)
{
	if (p->status == PROCESS_UNKNOWN)
		return;
	job_free(p->streams);
	loop_timer_disarm(&p->rest);
	stdio_close(&p->stdio);
	control_close(&p->control);
	for (int i = 0; i < STDIO_COUNT; i++)
		free(p->paths[i]);
	free(p->waiters);
	*p = (struct process){ .status = PROCESS_UNKNOWN };
}

void answer_with(struct ttrpc_server *s, uint64_t token, const ProtobufCMessage *m)
{
	size_t len = 0;
	cleanup_free uint8_t *bytes = proto_pack(m, &len);
	if (bytes)
		ttrpc_server_answer(s, token, bytes, len);
	else
		ttrpc_server_refuse(s, token, TTRPC_RESOURCE_EXHAUSTED, "out of memory");
}

static void tell(const struct process *p, struct ttrpc_server *s, uint64_t token)
{
	Task__Timestamp at = proto_timestamp(p->exited_ns);
	Task__WaitResponse m;
	task__wait_response__init(&m);
	m.exit_status = p->exit_status;
	m.exited_at = &at;
	answer_with(s, token, &m.base);
}

/* Those whose connections are gone will never be told. */
static void drop_gone(struct process *p, const struct ttrpc_server *s)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_waiters; i++)
		if (ttrpc_server_waits(s, p->waiters[i]))
			p->waiters[n++] = p->waiters[i];
	p->n_waiters = n;
}

void process_wait(struct process *p, struct ttrpc_server *s, uint64_t token)
{
	if (p->status == PROCESS_STOPPED) {
		tell(p, s, token);
		return;
	}
	if (p->n_waiters == PROCESS_WAITERS_MAX)
		drop_gone(p, s);
	uint64_t *waiters = p->n_waiters < PROCESS_WAITERS_MAX
				    ? reallocarray(p->waiters, p->n_waiters + 1, sizeof(*waiters))
				    : NULL;
	if (!waiters) {
		ttrpc_server_refuse(s, token, TTRPC_RESOURCE_EXHAUSTED,
				    "too many wait for the process");
		return;
	}
	p->waiters = waiters;
	p->waiters[p->n_waiters++] = token;
}

void process_end(struct process *p, struct ttrpc_server *s, uint32_t exit_status, int64_t exited_ns)
{
	p->status = PROCESS_STOPPED;
	p->exit_status = exit_status;
	p->exited_ns = exited_ns;
	for (size_t i = 0; i < p->n_waiters; i++)
		tell(p, s, p->waiters[i]);
	p->n_waiters = 0;
}
