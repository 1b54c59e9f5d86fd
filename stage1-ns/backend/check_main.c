/* SPDX-License-Identifier: Apache-2.0 */
/* The check entrypoint of stage1-ns (docs/protocol-stage1.md). */
#include "stage1-ns/backend/backend.h"
#include "stage1/supervise/check.h"

int main(int argc, char **argv)
{
	return check_options(&ns_backend, argc, argv);
}
