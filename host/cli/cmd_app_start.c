/* SPDX-License-Identifier: Apache-2.0 */
/* husk app start */
#include "host/cli/app_command.h"

static const struct flag flags[] = {
	APP_FLAG_APP,
	APP_FLAG_UUID_FILE,
};

static int run(struct cli *c, char *const *args)
{
	CLEANUP(app_command_deinit) struct app_command a;
	struct app_opts o = APP_OPTS_INIT;
	struct err e = ERR_INIT;
	int exit_status;
	if (!app_command_open(c, &o, args, "must provide the app to start", true, &a, &exit_status))
		return exit_status;
	return pod_app_start(&a.target, o.app, &e) < 0 ? cli_fail(c, &e) : 0;
}

const struct command cmd_app_start = {
	.name = "start",
	.path = "app start",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "start an app of a running pod",
	.description =
		"For the first time, or again after it has ended, with what it has written since it\n"
		"was added. An app that runs is left alone.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = run,
};
