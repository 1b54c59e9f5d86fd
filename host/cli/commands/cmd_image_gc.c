/* SPDX-License-Identifier: Apache-2.0 */
/* husk image gc */
#include <errno.h>

#include "host/cli/cli.h"
#include "host/cli/flags/duration.h"
#include "host/cli/images.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_image.h"
#include "host/pod/used_images.h"
#include "images/images.h"
#include "lib/base/quantity.h"
#include "lib/os/clock.h"

#define GRACE_DEFAULT (INT64_C(24) * 3600 * NS_PER_SEC)
#define SIZE_MAX_MAX  (UINT64_C(1) << 62) /* far beyond any disk */

struct gc_opts {
	int64_t grace_ns;
	uint64_t size_max;
};

static int set_grace(void *opts, const struct flag *f, const char *value, struct err *e)
{
	return duration_set(opts, f, value, " (24h, 30m, 0)", e);
}

static int set_size(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct gc_opts *o = opts;
	int r = size_parse(value, 1, SIZE_MAX_MAX, &o->size_max);
	return r < 0 ? err_set(e, r, "--%s: \"%.80s\" is not a size (bytes, or 500Mi, 20Gi)",
			       f->name, value)
		     : 0;
}

static const struct flag flags[] = {
	FLAG_AT("grace-period", "DURATION", set_grace, struct gc_opts, grace_ns,
		"keep images that were used less long ago (default 24h)"),
	FLAG_OWN("max-size", "SIZE", set_size,
		 "then remove the images used longest ago until all take less (20G)"),
};

static int find_used(const struct cli *c, struct used_images *used, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	int r = cli_open_pods(c, false, &ps, e);
	if (r == -ENOENT && !ps && e->code == 0) /* no data directory: no pods */
		return 0;
	return r < 0 ? r : pods_used_images(ps, used, e);
}

static void tell_removed(void *ctx, const char *id)
{
	printf("removed image \"%s\"\n", id);
	(void)ctx;
}

static const struct gc_opts defaults = { .grace_ns = GRACE_DEFAULT };

static int collect(struct cli *c, const struct gc_opts *o, struct err *e)
{
	cleanup_store struct store *s = NULL;
	CLEANUP(used_images_deinit) struct used_images used = { .store = NULL };
	int r = cli_open_store(c, &s, e);
	used.store = s;
	if (r == 0)
		r = find_used(c, &used, e);
	if (r < 0)
		return r;
	const struct collect_plan plan = {
		.now_ns = clock_realtime_ns(),
		.grace_ns = o->grace_ns,
		.size_max = o->size_max,
		.used = used.ids,
		.n_used = used.n,
		.removed = tell_removed,
	};
	r = collect_garbage(s, &plan, e);
	return r == 0 ? stage1_image_sweep(c, s, e) : r;
}

static int image_gc_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	if (operands->n > 0)
		return err_set(e, CLI_MISUSE,
			       "\"%.80s\": image gc takes no arguments (husk image rm removes one)",
			       operands->v[0]);
	int r = collect(c, opts, e);
	return r == -EACCES ? err_lower_reason(e) : r;
}

const struct command cmd_image_gc = {
	.name = "gc",
	.path = "image gc",
	.usage = "[OPTIONS]",
	.summary = "remove images that were not used for some time",
	.description =
		"Removes rendered file systems and blobs that no image needs, images whose last use is\n"
		"longer ago than the grace period, and what interrupted fetches left behind. An image\n"
		"that a pod uses is never removed, whatever the pod's state.",
	COMMAND_FLAGS(flags, struct gc_opts),
	.defaults = &defaults,
	.run = image_gc_run,
};
