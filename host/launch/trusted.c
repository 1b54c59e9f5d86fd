/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/trusted.h"

#include <limits.h>
#include <stdio.h>

#include "lib/os/trusted.h"
#include "lib/wire/stage1.h"

int trusted_stage1(const struct stage1 *s, uid_t user, struct err *e)
{
	char manifest[PATH_MAX + sizeof("/" STAGE1_FILE_MANIFEST)];
	snprintf(manifest, sizeof(manifest), "%s/" STAGE1_FILE_MANIFEST, s->dir);
	CLEANUP(trusted_deinit) struct trusted t;
	trusted_init(&t, user);
	int r = trusted_next(&t, manifest, e);
	for (size_t i = 0; r == 0 && i < stage1_n_entrypoints; i++) {
		const char *program = stage1_program(s, i);
		if (program[0])
			r = trusted_next(&t, program, e);
	}
	return r;
}
