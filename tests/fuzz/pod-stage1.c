/* SPDX-License-Identifier: Apache-2.0 */
/* What the directory of a pod says about its stage1. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "host/pod/pod_stage1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pod_stage1 s;
	struct err e = ERR_INIT;
	int r = pod_stage1_parse((const char *)data, size, &s, &e);
	if ((r < 0) != (e.text[0] != '\0'))
		abort();
	if (r == 0 && (s.dir[0] != '/' || s.version < 1 || s.abi >= STAGE1_ABI_COUNT_))
		abort();
	return 0;
}
