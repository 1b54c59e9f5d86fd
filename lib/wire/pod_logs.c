/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_logs.h"

#include <string.h>

struct pod_log_place pod_log_place(const struct pod_tags *pod, const struct pod_tags *app)
{
	const char *mode = strv_env_get(&pod->notes, POD_LOGS_ANN_MODE);
	const struct pod_log_place place = {
		.dir = strv_env_get(&pod->notes, POD_LOGS_ANN_DIR),
		.path = strv_env_get(&app->notes, POD_LOGS_ANN_PATH),
	};
	bool all = mode && strcmp(mode, POD_LOGS_MODE) == 0 && place.dir && place.path;
	return all ? place : (struct pod_log_place){ NULL, NULL };
}
