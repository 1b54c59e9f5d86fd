/* SPDX-License-Identifier: Apache-2.0 */
/* husk run */
#include "host/cli/cli.h"
#include "host/cli/help.h"
#include "host/cli/run_args.h"
#include "host/cli/stage1_options.h"
#include "host/cli/start.h"

static int run(struct cli *c, char *const *args)
{
	const struct flag_set global = cli_global_flags(c);
	CLEANUP(run_opts_deinit) struct run_opts o;
	struct err e = ERR_INIT;
	run_opts_init(&o);
	int r = run_args_parse(c->cmd, &global, args, &o, &e);
	if (c->help) {
		help_print_command(c, c->cmd);
		return 0;
	}
	if (r == FLAG_BAD)
		return cli_usage_error(c, &e);
	return r < 0 ? cli_fail(c, &e) : cli_start_pod(c, &o);
}

const struct command cmd_run = {
	.name = "run",
	.usage = "[OPTIONS] IMAGE [APP OPTIONS] [-- ARGS... [---]] [IMAGE ...]",
	.summary = "run one or more apps in a pod",
	.description =
		"Makes a pod, starts its virtual machine and becomes the pod's supervisor: the exit\n"
		"status is that of the first app that failed, 0 if none did, 254 if husk failed. With\n"
		"--detach the supervisor goes to the background, and the UUID is printed when the pod\n"
		"is up.\n"
		"\n"
		"An IMAGE is a path of an OCI layout or docker archive, PATH:TAG, or oci:, oci-archive:\n"
		"or docker-archive: with such a path. App options follow the image that they are for.\n"
		"ARGS replace the image's command and are given to its entrypoint, if it has one;\n"
		"--exec=PROGRAM replaces both, and ARGS then are the program's arguments. A lone ---\n"
		"ends ARGS, so that another image can follow.\n"
		"\n"
		"In front of the first image, --memory is the stage1's, if that declares one; --memory\n"
		"and --cpu behind an image are limits of its app.",
	.flags = run_flags,
	.n_flags = RUN_FLAG_COUNT,
	.only = IN_RUN,
	.other = stage1_options_take,
	.per_app_grammar = true,
	.needs_owner = true,
	.run = run,
};
