/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/trusted.h"

#include <limits.h>
#include <stdio.h>

#include "lib/os/trusted.h"
#include "lib/wire/stage1.h"

int trusted_stage1(const struct stage1 *s, uid_t user, struct err *e)
{
	const char *const programs[] = { s->run,    s->stop,      s->gc,       s->enter,
					 s->doctor, s->attach,    s->stats,    s->app_add,
					 s->app_rm, s->app_start, s->app_stop, s->check };
	char manifest[PATH_MAX + sizeof("/" STAGE1_FILE_MANIFEST)];
	snprintf(manifest, sizeof(manifest), "%s/" STAGE1_FILE_MANIFEST, s->dir);
	int r = trusted_path(manifest, user, e);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(programs); i++)
		if (programs[i][0])
			r = trusted_path(programs[i], user, e);
	return r;
}
