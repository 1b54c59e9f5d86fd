/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of the commands that make a pod. */
#ifndef HOST_CLI_START_H
#define HOST_CLI_START_H

#include "host/cli/cli.h"
#include "host/cli/run_args.h"

/* pod_run() or pod_prepare_only(). */
typedef int (*cli_make_fn)(const struct run_request *q, int data_fd, const char *data_path,
			   const struct stage1 *stage1, struct uuid *ret, struct err *e);

/*
 * Makes the pod that @o asks for with @make, and prints its UUID if that returns, of one that is
 * prepared or runs in the background. Returns as the function run of a command.
 */
int cli_start_pod(struct cli *c, struct run_opts *o, cli_make_fn make, struct err *e);

/* Adds what the request of @o takes from @c: time, debugging. */
void cli_complete_request(struct cli *c, struct run_opts *o);

#endif
