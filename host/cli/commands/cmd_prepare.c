/* SPDX-License-Identifier: Apache-2.0 */
/* husk prepare */
#include "host/cli/cli.h"
#include "host/cli/run_args.h"
#include "host/cli/start.h"

static int prepare_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	(void)operands;
	return cli_start_pod(c, opts, pod_prepare_only, e);
}

const struct command cmd_prepare = {
	.name = "prepare",
	.usage = "[OPTIONS] IMAGE [APP OPTIONS] [-- ARGS... [---]] [IMAGE ...]",
	.summary = "make a pod without running it",
	.description =
		"Does everything that run does before it starts the virtual machine, and prints the\n"
		"UUID of the pod, which then waits for run-prepared; gc gives it up after a day.\n"
		"Images, app options and ARGS are as for run.",
	RUN_COMMAND(IN_PREPARE),
	.needs_owner = true,
	.parse = run_args_parse,
	.run = prepare_run,
};
