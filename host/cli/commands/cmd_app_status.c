/* SPDX-License-Identifier: Apache-2.0 */
/* husk app status */
#include <errno.h>

#include "host/cli/app_command.h"
#include "host/cli/data_dir.h"
#include "host/cli/format/show.h"
#include "host/pod/info.h"

#define EXIT_STATUS 1 /* as rkt */

static const struct flag flags[] = {
	APP_FLAG_APP,
	FLAG_FORMAT(struct app_opts, "print JSON instead of lines"),
	APP_FLAG_UUID_FILE,
};

static int print_app(const struct cli *c, const struct pod_info *info, const struct app_info *app,
		     enum show_format format, struct err *e)
{
	cleanup_buf struct buf out;
	char dir[PATH_MAX];
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r = cli_data_dir(c, dir, e);
	if (r < 0)
		return r;
	r = format == SHOW_TEXT ? show_app(app, &out)
				: show_new_json(show_app_json(info, app, dir), format, &out);
	cli_print(&out);
	return r < 0 ? err_sys(e, r, "cannot print the status") : 0;
}

static int app_status_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	const struct app_opts *o = opts;
	int r = app_command_open(c, o, operands, "must provide the app", false, &a, e);
	if (r == 0)
		r = app_read_info(a.pods, &a.pod, &info, e);
	if (r != 0)
		return r;
	const struct app_info *app = pod_info_find(&info, o->app);
	return app ? print_app(c, &info, app, o->format, e)
		   : err_set(e, -ENOENT, "cannot find app \"%s\" in the pod", o->app);
}

const struct command cmd_app_status = {
	.name = "status",
	.path = "app status",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "print the state of an app",
	.description =
		"The state, when it was added, started and ended, and its exit code: the lines that\n"
		"are known.",
	COMMAND_FLAGS(flags, struct app_opts),
	.run = app_status_run,
	.failure = EXIT_STATUS,
};
