/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/collect.h"

#include <errno.h>
#include <string.h>

#include "host/cli/stage1_choice.h"
#include "lib/os/clock.h"

/* A stage1 that is gone for good must not keep its pods for ever. */
static int stage1_gc(void *ctx, const struct pod *p, bool stays, struct err *e)
{
	struct collect *c = ctx;
	cleanup_free struct stage1 *stage1 = NULL;
	struct err why = ERR_INIT;
	if (cli_pod_stage1(c->cli, p, &stage1, &why) == 0)
		return pod_stage1_gc(p, stage1, stays, c->cli->debug, e);
	if (!stays)
		cli_message(c->cli,
			    "pod \"%s\": %s: what it left outside of the pod is not cleaned up",
			    p->uuid.text, why.text);
	return 0;
}

static const char *const marked[] = { [GC_MARKED_EXITED] = "pod",
				      [GC_MARKED_ABORTED] = "failed prepare",
				      [GC_MARKED_EXPIRED] = "expired prepared pod" };

static void collect_tell(void *ctx, enum gc_event event, const struct pod *p, const struct err *e)
{
	const struct collect *c = ctx;
	const char *uuid = p->uuid.text;
	if (event == GC_FAILED)
		cli_message(c->cli, "pod \"%s\": %s", uuid, e->text);
	else if (!c->quiet && event == GC_COLLECTING)
		printf("Garbage collecting pod \"%s\"\n", uuid);
	else if (!c->quiet && event == GC_KEPT)
		cli_message(c->cli, "pod \"%s\" not removed: still within grace period (%s)", uuid,
			    c->grace);
	else if (!c->quiet)
		cli_message(c->cli, "moving %s \"%s\" to garbage", marked[event], uuid);
}

void collect_init(struct collect *c, struct cli *cli, struct gc *ret)
{
	memset(c, 0, sizeof(*c));
	c->cli = cli;
	*ret = (struct gc){ .now_ns = clock_realtime_ns(),
			    .tell = collect_tell,
			    .stage1_gc = stage1_gc,
			    .ctx = c };
}
