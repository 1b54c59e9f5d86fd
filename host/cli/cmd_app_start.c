/* SPDX-License-Identifier: Apache-2.0 */
/* husk app start */
#include "host/cli/app_command.h"

static const struct flag flags[] = {
	APP_FLAG_APP,
	APP_FLAG_UUID_FILE,
};

static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	const struct app_opts *o = opts;
	int r = app_command_open(c, o, operands, "must provide the app to start", true, &a, e);
	if (r == 0)
		r = pod_app_start(&a.target, o->app, e);
	return r;
}

const struct command cmd_app_start = {
	.name = "start",
	.path = "app start",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "start an app of a running pod",
	.description =
		"For the first time, or again after it has ended, with what it has written since it\n"
		"was added. An app that runs is left alone.",
	COMMAND_FLAGS(flags, struct app_opts),
	.defaults = &app_defaults,
	.run = run,
};
