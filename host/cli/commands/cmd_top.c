/* SPDX-License-Identifier: Apache-2.0 */
/* husk top */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/cli/flags/duration.h"
#include "host/cli/format/stats.h"
#include "host/cli/format/top.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/running.h"
#include "host/pod/wait.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define DELAY_DEFAULT (3 * NS_PER_SEC)
#define DELAY_MIN     (100 * NS_PER_MS) /* looking takes some milliseconds for each pod */
#define DELAY_MAX     (3600 * NS_PER_SEC)
#define COUNT_MAX     1000000
#define TOP_PODS_MAX  ((size_t)1024)             /* that are named; all may be more */
#define OUTPUT_MAX    ((size_t)16 * 1024 * 1024) /* POD_LIST_MAX lines, most of them short */

struct top_opts {
	int64_t delay_ns;
	uint64_t count; /* 0: for ever */
	enum top_order by;
};

static int set_delay(void *opts, const struct flag *f, const char *value, struct err *e)
{
	int r = duration_set(opts, f, value, " (1s, 500ms, 1m)", e);
	int64_t ns = ((const struct top_opts *)opts)->delay_ns;
	return r == 0 && (ns < DELAY_MIN || ns > DELAY_MAX)
		       ? err_set(e, -EINVAL, "--delay: \"%s\" is not between 100ms and 1h", value)
		       : r;
}

static int set_count(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct top_opts *o = opts;
	(void)f;
	if (num_parse_u64(value, COUNT_MAX, &o->count) < 0 || o->count == 0)
		return err_set(e, -EINVAL, "--count: \"%s\" is not a number between 1 and %d",
			       value, COUNT_MAX);
	return 0;
}

static int set_sort(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct top_opts *o = opts;
	(void)f;
	if (top_order_find(value, &o->by) < 0)
		return err_set(e, -EINVAL,
			       "--sort: \"%s\" is none of cpu, memory, pids, name, uuid", value);
	return 0;
}

static const struct flag flags[] = {
	FLAG_OWN("count", "N", set_count, "print so many tables, then end"),
	FLAG_AT("delay", "DURATION", set_delay, struct top_opts, delay_ns,
		"time from one table to the next (default 3s)"),
	FLAG_OWN("sort", "COLUMN", set_sort, "cpu, memory, pids, name or uuid (default cpu)"),
};

static const struct top_opts defaults = { .delay_ns = DELAY_DEFAULT };

/* One look at all pods that run. */
struct look {
	struct top_row *rows;
	size_t n;
};

static void look_deinit(struct look *l)
{
	free(l->rows);
	*l = (struct look){ 0 };
}

/* What stage1 says of @p, or NULL: then it is too old for that, or the pod has just ended. */
static struct json_object *count_pod(struct cli *c, const struct pod *p)
{
	cleanup_free struct stage1 *stage1 = NULL;
	cleanup_buf struct buf out;
	struct json_object *doc = NULL;
	struct err ignored = ERR_INIT;
	buf_init(&out, STAGE1_OUTPUT_MAX);
	int r = cli_pod_stage1(c, p, &stage1, &ignored);
	if (r == 0)
		r = pod_stats(p, stage1, (struct abi_stats){ .host = true }, &out, &ignored);
	if (r == 0)
		stats_parse(buf_data(&out), buf_len(&out), &doc, &ignored);
	return doc;
}

/* 0, or POD_GONE if it does not run (any more). */
static int look_at(struct cli *c, struct pods *ps, const struct uuid *uuid, struct top_row *ret)
{
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	struct err ignored = ERR_INIT;
	if (pod_open_in(ps, POD_RUN, uuid->text, &p, &ignored) != 0 || !p.locked ||
	    pod_info_read(ps, &p, &info) != 0)
		return POD_GONE;
	*ret = (struct top_row){ .at_ns = clock_monotonic_ns() };
	str_copy(ret->uuid, sizeof(ret->uuid), uuid->text);
	str_copy(ret->name, sizeof(ret->name), info.name);
	for (size_t i = 0; i < info.n_apps; i++)
		top_add_app(ret, info.apps[i].name);
	cleanup_json struct json_object *doc = count_pod(c, &p);
	top_count(ret, doc);
	return 0;
}

/* @only: whole UUIDs; none: all pods. */
static bool is_wanted(const struct strv *only, const struct uuid *uuid)
{
	for (size_t i = 0; i < only->n; i++)
		if (strcmp(only->v[i], uuid->text) == 0)
			return true;
	return only->n == 0;
}

static int look_at_all(struct cli *c, struct pods *ps, const struct strv *only, struct look *ret,
		       struct err *e)
{
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	int r = pods_list(ps, 1U << POD_RUN, POD_LIST_MAX, &list, e);
	if (r < 0)
		return r;
	ret->n = 0;
	ret->rows = calloc(MAX(list.n, 1), sizeof(*ret->rows));
	if (!ret->rows)
		return err_sys(e, -ENOMEM, "cannot look at the pods");
	for (size_t i = 0; i < list.n; i++)
		if (is_wanted(only, &list.uuids[i]) &&
		    look_at(c, ps, &list.uuids[i], &ret->rows[ret->n]) == 0)
			ret->n++;
	return 0;
}

