/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of the commands that run a pod. */
#ifndef HOST_CLI_START_H
#define HOST_CLI_START_H

#include "host/cli/cli.h"
#include "host/cli/run_args.h"

/*
 * Makes the pod that @o asks for and becomes its supervisor, or prints the UUID of one that runs in the
 * background. Returns as the function run of a command.
 */
int cli_start_pod(struct cli *c, struct run_opts *o, struct err *e);

/* Adds what the request of @o takes from @c: time, debugging. */
void cli_complete_request(struct cli *c, struct run_opts *o);

#endif
