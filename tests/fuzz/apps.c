/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile agent, and a backend that does what it likes, behind the table of apps of a mutable
 * pod, while people add, start, stop and remove. Each request is answered at most once; nothing
 * grows.
 *
 * Input: steps of two bytes, WHAT and DETAIL; STEP_BYTES has DETAIL bytes behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/rmtree.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/stage1.h"
#include "stage1/apps/apps.h"
#include "tests/support/fake_backend.h"

#define STEPS_MAX 128
#define N_APPS    4

enum step {
	STEP_REQUEST, /* DETAIL: verb, app, and whether there is a grace period */
	STEP_RESULT,  /* to the call that DETAIL chooses among those that may be outstanding */
	STEP_ERROR,
	STEP_EXITED, /* of the app DETAIL */
	STEP_BYTES,
	STEP_BACKEND, /* DETAIL: 0 agrees, 1 refuses, 2 refuses and leaves something behind */
	STEP_TIME,    /* all time limits pass */
	STEP_LEAVE,   /* whoever sent the request DETAIL has gone */
	STEP_COUNT_,
};

struct world {
	struct loop loop;
	struct timeline timeline;
	struct pod_plan plan;
	struct control control;
	struct backend_pod pod;
	struct apps *apps;
	int peer;
	uint64_t last_token;
	bool answered[STEPS_MAX + 1];
};

static void check(bool property)
{
	if (!property)
		abort();
}

static void on_started(void *ctx)
{
	(void)ctx;
}

static void on_exited(void *ctx, int status, bool on_request)
{
	(void)ctx;
	(void)status;
	(void)on_request;
}

static void on_why(void *ctx, const struct err *why)
{
	(void)ctx;
	(void)why;
}

static void on_done(void *ctx, uint64_t token, const struct err *why)
{
	struct world *w = ctx;
	(void)why;
	check(token > 0 && token <= w->last_token && !w->answered[token]);
	w->answered[token] = true;
}

static const struct apps_ops apps_ops = { on_started, on_exited, on_why, on_why, on_done };

static void on_reply(void *ctx, int id, const struct rpc_msg *msg)
{
	struct world *w = ctx;
	if (id < APPS_CALL_END)
		apps_take_reply(w->apps, id, msg);
}

static void on_notification(void *ctx, const struct rpc_msg *msg)
{
	struct world *w = ctx;
	struct agent_app_exited m;
	if (agent_app_exited_decode(msg->body, &m) == 0)
		apps_take_exited(w->apps, &m);
}

static const struct control_ops control_ops = { on_reply, on_notification, on_why };

static void put(int dir, const char *name, const char *text)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	check(fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0);
}

static char path[] = "/tmp/husk-fuzz-apps.XXXXXX";

static void remove_dir(void)
{
	rmtree(AT_FDCWD, path);
}

/* One pod directory for all runs. */
static int pod_dir(void)
{
	static int fd = -EBADF;
	char text[1024], name[32];
	if (fd >= 0)
		return fd;
	check(mkdtemp(path) != NULL && atexit(remove_dir) == 0);
	check(signal(SIGPIPE, SIG_IGN) != SIG_ERR); /* of a connection that was given up */
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	check(fd >= 0 && mkdirat(fd, POD_DIR_STATUS, 0700) == 0);
	check(mkdirat(fd, POD_DIR_APPS, 0700) == 0);
	size_t len = (size_t)snprintf(
		text, sizeof(text),
		"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"annotations\":[{\"name\":"
		"\"husk/mutable\",\"value\":\"true\"}],\"apps\":[");
	for (int i = 0; i < N_APPS; i++) {
		snprintf(name, sizeof(name), POD_DIR_APPS "/a%d", i);
		check(mkdirat(fd, name, 0700) == 0);
		snprintf(name, sizeof(name), POD_DIR_APPS "/a%d/" POD_FILE_ROOTFS, i);
		put(fd, name, "x");
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s{\"name\":\"a%d\",\"image\":{\"id\":\"sha256-00\"},"
					"\"app\":{\"exec\":[\"x\"],\"workingDirectory\":\"/\"}}",
					i > 0 ? "," : "", i);
	}
	snprintf(text + len, sizeof(text) - len, "]}");
	put(fd, POD_FILE_MANIFEST, text);
	return fd;
}

