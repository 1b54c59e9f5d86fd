/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage1's doctor prints, into the table that people see. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "host/cli/format/doctor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct doctor d = DOCTOR_INIT;
	struct err e = ERR_INIT;
	struct buf out;
	int r = doctor_add_json(&d, (const char *)data, size, &e);
	if ((r < 0) != (e.text[0] != '\0'))
		abort();
	buf_init(&out, (size_t)1024 * 1024);
	if (doctor_format(&d, &out) < 0)
		abort(); /* DOCTOR_CHECKS_MAX checks of the longest texts fit */
	for (size_t i = 0; i < buf_len(&out); i++) {
		char c = buf_data(&out)[i];
		if (c != '\n' && (c < 0x20 || c > 0x7e))
			abort();
	}
	buf_deinit(&out);
	doctor_deinit(&d);
	return 0;
}
