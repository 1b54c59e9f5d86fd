/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/start.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cli/data_dir.h"
#include "host/cli/images.h"
#include "host/cli/network_settings.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/cli/stage1_options.h"
#include "lib/os/fd.h"

/* As rkt says it. */
static void start_warn(const void *ctx, const char *option)
{
	cli_message(ctx, "warning: %s option is not supported by stage1", option);
}

void cli_complete_request(struct cli *c, struct run_opts *o)
{
	o->request.start_ns = c->start_ns;
	o->request.debug = c->debug;
	o->request.warn = start_warn;
	o->request.warn_ctx = c;
	run_opts_take_global(c, o);
	o->request.fetch = cli_fetch_options(c, &o->progress, o->quiet ? CLI_NOBODY : CLI_TERMINAL);
}

/*
 * The stage1, with the options that are its own, before anything is made. Whoever gave none of
 * these hears of what else is wrong before a stage1 is fetched.
 */
static int open_stage1(struct cli *c, struct run_opts *o, struct stage1 *ret, struct err *e)
{
	int r = stage1_choose(c, &o->stage1, PULL_NEW, ret, e);
	return r < 0 || !c->cmd->other ? r : stage1_options_check(c, o, ret, e);
}

static int start_complete(struct cli *c, struct run_opts *o, struct stage1 *stage1, struct err *e)
{
	bool early = o->request.stage1_options.n > 0;
	int r = early ? open_stage1(c, o, stage1, e) : 0;
	if (r == 0)
		r = run_opts_complete(o, environ, e);
	if (r == 0)
		r = run_opts_check(o, e);
	if (r == 0 && !early)
		r = open_stage1(c, o, stage1, e);
	if (r == 0 && stage1->has_network)
		r = cli_network_settings(c, &o->request.network, e);
	return r == 0 ? cli_image_settings(c, &o->request.images, e) : r;
}

int cli_start_pod(struct cli *c, struct run_opts *o, cli_make_fn make, struct err *e)
{
	char path[PATH_MAX];
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	struct uuid uuid;
	int r = stage1 ? start_complete(c, o, stage1, e) : err_sys(e, -ENOMEM, "stage1");
	if (r == FLAG_BAD)
		return CLI_MISUSE;
	if (r == 0)
		r = cli_data_dir(c, path, e);
	if (r < 0)
		return r;
	cleanup_fd int data_fd = cli_open_data_dir(c, true, e);
	if (data_fd < 0)
		return data_fd;
	cli_complete_request(c, o);
	r = make(&o->request, data_fd, path, stage1, &uuid, e);
	if (r < 0) {
		progress_clear(&o->progress);
		return r;
	}
	printf("%s\n", uuid.text);
	return 0;
}
