/* SPDX-License-Identifier: Apache-2.0 */
/* husk list */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/cli/cli.h"
#include "host/cli/data_dir.h"
#include "host/cli/format/show.h"
#include "host/pod/info.h"
#include "host/pod/list.h"
#include "lib/base/json.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define PROBLEMS_MAX ((size_t)100) /* lines about unreadable pods; the number is always told */

#define LABELS_MAX  ((size_t)16) /* --label; all must match */
#define WIDTH_USUAL 80           /* of a terminal that does not say */
#define WIDTH_MIN   40

struct list_opts {
	bool no_legend;
	bool full;
	bool quiet;
	unsigned int states; /* bit set of those that are asked for, 0: all */
	const char *name;    /* NULL: all */
	struct strv labels;
	enum show_format format;
};

/* The words of `husk list`, with "-" for blanks as well; a list with commas. */
static int set_states(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct list_opts *o = opts;
	for (;;) {
		size_t len = strcspn(value, ",");
		unsigned int found = 0;
		for (int s = 0; s < POD_STATE_COUNT_; s++) {
			const char *name = pod_state_name((enum pod_state)s);
			size_t same = 0;
			while (same < len && (name[same] == value[same] ||
					      (name[same] == ' ' && value[same] == '-')))
				same++;
			if (len > 0 && same == len && name[len] == '\0')
				found |= 1U << s;
		}
		if (!found)
			return err_set(
				e, -EINVAL,
				"--%s: \"%.*s\" is not a state (preparing, aborted-prepare, "
				"prepared, running, exited, exited-deleting, exited-garbage)",
				f->name, (int)MIN(len, (size_t)40), value);
		o->states |= found;
		if (value[len] == '\0')
			return 0;
		value += len + 1;
	}
}

static int set_running(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct list_opts *o = opts;
	(void)f;
	(void)e;
	if (strcmp(value, "true") == 0)
		o->states |= 1U << POD_STATE_RUNNING;
	return 0;
}

static const struct flag flags[] = {
	FLAG_FORMAT(struct list_opts, "print JSON instead of a table"),
	FLAG_SWITCH("full", struct list_opts, full,
		    "print long UUIDs, image IDs and absolute times"),
	FLAG_AT("label", "LABEL", flag_add_string, struct list_opts, labels,
		"only pods with this label, NAME or NAME=VALUE; repeatable, all must match"),
	FLAG_STRING("name", "NAME", struct list_opts, name, "only the pods of this name"),
	FLAG_SWITCH("no-legend", struct list_opts, no_legend, "leave out the header"),
	{ .name = "quiet",
	  .letter = 'q',
	  .set = flag_set_bool,
	  .offset = offsetof(struct list_opts, quiet),
	  .help = "print nothing but UUIDs, one per line" },
	{ .name = "running", .set = set_running, .help = "only pods that run, as --state=running" },
	FLAG_OWN("state", "STATES", set_states, "only pods in these states, a list with commas"),
};

