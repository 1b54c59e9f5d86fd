/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/app_end.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "stage1/pod/podfiles.h"

int app_end_status(const struct agent_app_exited *m, int stop_signal)
{
	bool is_ours = m->signal == stop_signal || (m->signal == SIGKILL && !m->oom);
	if (stop_signal && is_ours)
		return 0;
	return m->signal ? (int)m->signal : (int)m->code;
}

static void print_message(const struct agent_app_exited *m)
{
	struct err text = ERR_INIT; /* makes the agent's words printable */
	err_set(&text, -EIO, "app \"%s\": Error: %s", m->app, m->message);
	dprintf(STDERR_FILENO, "stage1: %s\n", text.text);
}

static void print_oom(const struct agent_app_exited *m, int64_t memory_max)
{
	if (memory_max > 0)
		dprintf(STDERR_FILENO,
			"stage1: app \"%s\": killed: out of memory (limit %jd bytes; raise its "
			"--memory)\n",
			m->app, (intmax_t)memory_max);
	else
		dprintf(STDERR_FILENO,
			"stage1: app \"%s\": killed: out of memory (give the pod more with "
			"--memory)\n",
			m->app);
}

/*
 * The status last: who sees it may look for the reason. Where that has no room, as on a full disk,
 * the status says itself that a signal ended the app, as a shell has it: there is space for that.
 */
static int app_end_record(int pod_fd, const struct agent_app_exited *m, int status)
{
	int oom = m->oom ? podfiles_note_oom(pod_fd, m->app) : 0;
	int reason = podfiles_note_reason(pod_fd, m->app, (int)m->signal, m->message);
	if (reason < 0 && m->signal && status)
		status = 128 + (int)m->signal;
	int exited = podfiles_note_exited(pod_fd, m->app, status);
	if (exited < 0)
		return exited;
	return oom < 0 ? oom : reason;
}

void app_end_note(int pod_fd, const struct agent_app_exited *m, int status, int64_t memory_max)
{
	struct err e = ERR_INIT;
	int r = app_end_record(pod_fd, m, status);
	if (r < 0) {
		err_sys(&e, r,
			"pod directory: cannot record all of the end of app \"%s\", whose status is %d",
			m->app, status);
		dprintf(STDERR_FILENO, "stage1: %s\n", e.text);
	}
	if (m->oom)
		print_oom(m, memory_max);
	if (m->message[0])
		print_message(m);
}
