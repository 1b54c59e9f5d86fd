/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk events
 *
 * A reader that is slow holds the command up, not the pods: a line is written when there is room
 * for it, and until then only signals are heard. A line is shorter than PIPE_BUF, so a pipe takes
 * it whole. What happens meanwhile is found afterwards, as far as it still shows.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/cli/data_dir.h"
#include "host/cli/format/show.h"
#include "host/cli/pods.h"
#include "host/events/events.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define LINE_MAX_LEN 1024 /* names, a UUID, a time and numbers: 300 bytes */

/* What the callbacks return to end the watcher. */
enum {
	GO_ON,
	ENOUGH,
};

struct events_opts {
	const char *uuid_file;
	bool replay;
};

static const struct flag flags[] = {
	FLAG_SWITCH("replay", struct events_opts, replay,
		    "begin with what has happened to the pods that are there"),
	FLAG_UUID_FILE(struct events_opts),
};

struct stream {
	struct cli *cli;
	struct loop loop;
	int signal_fd;
	struct loop_watch signal_watch, reader_watch;
	struct err failure; /* of writing */
};

/* True when there is room for a line; false if there never will be, or a signal says to end. */
static bool wait_for_reader(const struct stream *s)
{
	struct pollfd fds[] = { { .fd = STDOUT_FILENO, .events = POLLOUT },
				{ .fd = s->signal_fd, .events = POLLIN } };
	int n;
	do
		n = poll(fds, ARRAY_SIZE(fds), -1);
	while (n < 0 && errno == EINTR);
	return n > 0 && !fds[1].revents && fds[0].revents == POLLOUT;
}

/* Consumes @obj. GO_ON or ENOUGH. */
static int write_line(struct stream *s, struct json_object *obj)
{
	cleanup_buf struct buf line;
	buf_init(&line, LINE_MAX_LEN);
	int r = obj ? json_write(obj, false, &line) : -ENOMEM;
	if (r == 0)
		r = buf_puts(&line, "\n");
	json_object_put(obj);
	if (r == 0 && !wait_for_reader(s))
		return ENOUGH;
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, buf_data(&line), buf_len(&line));
	if (r < 0 && r != -EPIPE)
		err_sys(&s->failure, r, "cannot write to standard output");
	return r < 0 ? ENOUGH : GO_ON;
}

static int on_event(void *ctx, const struct uuid *pod, const struct pod_event *ev)
{
	return write_line(ctx, show_event_json(pod, ev));
}

static int on_live(void *ctx)
{
	return write_line(ctx, show_live_json(clock_realtime_ns()));
}

static void on_problem(void *ctx, const struct err *e)
{
	const struct stream *s = ctx;
	cli_message(s->cli, "%s", e->text);
}

/* A signal, or a reader that is gone. */
static void on_end(void *ctx, uint32_t events)
{
	struct stream *s = ctx;
	(void)events;
	loop_quit(&s->loop);
}

/* There is a descriptor for each pod that runs. */
static void raise_file_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit); /* pods that get none are polled */
}

static void stream_deinit(struct stream *s)
{
	loop_deinit(&s->loop);
	fd_close(s->signal_fd);
}

static int stream_init(struct stream *s, struct cli *c, struct err *e)
{
	sigset_t set;
	*s = (struct stream){ .cli = c, .signal_fd = -EBADF };
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	int r = loop_init(&s->loop);
	if (r == 0)
		r = s->signal_fd = loop_signal_fd(&set);
	if (r >= 0)
		r = loop_watch_add(&s->loop, &s->signal_watch, s->signal_fd, EPOLLIN, on_end, s);
	if (r < 0)
		return err_sys(e, r, "cannot wait for events");
	/* A file cannot be watched, nor go away. */
	loop_watch_add(&s->loop, &s->reader_watch, STDOUT_FILENO, 0, on_end, s);
	return 0;
}

static int open_all(struct cli *c, struct pods **ret, struct err *e)
{
	cleanup_fd int data_fd = cli_open_data_dir(c, true, e);
	return data_fd < 0 ? data_fd : pods_open(data_fd, true, ret, e);
}

static int open_one(struct cli *c, const char *prefix, struct pods **ret, struct uuid *ret_uuid,
		    struct err *e)
{
	cleanup_pod struct pod p = POD_INIT;
	int r = cli_open_pod(c, true, prefix, ret, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	*ret_uuid = p.uuid;
	return 0;
}

static int events_watch(struct stream *s, struct pods *ps, const struct uuid *only, bool replay,
			struct err *e)
{
	const struct pod_events_request q = { .only = only,
					      .max = POD_LIST_MAX,
					      .replay = replay,
					      .event = on_event,
					      .live = on_live,
					      .problem = on_problem,
					      .ctx = s };
	struct pod_events *pe = NULL;
	int r = pod_events_new(&s->loop, ps, &q, &pe, e);
	if (r == 0)
		r = loop_run(&s->loop);
	if (r < 0 && e->code == 0)
		err_sys(e, r, "cannot wait for events");
	if (r == 0)
		r = pod_events_result(pe, e);
	pod_events_free(pe);
	if (r == 0 && s->failure.code < 0) {
		*e = s->failure;
		r = e->code;
	}
	return r;
}

static int events(struct cli *c, const char *prefix, bool replay, struct err *e)
{
	CLEANUP(stream_deinit) struct stream s;
	cleanup_pods struct pods *ps = NULL;
	struct uuid uuid;
	int r = stream_init(&s, c, e);
	if (r == 0)
		r = prefix ? open_one(c, prefix, &ps, &uuid, e) : open_all(c, &ps, e);
	return r < 0 ? r : events_watch(&s, ps, prefix ? &uuid : NULL, replay, e);
}

static int events_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct events_opts *o = opts;
	bool one = o->uuid_file || operands->n > 0;
	int r = one ? cli_take_uuids(c, o->uuid_file, 1, operands, e) : 0;
	return r == 0 ? events(c, one ? operands->v[0] : NULL, o->replay, e) : r;
}

const struct command cmd_events = {
	.name = "events",
	.usage = "[OPTIONS] [UUID | --uuid-file=FILE]",
	.summary = "print what happens to pods and apps, as it happens",
	.description =
		"One JSON object per line. Without UUID it goes on until SIGTERM, SIGINT or the end\n"
		"of its reader; with one until that pod has ended. See husk-events(7).",
	COMMAND_FLAGS(flags, struct events_opts),
	.run = events_run,
};
