/* SPDX-License-Identifier: Apache-2.0 */
/* How `husk gc` and `husk rm` delete pods: stage1's part, and what people are told. */
#ifndef HOST_CLI_COLLECT_H
#define HOST_CLI_COLLECT_H

#include "host/cli/cli.h"
#include "host/launch/stage1.h"
#include "host/pod/gc.h"

struct collect {
	const struct cli *cli;
	struct stage1
		stage1; /* of this installation, never from a pod; .gc empty if there is none */
	char grace[32]; /* as text */
	bool quiet;     /* rm tells in its own way */
};

/*
 * Finds stage1 and fills what gc needs of @ret but pods and times. Without a stage1, pods are still
 * deleted; that is said once.
 */
void collect_init(struct collect *c, const struct cli *cli, struct gc *ret);

#endif
