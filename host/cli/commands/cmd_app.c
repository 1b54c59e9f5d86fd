/* SPDX-License-Identifier: Apache-2.0 */
/* husk app: the commands about the apps of a pod that runs. */
#include "host/cli/cli.h"

static const struct command *const members[] = {
	&cmd_app_add,   &cmd_app_exec,  &cmd_app_list,   &cmd_app_rm,   &cmd_app_sandbox,
	&cmd_app_start, &cmd_app_stats, &cmd_app_status, &cmd_app_stop,
};

const struct command cmd_app = {
	.name = "app",
	.subs = members,
	.n_subs = ARRAY_SIZE(members),
	.usage = "COMMAND",
	.summary = "add, start, stop and remove apps of a running pod",
	.description =
		"An empty pod is made by sandbox; then apps are added to it, started, stopped and\n"
		"removed one by one, while the pod goes on.",
};
