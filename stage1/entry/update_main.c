/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The update entrypoint of a stage1: changes limits of the pod in the working directory
 * (docs/protocol-stage1.md). The kernel keeps them, and is asked what they were.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/uuid.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/os/fd.h"
#include "lib/wire/isolators.h"
#include "lib/wire/stage1.h"
#include "stage1/backend.h"

struct options {
	const char *uuid;
	unsigned changed; /* bit N: enum isolator N */
	int64_t values[ISOLATOR_COUNT_];
};

/* 0, 1 if @arg is no limit, or -EINVAL. */
static int take_limit(const char *arg, struct options *ret)
{
	static const struct {
		const char *prefix;
		enum isolator which;
		uint64_t max;
	} limits[] = {
		{ "--memory=", ISOLATOR_MEMORY, ISOLATOR_MEMORY_MAX },
		{ "--cpu-millis=", ISOLATOR_CPU, ISOLATOR_CPU_MAX },
		{ "--cpu-shares=", ISOLATOR_CPU_SHARES, ISOLATOR_CPU_SHARES_MAX },
		{ "--pids-limit=", ISOLATOR_PIDS, ISOLATOR_PIDS_MAX },
	};
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t n = 0;
		if (!str_starts(arg, limits[i].prefix))
			continue;
		int r = num_parse_u64(arg + strlen(limits[i].prefix), limits[i].max, &n);
		ret->values[limits[i].which] = (int64_t)n;
		ret->changed |= 1U << limits[i].which;
		return r < 0 ? -EINVAL : 0;
	}
	return 1;
}

/* [--debug=BOOL] --uuid=UUID, and at least one limit, of which 0 is none */
static int update_parse(int argc, char **argv, struct options *ret)
{
	*ret = (struct options){ 0 };
	for (int i = 1; i < argc; i++) {
		int r = take_limit(argv[i], ret);
		if (r == 1 && str_starts(argv[i], "--uuid="))
			ret->uuid = argv[i] + strlen("--uuid=");
		else if (r < 0 || (r == 1 && !str_starts(argv[i], "--debug=")))
			return -EINVAL;
	}
	return ret->uuid && uuid_is_valid(ret->uuid) && ret->changed ? 0 : -EINVAL;
}

static int update_run(const struct options *o, struct err *e)
{
	int64_t shares = o->values[ISOLATOR_CPU_SHARES];
	const struct cgroup_limits l = {
		.memory_max = o->values[ISOLATOR_MEMORY],
		.cpu_millis = o->values[ISOLATOR_CPU],
		.cpu_weight = shares ? cgroup_weight_of_shares(shares) : 0,
		.pids_max = o->values[ISOLATOR_PIDS],
	};
	return flavor_update(o->uuid, o->changed, &l, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct options o;
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	if (update_parse(argc, argv, &o) < 0) {
		fprintf(stderr, "stage1: update: usage: update [--debug=BOOL] --uuid=UUID "
				"[--memory=BYTES] [--cpu-millis=N] [--cpu-shares=N] "
				"[--pids-limit=N]\n");
		return EXIT_HUSK_FAILURE;
	}
	if (update_run(&o, &e) == 0)
		return 0;
	fprintf(stderr, "stage1: update: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
