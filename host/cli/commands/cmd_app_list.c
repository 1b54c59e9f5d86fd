/* SPDX-License-Identifier: Apache-2.0 */
/* husk app list */
#include <errno.h>

#include "host/cli/app_command.h"
#include "host/cli/data_dir.h"
#include "host/cli/format/show.h"
#include "host/pod/info.h"

#define EXIT_LIST 1 /* as rkt */
#define COLUMNS   2

static const struct flag flags[] = {
	FLAG_FORMAT(struct app_opts, "print JSON instead of a table"),
	FLAG_SWITCH("no-legend", struct app_opts, no_legend, "print no header"),
	APP_FLAG_UUID_FILE,
};

static int fill_table(const struct pod_info *info, bool legend, struct buf *out)
{
	static const char *const header[] = { "NAME", "STATE" };
	CLEANUP(table_deinit) struct table t;
	table_init(&t, COLUMNS);
	int r = legend ? table_add_row(&t, header) : 0;
	for (size_t i = 0; r == 0 && i < info->n_apps; i++) {
		const char *row[] = { info->apps[i].name, app_state_name(info->apps[i].state) };
		r = table_add_row(&t, row);
	}
	if (r == 0)
		r = table_format(&t, out);
	return r == 0 && buf_len(out) == 0 ? buf_puts(out, "\n") : r;
}

static int print_apps(const struct cli *c, const struct pod_info *info, const struct app_opts *o,
		      struct err *e)
{
	cleanup_buf struct buf out;
	char dir[PATH_MAX];
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = cli_data_dir(c, dir, e);
	if (r < 0)
		return r;
	r = o->format == SHOW_TEXT ? fill_table(info, !o->no_legend, &out)
				   : show_new_json(show_apps_json(info, dir), o->format, &out);
	cli_print(&out);
	return r < 0 ? err_sys(e, r, "cannot print the list") : 0;
}

static int app_list_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	int r = cli_open_pod(c, false, operands->v[0], &ps, &p, e);
	if (r == 0)
		r = app_read_info(ps, &p, &info, e);
	if (r == 0)
		r = print_apps(c, &info, opts, e);
	if (r == 0)
		return 0;
	cli_fail(c, e);
	return EXIT_LIST;
}

const struct command cmd_app_list = {
	.name = "list",
	.path = "app list",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "list the apps of a pod",
	.description =
		"With the state of each: unknown, preparing, created, running, stopping, exited or\n"
		"deleting.",
	COMMAND_FLAGS(flags, struct app_opts),
	.uuids = 1,
	.run = app_list_run,
};