static void begin(struct world *w)
{
	struct err e = ERR_INIT;
	int ends[2];
	memset(w, 0, sizeof(*w));
	check(loop_init(&w->loop) == 0 && unix_pair(ends) == 0);
	check(fd_set_nonblock(ends[0], true) == 0 && fd_set_nonblock(ends[1], true) == 0);
	w->peer = ends[1];
	check(control_open(&w->control, &w->loop, ends[0], &control_ops, w) == 0);
	w->plan.is_mutable = true;
	const struct apps_config config = {
		.loop = &w->loop,
		.timeline = &w->timeline,
		.plan = &w->plan,
		.secret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
		.pod_fd = pod_dir(),
		.backend = &fake_backend,
		.pod = &w->pod,
		.only_log = true,
		.control = &w->control,
	};
	check(apps_new(&config, &apps_ops, w, &w->apps, &e) == 0);
}

static void end(struct world *w)
{
	apps_free(w->apps);
	control_close(&w->control);
	check(!w->loop.timers);
	loop_deinit(&w->loop);
	fd_close(w->peer);
}

/* What is due happens, as often as one input can cause it. */
static void turns(struct world *w)
{
	char mem[4096];
	for (int i = 0; i < 64; i++) {
		struct epoll_event ev;
		bool due = epoll_wait(w->loop.epoll_fd, &ev, 1, 0) > 0;
		for (struct loop_timer *t = w->loop.timers; t; t = t->next)
			due |= t->deadline_ns <= clock_monotonic_ns();
		if (!due)
			break;
		check(loop_turn(&w->loop) == 0);
	}
	while (read(w->peer, mem, sizeof(mem)) > 0) /* what we ask does not matter */
		;
}

static void request(struct world *w, uint8_t detail)
{
	struct err e = ERR_INIT;
	struct app_request q = { .verb = (enum app_verb)(detail % APP_VERB_COUNT_),
				 .grace_ms = detail & 0x80 ? AGENT_GRACE_MS_MAX : 0,
				 .signal = detail % AGENT_SIGNAL_MAX + 1 };
	snprintf(q.app, sizeof(q.app), "a%d", (detail >> 2) % (N_APPS + 1));
	uint64_t token = ++w->last_token;
	int r = apps_request(w->apps, &q, token, &e);
	check(r <= APPS_PENDING && (r >= 0 || e.text[0]));
	check(r == APPS_PENDING || !w->answered[token]);
}

static void says(struct world *w, const char *json)
{
	cleanup_buf struct buf b;
	buf_init(&b, FRAME_MAX);
	check(frame_append(&b, json, strlen(json)) == 0);
	check(write(w->peer, buf_data(&b), buf_len(&b)) >= -1);
}

static void agent(struct world *w, enum step what, uint8_t detail)
{
	char json[256];
	int id = APPS_CALL_ID((detail >> 3) % APPS_CALL_COUNT_, detail % 8);
	if (w->control.loop && !w->control.outstanding[id])
		return;
	snprintf(json, sizeof(json),
		 what == STEP_RESULT ? "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}"
				     : "{\"jsonrpc\":\"2.0\",\"id\":%d,\"error\":"
				       "{\"code\":-32000,\"message\":\"no\"}}",
		 id);
	says(w, json);
}

static void exited(struct world *w, uint8_t detail)
{
	char json[256];
	snprintf(json, sizeof(json),
		 "{\"jsonrpc\":\"2.0\",\"method\":\"app.exited\",\"params\":{\"app\":\"a%d\","
		 "\"code\":%d,\"signal\":0,\"oom\":false,\"message\":\"\"}}",
		 detail % (N_APPS + 1), detail >> 4);
	says(w, json);
}

static void step(struct world *w, enum step what, uint8_t detail)
{
	switch (what) {
	case STEP_REQUEST:
		request(w, detail);
		break;
	case STEP_RESULT:
	case STEP_ERROR:
		agent(w, what, detail);
		break;
	case STEP_EXITED:
		exited(w, detail);
		break;
	case STEP_BACKEND:
		fake_backend_answer(&w->pod, detail % 3 ? "no" : NULL, detail % 3 == 2);
		break;
	case STEP_TIME:
		for (struct loop_timer *t = w->loop.timers; t; t = t->next)
			t->deadline_ns = 0;
		break;
	case STEP_LEAVE:
		if (detail > 0 && detail <= w->last_token)
			apps_forget(w->apps, detail);
		break;
	case STEP_BYTES:
	case STEP_COUNT_:
		break;
	}
	turns(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w;
	begin(&w);
	for (int i = 0; i < STEPS_MAX && size >= 2; i++) {
		enum step what = (enum step)(data[0] % STEP_COUNT_);
		uint8_t detail = data[1];
		data += 2;
		size -= 2;
		if (what == STEP_BYTES) {
			size_t n = MIN((size_t)detail, size);
			check(write(w.peer, data, n) >= -1);
			data += n;
			size -= n;
		}
		step(&w, what, detail);
	}
	struct err why = ERR_INIT;
	err_set(&why, -ESHUTDOWN, "over");
	apps_abort(w.apps, &why);
	end(&w);
	return 0;
}
