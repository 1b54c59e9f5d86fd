/* SPDX-License-Identifier: Apache-2.0 */
/* husk run-prepared */
#include <errno.h>
#include <stdlib.h>

#include "host/cli/data_dir.h"
#include "host/cli/network_settings.h"
#include "host/cli/pods.h"
#include "host/cli/run_args.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/cli/stage1_options.h"
#include "host/cli/start.h"

static int run_prepared_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	char path[PATH_MAX];
	struct run_opts *o = opts;
	cleanup_free struct stage1 *stage1 = NULL;
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	int r = run_opts_check_run(o, e);
	if (r == 0)
		r = cli_data_dir(c, path, e);
	if (r == 0)
		r = cli_open_pod(c, true, operands->v[0], &ps, &p, e);
	if (r == 0)
		r = cli_pod_stage1(c, &p, &stage1, e);
	if (r == 0)
		r = stage1_options_check(c, o, stage1, e);
	if (r == 0 && stage1->has_network)
		r = cli_network_settings(c, &o->request.network, e);
	if (r != 0)
		return r == FLAG_BAD ? CLI_MISUSE : r;
	cli_complete_request(c, o);
	if (pod_run_prepared(&o->request, ps, &p, path, stage1, e) != RUN_DETACHED)
		return cli_fail(c, e);
	printf("%s\n", p.uuid.text);
	return 0;
}

const struct command cmd_run_prepared = {
	.name = "run-prepared",
	.usage = "[OPTIONS] UUID",
	.summary = "run a pod that was prepared",
	.description =
		"Starts the virtual machine of the pod and becomes its supervisor, as run does.\n"
		"A pod can be run once.",
	RUN_COMMAND(IN_PREPARED),
	.other = stage1_options_take,
	.needs_owner = true,
	.uuids = 1,
	.run = run_prepared_run,
};
