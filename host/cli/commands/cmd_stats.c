/* SPDX-License-Identifier: Apache-2.0 */
/* husk stats, husk app stats */
#include <errno.h>

#include "host/cli/format/show.h"
#include "host/cli/format/stats.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/running.h"
#include "host/pod/wait.h"
#include "lib/base/json.h"
#include "lib/wire/stage1.h"

/* What stage1 printed, indented, or as a table, which is shorter. */
#define OUTPUT_MAX (4 * STAGE1_OUTPUT_MAX)

struct stats_opts {
	const char *app;
	enum show_format format;
	const char *uuid_file;
};

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct stats_opts, app, "only this app"),
	FLAG_FORMAT(struct stats_opts, "print JSON, with all numbers, instead of a table"),
	FLAG_UUID_FILE(struct stats_opts),
};

/* Asks stage1 about @p, which runs. 0 and *ret, or -errno; @e is empty if stage1 said why. */
static int stats_query(struct cli *c, const struct pod *p, const char *app,
		       struct json_object **ret, struct err *e)
{
	cleanup_free struct stage1 *stage1 = NULL;
	cleanup_buf struct buf out;
	buf_init(&out, STAGE1_OUTPUT_MAX);
	int r = cli_pod_stage1(c, p, &stage1, e);
	if (r == 0)
		r = pod_stats(p, stage1, (struct abi_stats){ .app = app, .debug = c->debug }, &out,
			      e);
	return r < 0 ? r : stats_parse(buf_data(&out), buf_len(&out), ret, e);
}

static int stats_print(struct json_object *doc, bool host, enum show_format format)
{
	cleanup_buf struct buf out;
	buf_init(&out, OUTPUT_MAX);
	int r = format == SHOW_TEXT ? stats_format(doc, host, &out) : show_json(doc, format, &out);
	if (r == 0)
		cli_print(&out);
	return r;
}

/* The numbers, then what is missing. An app that was asked for by name must have some. */
static int stats(struct cli *c, const struct stats_opts *o, const char *prefix, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_json struct json_object *doc = NULL;
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = pod_need_running(&p, e);
	if (r == 0)
		r = pod_wait_ready(ps, &p, INT64_MAX, e);
	if (r == 0)
		r = stats_query(c, &p, o->app, &doc, e);
	if (r < 0)
		return r;
	r = stats_print(doc, !o->app, o->format);
	if (r < 0)
		return err_sys(e, r, "cannot print the statistics");
	for (size_t i = 0; i < stats_n_apps(doc); i++) {
		const char *why = stats_app_error(doc, i);
		if (why)
			cli_message(c, "%s", why);
		if (why && o->app)
			r = -EIO;
	}
	return r;
}

static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct stats_opts *o = opts;
	if (c->cmd == &cmd_app_stats && !o->app)
		return err_set(e, CLI_MISUSE, "must provide the app");
	int r = cli_take_uuids(c, o->uuid_file, 1, operands, e);
	if (r == 0)
		r = stats(c, o, operands->v[0], e);
	return r < 0 && e->code == 0 ? EXIT_HUSK_FAILURE : r; /* it was said */
}

const struct command cmd_stats = {
	.name = "stats",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "print what a running pod and its apps use",
	.description =
		"Of each app processor time, memory with the cache of its files, its limit, processes\n"
		"and threads, and what disks have read and written for it, as the guest counts them.\n"
		"Of QEMU, the supervisor and husk-vsock processor time and memory, as the host does.",
	COMMAND_FLAGS(flags, struct stats_opts),
	.run = run,
};

const struct command cmd_app_stats = {
	.name = "stats",
	.path = "app stats",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "print what an app uses",
	.description =
		"Processor time, memory with the cache of its files, its limit, processes and threads,\n"
		"and what disks have read and written for it, as the guest counts them.",
	COMMAND_FLAGS(flags, struct stats_opts),
	.run = run,
};
