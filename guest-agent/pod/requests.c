/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that leave the states of pod and apps alone. */
#include <errno.h>
#include <stdio.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/pod/check.h"
#include "guest-agent/pod/pod_int.h"
#include "lib/os/fd.h"

int pod_app_signal(struct pod *pod, const struct agent_app_signal *m, struct fault *f)
{
	struct app *app = pod_need_app(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	if (app->state != APP_RUNNING)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" is not running", m->app);
	int r = m->all ? cgroup_signal(&pod->config.cgroup_dir, app->cgroup, (int)m->signal,
				       app->process.pid)
		       : 0;
	if (r == 0 || r == -EOPNOTSUPP) /* then the main process is all that is known */
		r = app_signal(app, (int)m->signal);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\": signal", m->app) : 0;
}

int pod_app_freeze(struct pod *pod, const struct agent_app_freeze *m, struct fault *f)
{
	struct app *app = pod_need_running(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	int r = cgroup_freeze(&pod->config.cgroup_dir, app->cgroup, m->frozen);
	if (r == -EOPNOTSUPP)
		return fault_set(f, AGENT_E_STATE,
				 "app \"%s\": it cannot be paused without control groups of "
				 "version 2",
				 m->app);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\": pause", m->app);
	app->frozen = m->frozen;
	return 0;
}

int pod_app_resize(struct pod *pod, const struct agent_app_resize *m, struct fault *f)
{
	const struct app *app = pod_need_app(pod, m->app, f);
	char whom[AGENT_NAME_MAX + 8];
	if (!app)
		return FAULT_SET;
	snprintf(whom, sizeof(whom), "app \"%s\"", m->app);
	return streams_resize(&app->io, m->rows, m->cols, whom, f);
}

int pod_app_stats(struct pod *pod, const struct agent_app_ref *m, struct pod_caller caller,
		  struct fault *f)
{
	const struct app *app = pod_need_running(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	int r = stats_start(pod->stats, app->cgroup, caller, f);
	return r == 0 ? POD_PENDING : r;
}

/* The stream that @m is about, if it can be attached now. NULL and @f if not. */
static struct stream *find_stream(struct pod *pod, const struct agent_attach *m, struct fault *f)
{
	struct app *app = pod_need_app(pod, m->app, f);
	struct streams *io = app ? &app->io : NULL;
	char text[AGENT_NAME_MAX + 8];
	const char *whom = text;
	snprintf(text, sizeof(text), "app \"%s\"", m->app);
	if (app && m->exec != 0)
		io = exec_streams(pod->execs, m->app, m->exec, &whom, f);
	if (!io || streams_attach_check(io, m->stream, whom, f) != 0)
		return NULL;
	return &io->streams[m->stream];
}

int pod_attach_check(struct pod *pod, const struct agent_attach *m, struct fault *f)
{
	return find_stream(pod, m, f) ? 0 : FAULT_SET;
}

int pod_attach(struct pod *pod, const struct agent_attach *m, int sock, struct fault *f)
{
	cleanup_fd int owned = sock;
	struct stream *stream = find_stream(pod, m, f);
	if (!stream)
		return FAULT_SET;
	stream->end_in = m->end_stdin;
	int r = stream_attach(stream, TAKE_FD(owned));
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\"", m->app) : 0;
}

int pod_connect(struct pod *pod, int64_t port, int *ret_fd, struct fault *f)
{
	if (!pod->ports)
		pod->ports = ports_new(pod->loop);
	if (!pod->ports)
		return fault_set(f, AGENT_E_INTERNAL, "out of memory");
	return ports_connect(pod->ports, port, ret_fd, f);
}

int pod_attach_port(struct pod *pod, int fd, int sock, struct fault *f)
{
	return ports_attach(pod->ports, fd, sock, f);
}

/* --- further processes --- */

int pod_app_exec(struct pod *pod, const struct agent_app_exec *m, uint64_t owner, int64_t *ret,
		 struct fault *f)
{
	const struct app *app = pod_need_running(pod, m->app, f);
	if (!app)
		return FAULT_SET;
	if (app->frozen)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" is paused", m->app);
	int r = check_process(&m->process, f);
	return r == 0 ? exec_start(pod->execs, app, m, owner, ret, f) : r;
}

int pod_exec_signal(struct pod *pod, const struct agent_exec_signal *m, uint64_t owner,
		    struct fault *f)
{
	return exec_signal(pod->execs, m, owner, f);
}

int pod_exec_resize(struct pod *pod, const struct agent_exec_resize *m, uint64_t owner,
		    struct fault *f)
{
	return exec_resize(pod->execs, m, owner, f);
}
