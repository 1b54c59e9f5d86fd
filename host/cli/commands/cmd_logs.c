/* SPDX-License-Identifier: Apache-2.0 */
/* husk logs */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/flags/duration.h"
#include "host/cli/pods.h"
#include "host/pod/info.h"
#include "host/pod/logs.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"

struct logs_opts {
	const char *app;
	const char *uuid_file;
	int64_t since_ns; /* back from now; 0: all */
	int64_t tail;     /* -1: all */
	bool follow;
	bool timestamps;
};

static const struct logs_opts defaults = { .tail = -1 };

static int set_since(void *opts, const struct flag *f, const char *value, struct err *e)
{
	return duration_set(opts, f, value, "", e);
}

static int set_tail(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct logs_opts *o = opts;
	uint64_t n;
	if (num_parse_u64(value, INT32_MAX, &n) < 0)
		return err_set(e, -EINVAL, "--%s: \"%.80s\" is not a number of lines", f->name,
			       value);
	o->tail = (int64_t)n;
	return 0;
}

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct logs_opts, app, "the app; needed if the pod has several"),
	FLAG_SWITCH("follow", struct logs_opts, follow, "go on until the pod has ended"),
	FLAG_AT("since", "DURATION", set_since, struct logs_opts, since_ns,
		"only what is not older, e.g. 10m"),
	FLAG_OWN("tail", "N", set_tail, "only the last N lines"),
	FLAG_SWITCH("timestamps", struct logs_opts, timestamps,
		    "print the records as they are kept: time, stream, tag and line"),
	FLAG_UUID_FILE(struct logs_opts),
};

static int print_record(void *ctx, const struct crilog_record *r)
{
	const struct logs_opts *o = ctx;
	FILE *f = r->stream == CRILOG_STDERR && !o->timestamps ? stderr : stdout;
	size_t len = r->len;
	const char *from = r->content;
	if (o->timestamps) { /* the record is one piece in front of its content */
		from -= CRILOG_PREFIX_LEN;
		len += CRILOG_PREFIX_LEN;
	}
	fwrite(from, 1, len, f);
	if (!r->partial || o->timestamps)
		putc('\n', f);
	if (o->follow)
		fflush(f);
	return ferror(f) ? -EPIPE : 0;
}

/* The app that was named, or the only one. */
static int choose_app(const struct pod *p, const char *name, char ret[AGENT_NAME_MAX + 1],
		      struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	pod_manifest_init(&m);
	int r = pod_read_manifest(p, &m, e);
	if (r < 0)
		return r;
	const struct pod_app *app = m.n_apps == 1 ? m.apps : NULL;
	if (name)
		app = pod_manifest_find(&m, name);
	if (app)
		return str_copy(ret, AGENT_NAME_MAX + 1, app->name);
	if (name)
		return err_set(e, -ENOENT, "error: nonexistent app \"%.80s\"", name);
	if (m.n_apps == 0)
		return err_set(e, -ENOENT, CLI_NO_APPS);
	return err_set(e, -EINVAL, "the pod has several apps (choose one with --app=NAME)");
}

/*
 * What there is to say about the end of the app, which it could not write itself. True if there
 * was.
 */
static bool print_reason(const struct cli *c, struct pods *ps, const struct pod *p, const char *app)
{
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	if (pod_info_read(ps, p, &info) != 0)
		return false;
	const struct app_info *its = pod_info_find(&info, app);
	if (!its || !its->why.message[0])
		return false;
	cli_message(c, "app \"%s\": %s", app, its->why.message);
	return true;
}

static int logs_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct logs_opts *o = opts;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	char app[AGENT_NAME_MAX + 1];
	int r = cli_open_pod(c, false, operands->v[0], &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = choose_app(&p, o->app, app, e);
	if (r < 0)
		return err_context(e, "pod \"%s\"", p.uuid.text);
	const struct logs_request q = {
		.app = app,
		.since_ns = o->since_ns > 0 ? clock_realtime_ns() - o->since_ns : 0,
		.tail = o->tail,
		.follow = o->follow,
	};
	r = pod_logs(ps, &p, &q, print_record, opts, e);
	if ((r == 0 || r == -ENOENT) && print_reason(c, ps, &p, app))
		return 0;
	if (r == -ENOENT)
		return err_set(
			e, r,
			"pod \"%s\": app \"%s\" has no log (it was not run, has a terminal, or "
			"its output goes elsewhere)",
			p.uuid.text, app);
	return r < 0 && e->code == 0
		       ? err_sys(e, r, "pod \"%s\": log of app \"%s\"", p.uuid.text, app)
		       : r;
}

const struct command cmd_logs = {
	.name = "logs",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "print what an app has written",
	.description =
		"Standard output goes to standard output, errors to standard error. Of each app the\n"
		"last 4 to 8 MiB are kept, in the pod's directory and in the format of CRI, until gc.",
	COMMAND_FLAGS(flags, struct logs_opts),
	.defaults = &defaults,
	.uuids = 1,
	.run = logs_run,
};
