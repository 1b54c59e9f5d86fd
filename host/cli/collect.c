/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/collect.h"

#include <errno.h>
#include <string.h>

#include "host/cli/settings.h"
#include "host/launch/abi.h"
#include "lib/os/clock.h"

static int stage1_gc(void *ctx, const struct pod *p, struct err *e)
{
	struct collect *c = ctx;
	cleanup_strv struct strv args;
	strv_init(&args, ABI_ARGS_MAX);
	if (!c->stage1.gc[0])
		return 0;
	int r = abi_gc_args(p->uuid.text, c->cli->debug, &args);
	if (r < 0)
		return err_sys(e, r, "arguments of stage1");
	return stage1_call(c->stage1.gc, p->fd, &args, e);
}

static void tell(void *ctx, enum gc_event event, const struct pod *p, const struct err *e)
{
	const struct collect *c = ctx;
	const char *uuid = p->uuid.text;
	if (event == GC_FAILED) {
		cli_message(c->cli, "pod \"%s\": %s", uuid, e->text);
		return;
	}
	if (c->quiet)
		return;
	switch (event) {
	case GC_MARKED_EXITED:
		cli_message(c->cli, "moving pod \"%s\" to garbage", uuid);
		return;
	case GC_MARKED_ABORTED:
		cli_message(c->cli, "moving failed prepare \"%s\" to garbage", uuid);
		return;
	case GC_MARKED_EXPIRED:
		cli_message(c->cli, "moving expired prepared pod \"%s\" to garbage", uuid);
		return;
	case GC_KEPT:
		cli_message(c->cli, "pod \"%s\" not removed: still within grace period (%s)", uuid,
			    c->grace);
		return;
	case GC_COLLECTING:
		printf("Garbage collecting pod \"%s\"\n", uuid);
		return;
	case GC_FAILED:
		return;
	}
}

void collect_init(struct collect *c, const struct cli *cli, struct gc *ret)
{
	struct err e = ERR_INIT;
	memset(c, 0, sizeof(*c));
	c->cli = cli;
	if (cli_open_stage1(cli, &c->stage1, &e) < 0)
		cli_message(cli, "%s: what it left outside of pods is not cleaned up", e.text);
	*ret = (struct gc){
		.now_ns = clock_realtime_ns(), .tell = tell, .stage1_gc = stage1_gc, .ctx = c
	};
}
