/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the apps of a running pod cost in it, seen from outside: asks the agent, for a bounded
 * time. Together with the costs on the host it makes the document of the stats entrypoint
 * (docs/protocol-stage1.md).
 */
#ifndef STAGE1_ENTRY_STATS_H
#define STAGE1_ENTRY_STATS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "stage1/agent/dial.h"
#include "stage1/entry/cost.h"

/* From the first dial to giving up on what has not come. */
#define STATS_LIMIT_MS INT64_C(10000)

/* Calls under way at a time: of AGENT_STATS_MAX, so that eight can ask at once. */
#define STATS_AT_ONCE 4

struct stats_app {
	char name[AGENT_NAME_MAX + 1];
	bool answered;
	struct agent_app_stats counts;
	struct err why; /* code < 0: why there are no counts */
};

/*
 * Asks the agent behind @route about the @n @apps (at most AGENT_APPS_MAX), whose names are given,
 * and about its machine; @secret has AGENT_SECRET_LEN digits. Every app gets counts or a reason;
 * *ret_guest is set only if the agent says something.
 */
void stats_ask(const struct agent_route *route, const char *secret, int64_t limit_ms,
	       struct stats_app *apps, size_t n, struct agent_info *ret_guest);

struct stats_document {
	const char *uuid;                    /* NULL: not known */
	const struct agent_app_stats *total; /* of all of the pod on the host; NULL: not counted */
	const struct pod_cost *cost;
	struct agent_info guest; /* its memory: -1 of what nobody knows */
	int64_t scratch_bytes;   /* -1: there is no scratch disk */
	const struct stats_app *apps;
	size_t n_apps;
};

/* The JSON object, owned by the caller; NULL if memory is short. */
struct json_object *stats_json(const struct stats_document *d);

#endif
