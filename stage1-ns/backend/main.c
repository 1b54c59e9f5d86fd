/* SPDX-License-Identifier: Apache-2.0 */
/* The run entrypoint of stage1-ns (docs/protocol-stage1.md). */
#include "stage1-ns/backend/backend.h"
#include "stage1/supervise/run.h"

int main(int argc, char **argv)
{
	return run_pod(&ns_backend, argc, argv);
}
