/* SPDX-License-Identifier: Apache-2.0 */
/* husk app rm */
#include "host/cli/app_command.h"

static const struct flag flags[] = {
	APP_FLAG_APP,
	APP_FLAG_GRACE,
	APP_FLAG_UUID_FILE,
};

static int run(struct cli *c, char *const *args)
{
	CLEANUP(app_command_deinit) struct app_command a;
	struct app_opts o = APP_OPTS_INIT;
	struct err e = ERR_INIT;
	int exit_status;
	if (!app_command_open(c, &o, args, "must provide the app to remove", true, &a,
			      &exit_status))
		return exit_status;
	return pod_app_remove(&a.target, o.app, o.grace_s, &e) < 0 ? cli_fail(c, &e) : 0;
}

const struct command cmd_app_rm = {
	.name = "rm",
	.path = "app rm",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "remove an app from a pod",
	.description =
		"Stops it if it runs, then removes it with what it has written and logged. Its name\n"
		"is free again, and so is its space.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = run,
};
