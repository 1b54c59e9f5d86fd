/* SPDX-License-Identifier: Apache-2.0 */
/* husk app sandbox */
#include "host/cli/cli.h"
#include "host/cli/run_args.h"
#include "host/cli/stage1_options.h"
#include "host/cli/start.h"

static int app_sandbox_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	struct run_opts *o = opts;
	if (operands->n > 0)
		return err_set(e, CLI_MISUSE,
			       "an image is added with husk app add, when the pod is there");
	o->request.is_mutable = true;
	return cli_start_pod(c, o, pod_run, e);
}

const struct command cmd_app_sandbox = {
	.name = "sandbox",
	.path = "app sandbox",
	.usage = "[OPTIONS]",
	.summary = "start a pod without apps, which can be added later",
	.description =
		"Makes an empty pod, starts its virtual machine and becomes the pod's supervisor, which\n"
		"shows what the apps write; with --detach it goes to the background, and the UUID is\n"
		"printed when the pod is up. The end of an app does not end the pod, unless\n"
		"--exit-policy says so; husk stop does.",
	.other = stage1_options_take,
	RUN_COMMAND(IN_SANDBOX),
	.run = app_sandbox_run,
};
