/* SPDX-License-Identifier: Apache-2.0 */
/* husk run */
#include "host/cli/cli.h"
#include "host/cli/run_args.h"
#include "host/cli/stage1_options.h"
#include "host/cli/start.h"

static int run_images(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	(void)operands;
	return cli_start_pod(c, opts, pod_run, e);
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
	RUN_COMMAND(IN_RUN),
	.other = stage1_options_take,
	.needs_owner = true,
	.parse = run_args_parse,
	.run = run_images,
};
