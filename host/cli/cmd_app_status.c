/* SPDX-License-Identifier: Apache-2.0 */
/* husk app status */
#include <errno.h>
#include <string.h>

#include "host/cli/app_command.h"
#include "host/cli/show.h"
#include "host/pod/info.h"
#include "lib/base/json.h"
#include "lib/wire/stage1.h"

#define EXIT_STATUS 1 /* as rkt */

static const struct flag flags[] = {
	APP_FLAG_APP,
	FLAG_STRING("format", "json|json-pretty", struct app_opts, format,
		    "print JSON instead of lines"),
	APP_FLAG_UUID_FILE,
};

static int print_app(const struct cli *c, const struct pod_info *info, const struct app_info *app,
		     enum show_format format)
{
	cleanup_buf struct buf out;
	buf_init(&out, SHOW_OUTPUT_MAX);
	int r;
	if (format == SHOW_TEXT) {
		r = show_app(app, &out);
	} else {
		char dir[PATH_MAX];
		struct err e = ERR_INIT;
		if (cli_data_dir(c, dir, &e) < 0)
			return e.code;
		cleanup_json struct json_object *obj = show_app_json(info, app, dir);
		r = obj ? show_json(obj, format, &out) : -ENOMEM;
	}
	cli_print(&out);
	return r;
}

static int status(struct cli *c, const struct app_command *a, const char *name,
		  enum show_format format)
{
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	struct err e = ERR_INIT;
	const struct app_info *app = NULL;
	int r = pod_info_read(a->pods, &a->pod, &info);
	if (r != 0)
		r = err_set(&e, -ENOENT, "pod \"%s\" is being deleted", a->pod.uuid.text);
	if (r == 0 && info.problem.code < 0) {
		e = info.problem;
		r = e.code;
	}
	for (size_t i = 0; i < info.n_apps; i++)
		if (strcmp(info.apps[i].name, name) == 0)
			app = &info.apps[i];
	if (r == 0 && !app)
		r = err_set(&e, -ENOENT, "cannot find app \"%s\" in the pod", name);
	if (r == 0 && (r = print_app(c, &info, app, format)) < 0)
		err_sys(&e, r, "cannot print the status");
	if (r == 0)
		return 0;
	cli_fail(c, &e);
	return EXIT_STATUS;
}

static int run(struct cli *c, char *const *args)
{
	CLEANUP(app_command_deinit) struct app_command a;
	struct app_opts o = APP_OPTS_INIT;
	struct err e = ERR_INIT;
	enum show_format format = SHOW_TEXT;
	int exit_status;
	bool opened =
		app_command_open(c, &o, args, "must provide the app", false, &a, &exit_status);
	if (!opened)
		return exit_status == EXIT_HUSK_FAILURE ? EXIT_STATUS : exit_status;
	if (show_format_of(o.format, &format, &e) < 0)
		return cli_usage_error(c, &e);
	return status(c, &a, o.app, format);
}

const struct command cmd_app_status = {
	.name = "status",
	.path = "app status",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "print the state of an app",
	.description =
		"The state, when it was added, started and ended, and its exit code: the lines that\n"
		"are known.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = run,
};
