/* SPDX-License-Identifier: Apache-2.0 */
/* What the apps of a pod share: where it is, and what it is made of. */
#ifndef STAGE1_APPS_APPS_CONFIG_H
#define STAGE1_APPS_APPS_CONFIG_H

#include <stdbool.h>

#include "lib/os/loop.h"
#include "stage1/agent/control.h"
#include "stage1/apps/confine.h"
#include "stage1/apps/pod_plan.h"
#include "stage1/backend.h"
#include "stage1/pod/timeline.h"

struct apps_config {
	struct loop *loop;
	struct timeline *timeline;
	const struct pod_plan *plan;
	const char *secret; /* AGENT_SECRET_LEN hex digits */
	int pod_fd;
	const struct backend *backend;
	struct backend_pod *pod;        /* runs before the first apps_request() */
	struct confine_options confine; /* of apps that come later */
	bool interactive;               /* the only app has our terminal */
	bool only_log; /* output goes into logs, not to our own standard streams, too */
	struct control *control;
};

#endif
