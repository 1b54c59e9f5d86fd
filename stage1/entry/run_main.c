/* SPDX-License-Identifier: Apache-2.0 */
/* The run entrypoint of a stage1 (docs/protocol-stage1.md). */
#include "stage1/backend.h"
#include "stage1/supervise/run.h"

int main(int argc, char **argv)
{
	return run_pod(&flavor_backend, argc, argv);
}
