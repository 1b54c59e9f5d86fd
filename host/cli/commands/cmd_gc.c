/* SPDX-License-Identifier: Apache-2.0 */
/* husk gc */
#include <errno.h>

#include "host/cli/collect.h"
#include "host/cli/flags/duration.h"
#include "host/cli/pods.h"
#include "lib/os/clock.h"

#define GRACE_DEFAULT  (INT64_C(30) * 60 * NS_PER_SEC)
#define EXPIRE_DEFAULT (INT64_C(24) * 3600 * NS_PER_SEC)

struct gc_opts {
	int64_t grace_ns;
	int64_t expire_ns;
	bool mark_only;
};

static int set_duration(void *opts, const struct flag *f, const char *value, struct err *e)
{
	return duration_set(opts, f, value, " (30m, 1h30m, 0)", e);
}

static const struct flag flags[] = {
	FLAG_AT("expire-prepared", "DURATION", set_duration, struct gc_opts, expire_ns,
		"give up pods that were prepared longer ago (default 24h)"),
	FLAG_AT("grace-period", "DURATION", set_duration, struct gc_opts, grace_ns,
		"keep pods that were found to have ended less long ago (default 30m)"),
	FLAG_SWITCH("mark-only", struct gc_opts, mark_only,
		    "find out which pods have ended, delete nothing"),
};

static const struct gc_opts defaults = { .grace_ns = GRACE_DEFAULT, .expire_ns = EXPIRE_DEFAULT };

static int gc_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct gc_opts *o = opts;
	cleanup_pods struct pods *ps = NULL;
	struct collect collect;
	struct gc gc;
	if (operands->n > 0)
		return err_set(e, CLI_MISUSE,
			       "\"%.80s\": gc takes no arguments (husk rm removes one pod)",
			       operands->v[0]);
	int r = cli_open_pods(c, true, &ps, e);
	if (r == -ENOENT && !ps && e->code == 0) /* no data directory: no pods */
		return 0;
	if (r < 0)
		return r;
	collect_init(&collect, c, &gc);
	duration_format(o->grace_ns, collect.grace);
	gc.ps = ps;
	gc.grace_ns = o->grace_ns;
	gc.expire_ns = o->expire_ns;
	gc.mark_only = o->mark_only;
	return pods_gc(&gc, e);
}

const struct command cmd_gc = {
	.name = "gc",
	.usage = "[OPTIONS]",
	.summary = "delete pods that have ended",
	.description =
		"Marks pods whose supervisor has ended, or whose preparation was interrupted or has\n"
		"expired, and deletes those that were marked longer ago than the grace period. A pod\n"
		"that cannot be deleted is reported and left for the next time; the exit status is 0\n"
		"all the same.",
	COMMAND_FLAGS(flags, struct gc_opts),
	.needs_owner = true,
	.defaults = &defaults,
	.run = gc_run,
};
