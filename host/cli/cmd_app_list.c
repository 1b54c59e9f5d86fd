/* SPDX-License-Identifier: Apache-2.0 */
/* husk app list */
#include <errno.h>

#include "host/cli/app_command.h"
#include "host/cli/show.h"
#include "host/pod/info.h"
#include "lib/base/json.h"

#define EXIT_LIST 1 /* as rkt */
#define COLUMNS   2

static const struct flag flags[] = {
	FLAG_STRING("format", "json|json-pretty", struct app_opts, format,
		    "print JSON instead of a table"),
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
		      enum show_format format)
{
	cleanup_buf struct buf out;
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r;
	if (format == SHOW_TEXT) {
		r = fill_table(info, !o->no_legend, &out);
	} else {
		char dir[PATH_MAX];
		struct err e = ERR_INIT;
		if (cli_data_dir(c, dir, &e) < 0)
			return e.code;
		cleanup_json struct json_object *list = show_apps_json(info, dir);
		r = list ? show_json(list, format, &out) : -ENOMEM;
	}
	cli_print(&out);
	return r;
}

static int list(struct cli *c, const char *prefix, const struct app_opts *o,
		enum show_format format)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	struct err e = ERR_INIT;
	int r = cli_open_pod(c, false, prefix, &ps, &p, &e);
	if (r == 0 && (r = pod_info_read(ps, &p, &info)) != 0)
		r = err_set(&e, -ENOENT, "pod \"%s\" is being deleted", p.uuid.text);
	if (r == 0 && info.problem.code < 0) {
		e = info.problem;
		r = e.code;
	}
	if (r == 0 && (r = print_apps(c, &info, o, format)) < 0)
		err_sys(&e, r, "cannot print the list");
	if (r == 0)
		return 0;
	cli_fail(c, &e);
	return EXIT_LIST;
}

static int run(struct cli *c, char *const *args)
{
	struct app_opts o = APP_OPTS_INIT;
	cleanup_strv struct strv operands;
	struct err e = ERR_INIT;
	enum show_format format = SHOW_TEXT;
	int exit_status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &exit_status))
		return exit_status;
	if (show_format_of(o.format, &format, &e) < 0)
		return cli_usage_error(c, &e);
	if (!cli_take_uuids(c, o.uuid_file, 1, &operands, &exit_status))
		return exit_status;
	return list(c, operands.v[0], &o, format);
}

const struct command cmd_app_list = {
	.name = "list",
	.path = "app list",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "list the apps of a pod",
	.description =
		"With the state of each: unknown, preparing, created, running, stopping, exited or\n"
		"deleting.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = run,
};
