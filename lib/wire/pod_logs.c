/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_logs.h"

#include <string.h>

/* The value of the annotation, borrowed; NULL without it. */
static const char *find(const struct strv *notes, const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < notes->n; i++)
		if (strncmp(notes->v[i], name, len) == 0 && notes->v[i][len] == '=')
			return notes->v[i] + len + 1;
	return NULL;
}

struct pod_log_place pod_log_place(const struct pod_tags *pod, const struct pod_tags *app)
{
	const char *mode = find(&pod->notes, POD_LOGS_ANN_MODE);
	const struct pod_log_place place = {
		.dir = find(&pod->notes, POD_LOGS_ANN_DIR),
		.path = find(&app->notes, POD_LOGS_ANN_PATH),
	};
	bool all = mode && strcmp(mode, POD_LOGS_MODE) == 0 && place.dir && place.path;
	return all ? place : (struct pod_log_place){ NULL, NULL };
}
