/* SPDX-License-Identifier: Apache-2.0 */
/* How `husk gc` and `husk rm` delete pods: stage1's part, and what people are told. */
#ifndef HOST_CLI_COLLECT_H
#define HOST_CLI_COLLECT_H

#include "host/cli/cli.h"
#include "host/pod/gc.h"

struct collect {
	struct cli *cli;
	char grace[32]; /* as text */
	bool quiet;     /* rm tells in its own way */
};

/*
 * Fills what gc needs of @ret but pods and times. Pods whose stage1 cannot be used are still
 * deleted, which is said; those whose stage1 fails to clean up are not.
 */
void collect_init(struct collect *c, struct cli *cli, struct gc *ret);

#endif
