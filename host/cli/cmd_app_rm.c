/* SPDX-License-Identifier: Apache-2.0 */
/* husk app rm */
#include "host/cli/app_command.h"

static const struct flag flags[] = {
	APP_FLAG_APP,
	APP_FLAG_GRACE,
	APP_FLAG_UUID_FILE,
};

static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	const struct app_opts *o = opts;
	int r = app_command_open(c, o, operands, "must provide the app to remove", true, &a, e);
	if (r == 0)
		r = pod_app_remove(&a.target, o->app, o->grace_s, e);
	return r;
}

const struct command cmd_app_rm = {
	.name = "rm",
	.path = "app rm",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "remove an app from a pod",
	.description =
		"Stops it if it runs, then removes it with what it has written and logged. Its name\n"
		"is free again, and so is its space.",
	COMMAND_FLAGS(flags, struct app_opts),
	.defaults = &app_defaults,
	.run = run,
};
