/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-ns/backend/options.h"

#include <errno.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/quantity.h"
#include "lib/wire/isolators.h"

#define MEMORY_MIN (UINT64_C(16) << 20) /* the agent, what the kernel keeps for the pod, an app */
#define PIDS_MIN   8 /* the agent, and for an app its first process, itself, husk enter */

enum {
	OPT_USERNS,
	OPT_MEMORY,
	OPT_CPUS,
	OPT_PIDS_LIMIT,
	OPT_COUNT_,
};

const char *const ns_option_names[] = {
	[OPT_USERNS] = "userns",         [OPT_MEMORY] = "memory", [OPT_CPUS] = "cpus",
	[OPT_PIDS_LIMIT] = "pids-limit", [OPT_COUNT_] = NULL,
};

static int take_userns(struct ns_options *o, const char *value)
{
	o->users_of_host = strcmp(value, "host") == 0;
	return o->users_of_host || strcmp(value, "auto") == 0 || strcmp(value, "private") == 0
		       ? 0
		       : -EINVAL;
}

static int take_memory(struct ns_options *o, const char *value)
{
	uint64_t n = 0;
	int r = size_parse(value, MEMORY_MIN, ISOLATOR_MEMORY_MAX, &n);
	o->limits.memory_max = (int64_t)n;
	return r;
}

static int take_cpus(struct ns_options *o, const char *value)
{
	int r = quantity_parse(value, &o->limits.cpu_millis);
	bool is_in = o->limits.cpu_millis >= ISOLATOR_CPU_MIN &&
		     o->limits.cpu_millis <= ISOLATOR_CPU_MAX;
	return r == 0 && is_in ? 0 : -EINVAL;
}

static int take_pids(struct ns_options *o, const char *value)
{
	uint64_t n = 0;
	int r = num_parse_u64(value, ISOLATOR_PIDS_MAX, &n);
	o->limits.pids_max = (int64_t)n;
	return r == 0 && n >= PIDS_MIN ? 0 : -EINVAL;
}

int ns_options_take(struct ns_options *o, const char *name, const char *value, struct err *e)
{
	static const struct {
		int (*take)(struct ns_options *o, const char *value);
		const char *what;
	} all[OPT_COUNT_] = {
		[OPT_USERNS] = { take_userns, "no such choice (see husk run --help)" },
		[OPT_MEMORY] = { take_memory, "not a size from 16Mi to 1Ti" },
		[OPT_CPUS] = { take_cpus, "not a number of processors from 10m to 1024" },
		[OPT_PIDS_LIMIT] = { take_pids, "not a number from 8 to 4194304" },
	};
	size_t i = 0;
	while (i < OPT_COUNT_ && strcmp(name, ns_option_names[i]) != 0)
		i++;
	if (i == OPT_COUNT_)
		return err_set(e, -EINVAL, "--%s: no such option of namespaces", name);
	return all[i].take(o, value) < 0
		       ? err_set(e, -EINVAL, "--%s=%s: %s", name, value, all[i].what)
		       : 0;
}
