/* SPDX-License-Identifier: Apache-2.0 */
/* husk prepare */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cli/cli.h"
#include "host/cli/images.h"
#include "host/cli/run_args.h"
#include "host/cli/stage1_choice.h"
#include "host/cli/start.h"
#include "lib/os/fd.h"

static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	char path[PATH_MAX];
	struct run_opts *o = opts;
	struct uuid uuid;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	(void)operands;
	int r = stage1 ? run_opts_complete(o, environ, e) : err_sys(e, -ENOMEM, "stage1");
	if (r == 0)
		r = run_opts_check(o, e);
	if (r == 0)
		r = cli_data_dir(c, path, e);
	if (r == 0)
		r = stage1_choose(c, &o->stage1, PULL_NEW, stage1, e);
	if (r == 0)
		r = cli_image_settings(c, &o->request.images, e);
	if (r < 0)
		return r;
	cleanup_fd int data_fd = cli_open_data_dir(c, true, e);
	if (data_fd < 0)
		return data_fd;
	cli_complete_request(c, o);
	r = pod_prepare_only(&o->request, data_fd, path, stage1, &uuid, e);
	if (r < 0) {
		progress_clear(&o->progress);
		return r;
	}
	printf("%s\n", uuid.text);
	return 0;
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
	.run = run,
};