/* What the listing collects; one of table and array is used. */
struct listing {
	const struct list_opts *opts;
	enum show_layout layout;
	struct table table;
	struct json_object *array;
	struct strv problems;
	size_t n_problems;
	int64_t now_ns;
	char data_dir[PATH_MAX];
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

static bool has_label(const struct pod_tags *tags, const char *label)
{
	size_t len = strlen(label);
	for (size_t i = 0; i < tags->labels.n; i++) {
		const char *its = tags->labels.v[i];
		if (strcmp(its, label) == 0 ||
		    (!strchr(label, '=') && strncmp(its, label, len) == 0 && its[len] == '='))
			return true;
	}
	return false;
}

static bool is_wanted(const struct list_opts *o, const struct pod_info *info)
{
	if ((o->states && !(o->states & 1U << info->state)) ||
	    (o->name && strcmp(o->name, info->name) != 0))
		return false;
	for (size_t i = 0; i < o->labels.n; i++)
		if (!has_label(&info->tags, o->labels.v[i]))
			return false;
	return true;
}

static int add_info(struct listing *l, const struct pod_info *info)
{
	if (l->opts->format == SHOW_TEXT)
		return l->opts->quiet
			       ? table_add_row(&l->table, (const char *const[]){ info->uuid.text })
			       : show_list_pod(&l->table, info, l->layout, l->now_ns);
	return json_append(l->array, show_pod_json(info, l->data_dir));
}

static int on_pod(void *ctx, const struct pod_info *info)
{
	struct listing *l = ctx;
	if (info->problem.code < 0)
		add_problem(l, &info->uuid, info->problem.text);
	return is_wanted(l->opts, info) ? add_info(l, info) : 0;
}

static void on_problem(void *ctx, const struct uuid *uuid, const struct err *e)
{
	add_problem(ctx, uuid, e->text);
}

static int add_pods(struct listing *l, int data_fd, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	const struct pods_reader reader = { .pod = on_pod, .problem = on_problem, .ctx = l };
	int r = pods_open(data_fd, false, &ps, e);
	return r < 0 ? r : pods_read_all(ps, &reader, e);
}

/* Of the terminal; narrow ones are taken for wider. */
static size_t terminal_width(void)
{
	struct winsize size;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_USUAL;
	return MAX(size.ws_col, WIDTH_MIN);
}

static int format_listing(const struct listing *l, struct buf *out)
{
	if (l->opts->format != SHOW_TEXT)
		return show_json(l->array, l->opts->format, out);
	if (l->layout == SHOW_NARROW)
		return table_format_width(&l->table, terminal_width(), out);
	int r = table_format(&l->table, out);
	/* Like rkt: an empty listing is an empty line. */
	return r == 0 && buf_len(out) == 0 && !l->opts->quiet ? buf_puts(out, "\n") : r;
}

static int print_listing(const struct listing *l, struct err *e)
{
	cleanup_buf struct buf out;
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = format_listing(l, &out);
	if (r < 0)
		return err_sys(e, r, "cannot print the list");
	cli_print(&out);
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

static int list_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct list_opts *o = opts;
	CLEANUP(listing_deinit) struct listing l = { .opts = o };
	(void)operands;
	if (o->quiet && (o->full || o->format != SHOW_TEXT))
		return err_set(e, CLI_MISUSE,
			       "--quiet prints UUIDs only, without --full and --format");
	l.now_ns = clock_realtime_ns();
	l.layout = o->full                              ? SHOW_FULL
		   : !o->quiet && isatty(STDOUT_FILENO) ? SHOW_NARROW
							: SHOW_SHORT;
	l.array = json_object_new_array();
	table_init(&l.table, o->quiet ? 1 : show_list_columns(l.layout));
	strv_init(&l.problems, PROBLEMS_MAX);
	int r = o->no_legend || o->quiet ? 0 : show_list_header(&l.table, l.layout);
	if (r < 0 || !l.array)
		return err_sys(e, -ENOMEM, "cannot list pods");
	r = cli_data_dir(c, l.data_dir, e);
	if (r < 0)
		return r;
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

static void list_init(void *opts)
{
	strv_init(&((struct list_opts *)opts)->labels, LABELS_MAX);
}

static void list_deinit(void *opts)
{
	strv_deinit(&((struct list_opts *)opts)->labels);
}

const struct command cmd_list = {
	.name = "list",
	.usage = "[OPTIONS]",
	.summary = "list pods",
	.description =
		"Lists the pods of the data directory, the newest first, one line per app: on a\n"
		"terminal what fits into its lines, elsewhere the columns of rkt and the pod's name.\n"
		"Pods that cannot be read are reported behind the list.",
	COMMAND_FLAGS(flags, struct list_opts),
	.init = list_init,
	.deinit = list_deinit,
	.run = list_run,
};
