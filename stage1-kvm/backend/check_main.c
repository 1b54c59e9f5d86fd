/* SPDX-License-Identifier: Apache-2.0 */
/* The check entrypoint of stage1-kvm (docs/protocol-stage1.md). */
#include "stage1-kvm/backend/backend.h"
#include "stage1/supervise/check.h"

int main(int argc, char **argv)
{
	return check_options(&kvm_backend, argc, argv);
}
