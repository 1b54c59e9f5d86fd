/* SPDX-License-Identifier: Apache-2.0 */
/* husk list */
#include <errno.h>

#include "host/cli/cli.h"
#include "host/cli/show.h"
#include "host/pod/info.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define PROBLEMS_MAX ((size_t)100) /* lines about unreadable pods; the number is always told */

struct list_opts {
	bool no_legend;
	bool full;
	const char *format;
};

static const struct flag flags[] = {
	FLAG_STRING("format", "json|json-pretty", struct list_opts, format,
		    "print JSON instead of a table"),
	FLAG_SWITCH("full", struct list_opts, full,
		    "print long UUIDs, image IDs and absolute times"),
	FLAG_SWITCH("no-legend", struct list_opts, no_legend, "leave out the header"),
};

/* What the listing collects; one of table and array is used. */
struct listing {
	const struct list_opts *opts;
	enum show_format format;
	struct table table;
	struct json_object *array; /* NULL until the first pod */
	struct strv problems;
	size_t n_problems;
	int64_t now_ns;
};

static void listing_deinit(struct listing *l)
{
	table_deinit(&l->table);
	json_object_put(l->array);
	strv_deinit(&l->problems);
}

static void add_problem(struct listing *l, const struct uuid *uuid, const char *text)
{
	l->n_problems++;
	strv_addf(&l->problems, "pod \"%s\": %s", uuid->text, text); /* full: only counted */
}

static int add_info(struct listing *l, const struct pod_info *info)
{
	if (l->format == SHOW_TEXT)
		return show_list_pod(&l->table, info, l->opts->full, l->now_ns);
	struct json_object *obj = show_pod_json(info);
	if (!l->array)
		l->array = json_object_new_array();
	if (obj && l->array && json_object_array_add(l->array, obj) == 0)
		return 0;
	json_object_put(obj);
	return -ENOMEM;
}

/* One look at a pod. 0, POD_GONE if it moved on during the look, or -errno. */
static int try_pod(struct listing *l, struct pods *ps, const struct uuid *uuid)
{
	struct err e = ERR_INIT;
	cleanup_pod struct pod p = POD_INIT;
	int r = pod_open(ps, uuid->text, &p, &e);
	if (r < 0)
		add_problem(l, uuid, e.text);
	if (r != 0 || p.phase == POD_GARBAGE)
		return 0;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	r = pod_info_read(ps, &p, &info);
	if (r != 0)
		return r;
	if (info.problem.code < 0)
		add_problem(l, uuid, info.problem.text);
	return add_info(l, &info);
}

/* Adds one pod; a pod that went away meanwhile is no problem. It can move on only so many times. */
static int add_pod(struct listing *l, struct pods *ps, const struct uuid *uuid)
{
	int r = POD_GONE;
	for (int i = 0; r == POD_GONE && i < POD_PHASE_COUNT_; i++)
		r = try_pod(l, ps, uuid);
	return r < 0 ? r : 0;
}

static int add_pods(struct listing *l, int data_fd, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	int r = pods_open(data_fd, false, &ps, e);
	if (r == 0)
		r = pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &list, e);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		r = add_pod(l, ps, &list.uuids[i]);
		if (r < 0)
			return err_sys(e, r, "cannot list pods");
	}
	return r;
}

static int print_listing(const struct listing *l, struct err *e)
{
	cleanup_buf struct buf out;
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = l->format == SHOW_TEXT ? table_format(&l->table, &out)
				       : show_json(l->array, l->format, &out);
	/* Like rkt: an empty listing is an empty line. */
	if (r == 0 && buf_len(&out) == 0)
		r = buf_puts(&out, "\n");
	if (r < 0)
		return err_sys(e, r, "cannot print the list");
	fwrite(buf_data(&out), 1, buf_len(&out), stdout);
	fflush(stdout);
	return 0;
}

static void print_problems(const struct cli *c, const struct listing *l)
{
	if (l->n_problems == 0)
		return;
	cli_message(c, "%zu error(s) encountered when listing pods:", l->n_problems);
	for (size_t i = 0; i < l->problems.n; i++)
		cli_message(c, "%s", l->problems.v[i]);
}

static int list_pods(struct cli *c, const struct list_opts *o, enum show_format format,
		     struct err *e)
{
	CLEANUP(listing_deinit) struct listing l = { .opts = o, .format = format };
	l.now_ns = clock_realtime_ns();
	table_init(&l.table, show_list_columns(o->full));
	strv_init(&l.problems, PROBLEMS_MAX);
	int r = o->no_legend ? 0 : show_list_header(&l.table, o->full);
	if (r < 0)
		return err_sys(e, r, "cannot list pods");
	cleanup_fd int data_fd = cli_open_data_dir(c, false, e);
	if (data_fd >= 0)
		r = add_pods(&l, data_fd, e);
	else if (data_fd != -ENOENT) /* no data directory: no pods */
		return data_fd;
	if (r == 0)
		r = print_listing(&l, e);
	print_problems(c, &l);
	return r;
}

static int list(struct cli *c, char *const *args)
{
	struct list_opts o = { 0 };
	cleanup_strv struct strv operands;
	struct err e = ERR_INIT;
	enum show_format format = SHOW_TEXT;
	int status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &status))
		return status;
	if (show_format_of(o.format, &format, &e) < 0)
		return cli_usage_error(c, &e);
	return list_pods(c, &o, format, &e) < 0 ? cli_fail(c, &e) : 0;
}

const struct command cmd_list = {
	.name = "list",
	.usage = "[OPTIONS]",
	.summary = "list pods",
	.description =
		"Lists the pods of the data directory, one line per app. Pods that cannot be\n"
		"read are reported behind the list.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = list,
};
