/* SPDX-License-Identifier: Apache-2.0 */
/* The check entrypoint of a stage1 (docs/protocol-stage1.md). */
#include "stage1/backend.h"
#include "stage1/supervise/check.h"

int main(int argc, char **argv)
{
	return check_options(&flavor_backend, argc, argv);
}
