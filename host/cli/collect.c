/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/launch/abi.h"
#include "lib/os/clock.h"

static int call_gc(const struct cli *c, const struct stage1 *stage1, const struct pod *p,
		   struct err *e)
{
	cleanup_strv struct strv args;
	strv_init(&args, ABI_ARGS_MAX);
	if (!stage1->gc[0])
		return 0;
	int r = abi_gc_args(p->uuid.text, c->debug, &args);
	return r < 0 ? err_sys(e, r, "arguments of stage1")
		     : stage1_call(stage1->gc, p->fd, &args, e);
}

static int stage1_gc(void *ctx, const struct pod *p, struct err *e)
{
	struct collect *c = ctx;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	struct err why = ERR_INIT;
	if (!stage1)
		return err_sys(e, -ENOMEM, "stage1");
	if (cli_pod_stage1(c->cli, p, stage1, &why) < 0)
		return err_set(e, why.code, "%s: what it left outside of the pod is not cleaned up",
			       why.text);
	return call_gc(c->cli, stage1, p, e);
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