/* The data directory may come to be while we wait. */
static int open_and_look(struct cli *c, const struct strv *only, struct look *ret, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	int r = cli_open_pods(c, false, &ps, e);
	return r == -ENOENT ? 0 : r < 0 ? r : look_at_all(c, ps, only, ret, e);
}

/* As many lines as the terminal has, over what was there; nothing flickers, and nothing scrolls. */
static int format_screen(const struct table *t, const struct winsize *size, struct buf *out)
{
	cleanup_buf struct buf text;
	buf_init(&text, OUTPUT_MAX);
	int r = table_format_width(t, size->ws_col, &text);
	if (r == 0)
		r = buf_puts(out, "\033[H");
	const char *at = buf_data(&text), *end = at + buf_len(&text);
	for (int line = 0; r == 0 && at < end && line + 1 < size->ws_row; line++) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		r = buf_append(out, at, (size_t)(next - at));
		if (r == 0)
			r = buf_puts(out, "\033[K\n");
		at = next + 1;
	}
	return r == 0 ? buf_puts(out, "\033[J") : r;
}

static int print_look(const struct look *l, const struct winsize *size, struct err *e)
{
	CLEANUP(table_deinit) struct table t;
	cleanup_buf struct buf out;
	table_init(&t, TOP_COLUMNS);
	buf_init(&out, OUTPUT_MAX);
	int r = top_format(l->rows, l->n, &t);
	if (r == 0)
		r = size ? format_screen(&t, size, &out) : table_format(&t, &out);
	if (r < 0)
		return err_sys(e, r, "cannot print the table");
	r = fd_write_all(STDOUT_FILENO, buf_data(&out), buf_len(&out));
	return r < 0 ? err_sys(e, r, "cannot write to standard output") : 0;
}

/* Prints what has changed since @before, sorted as @by says. Then @now is in its old order. */
static int show(struct look *now, const struct look *before, enum top_order by,
		const struct winsize *size, struct err *e)
{
	top_compare(now->rows, now->n, before->rows, before->n);
	top_sort(now->rows, now->n, by);
	int r = print_look(now, size, e);
	top_sort(now->rows, now->n, TOP_BY_UUID);
	return r;
}

/* NULL unless standard output is a terminal that says how large it is. */
static const struct winsize *find_terminal(struct winsize *size)
{
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, size) == 0 && size->ws_col > 0 && size->ws_row > 0
		       ? size
		       : NULL;
}

static int find_pods(struct cli *c, const struct strv *operands, struct strv *ret, struct err *e)
{
	for (size_t i = 0; i < operands->n; i++) {
		cleanup_pods struct pods *ps = NULL;
		cleanup_pod struct pod p = POD_INIT;
		int r = cli_open_pod(c, false, operands->v[i], &ps, &p, e);
		if (r < 0)
			return err_context(e, "problem retrieving pod");
		r = pod_need_running(&p, e);
		if (r < 0)
			return r;
		r = strv_add(ret, p.uuid.text);
		if (r < 0)
			return err_sys(e, r, "more than %zu pods", TOP_PODS_MAX);
	}
	return 0;
}

/*
 * Elsewhere than on a terminal the first table comes when there are two looks to compare. What is
 * left on a terminal at the end is the last table: no mode of it was changed.
 */
static int top_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct top_opts *o = opts;
	CLEANUP(look_deinit) struct look before = { 0 };
	cleanup_strv struct strv only;
	uint64_t printed = 0;
	strv_init(&only, TOP_PODS_MAX);
	signal(SIGPIPE, SIG_IGN); /* who does not read any more has had enough */
	int r = find_pods(c, operands, &only, e);
	if (r < 0)
		return r;
	for (bool is_first = true;; is_first = false) {
		CLEANUP(look_deinit) struct look now = { 0 };
		struct winsize buffer;
		const struct winsize *size = find_terminal(&buffer);
		r = open_and_look(c, &only, &now, e);
		if (r == 0 && (size || !is_first))
			r = show(&now, &before, o->by, size, e);
		if (r < 0)
			return r == -EPIPE ? 0 : r;
		look_deinit(&before);
		before = now;
		now = (struct look){ 0 };
		if (!is_first && ++printed == o->count)
			return 0;
		poll(NULL, 0, (int)(o->delay_ns / NS_PER_MS));
	}
}

const struct command cmd_top = {
	.name = "top",
	.usage = "[OPTIONS] [UUID...]",
	.summary = "print what running pods use, again and again",
	.description =
		"Of each pod that runs, or of those that are named, what the host counts: the part\n"
		"of a processor that it used since the table before, in percent, and the limit of\n"
		"that; memory and its limit; processes. On a terminal one table replaces the one\n"
		"before; Ctrl-C ends it.",
	COMMAND_FLAGS(flags, struct top_opts),
	.defaults = &defaults,
	.run = top_run,
};
