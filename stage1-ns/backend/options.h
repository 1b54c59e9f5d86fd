/* SPDX-License-Identifier: Apache-2.0 */
/* The options of run that only pods of namespaces have. */
#ifndef STAGE1_NS_BACKEND_OPTIONS_H
#define STAGE1_NS_BACKEND_OPTIONS_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/cgroup/cgroup_limits.h"

struct ns_options {
	bool users_of_host;          /* root in there is root */
	struct cgroup_limits limits; /* of the whole pod; no pids_max: what is usual */
};

/* The names, as struct backend has them. */
extern const char *const ns_option_names[];

/* Takes one of them; of several of one name the last counts. 0, or -EINVAL and @e. */
int ns_options_take(struct ns_options *o, const char *name, const char *value, struct err *e);

#endif
