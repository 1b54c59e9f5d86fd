/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/guest-agent/pod/pod_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/seam.h"

char said[8192];
struct loop loop;
struct pod *pod;
struct fault fault;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	size_t len = strlen(said);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(said + len, sizeof(said) - len, fmt, ap);
	va_end(ap);
}

static void on_done(void *ctx, struct pod_caller to, const struct fault *f)
{
	(void)ctx;
	if (f)
		say("%d%d ", (int)to.id, f->code);
	else
		say("%dok ", (int)to.id);
}

static void on_stats(void *ctx, struct pod_caller to, const struct agent_app_stats *m)
{
	(void)ctx;
	say("%dstats%s ", (int)to.id, m->pids > 0 ? "" : "?");
}

static void on_exited(void *ctx, const struct agent_app_exited *m)
{
	(void)ctx;
	say("exit:%s:%d:%d ", m->app, (int)m->code, (int)m->signal);
}

static void on_exec_started(void *ctx, uint64_t conn, const struct agent_exec_ref *m)
{
	(void)ctx;
	say("started:%d:%d ", (int)conn, (int)m->exec);
}

static void on_exec_exited(void *ctx, uint64_t conn, const struct agent_exec_exited *m)
{
	(void)ctx;
	say("exec:%d:%d:%d:%d ", (int)conn, (int)m->exec, (int)m->code, (int)m->signal);
}

static void on_off(void *ctx)
{
	(void)ctx;
	say("off ");
}

void begin(void)
{
	static const struct pod_config config = { .rootfs = { .run_dir = "/run" } };
	const struct pod_events events = { on_done,        on_stats, on_exited, on_exec_started,
					   on_exec_exited, on_off,   NULL };
	seam_reset();
	said[0] = '\0';
	assert_int_equal(loop_init(&loop), 0);
	pod = pod_new(&loop, &config, &events);
	assert_non_null(pod);
}

void end(void)
{
	pod_free(pod);
	loop_deinit(&loop);
}

struct pod_caller caller(int64_t id)
{
	return (struct pod_caller){ 1, id };
}

void expect_said(const char *text)
{
	assert_string_equal(said, text);
	said[0] = '\0';
}

int setup(int64_t id)
{
	struct agent_pod_setup m = { .hostname = "pod", .scratch_lun = -1 };
	return pod_setup(pod, &m, caller(id), &fault);
}

bool with_init;

int add_with(const char *name, int64_t id, bool tty, bool with_stdin, const char *env,
	     const char *cwd)
{
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	agent_app_add_init(&m);
	str_copy(m.app, sizeof(m.app), name);
	str_copy(m.process.cwd, sizeof(m.process.cwd), cwd);
	strv_add(&m.process.exec, "/bin/true");
	strv_add(&m.process.env, env);
	m.process.with_tty = tty;
	m.process.with_stdin = with_stdin;
	m.with_init = with_init;
	return pod_app_add(pod, &m, caller(id), &fault);
}

int add(const char *name, int64_t id)
{
	return add_with(name, id, false, true, "A=b", "");
}

int start(const char *name, int64_t id)
{
	struct agent_app_ref m;
	str_copy(m.app, sizeof(m.app), name);
	return pod_app_start(pod, &m, caller(id), &fault);
}

int send_signal(const char *name, int sig)
{
	struct agent_app_signal m = { .signal = sig };
	str_copy(m.app, sizeof(m.app), name);
	return pod_app_signal(pod, &m, &fault);
}

int shut_down_drained(int64_t grace_ms, int64_t drain_ms, int64_t id)
{
	const struct agent_pod_shutdown m = { .grace_ms = grace_ms, .drain_ms = drain_ms };
	return pod_shutdown(pod, &m, caller(id), &fault);
}

int shut_down(int64_t grace_ms, int64_t id)
{
	return shut_down_drained(grace_ms, 0, id);
}

void expect_refused(int r, int code)
{
	assert_int_equal(r, FAULT_SET);
	assert_int_equal(fault.code, code);
}

void end_job(int code)
{
	assert_true(seam_end_job(code));
	pod_reap(pod);
}

/* The process of the app that was added first and has not mounted says how that went. */
void end_mount(int code)
{
	assert_true(seam_mount_app(code));
	assert_int_equal(loop_turn(&loop), 0);
}

void end_app(int status)
{
	assert_true(seam_end_app(status));
	pod_reap(pod);
}

void begin_ready(void)
{
	begin();
	assert_int_equal(setup(1), POD_PENDING);
	end_job(0);
	expect_said("1ok ");
}

/* A pod that is ready, with app "a" running. */
void begin_running(void)
{
	begin_ready();
	assert_int_equal(add("a", 2), POD_PENDING);
	end_mount(0);
	assert_false(seam.children[0].released);
	assert_int_equal(start("a", 3), 0);
	assert_true(seam.children[0].released);
	expect_said("2ok ");
}

/* As attach_to(); *ret_host is the host's end, the caller's. */
int attach_open(const char *name, int64_t exec, enum agent_stream stream, int *ret_host)
{
	int fds[2];
	struct agent_attach m = { .stream = stream, .exec = exec };
	str_copy(m.app, sizeof(m.app), name);
	if (pod_attach_check(pod, &m, &fault) != 0)
		return FAULT_SET;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	*ret_host = fds[1];
	return pod_attach(pod, &m, fds[0], &fault);
}

int attach_to(const char *name, int64_t exec, enum agent_stream stream)
{
	int host = -EBADF;
	int r = attach_open(name, exec, stream, &host);
	fd_close(host);
	return r;
}
