/* SPDX-License-Identifier: Apache-2.0 */
/* husk rm */
#include <errno.h>

#include "host/cli/collect.h"
#include "host/cli/pods.h"

struct rm_opts {
	const char *uuid_file;
};

static const struct flag flags[] = {
	FLAG_UUID_FILE(struct rm_opts),
};

static int remove_pod(struct cli *c, struct gc *gc, const char *prefix)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	int r = cli_open_pod(c, true, prefix, &ps, &p, &e);
	if (r == 0) {
		gc->ps = ps;
		r = pod_remove(gc, &p, &e);
	}
	if (r < 0)
		cli_message(c, "%s", e.text);
	else
		printf("\"%s\"\n", p.uuid.text);
	return r;
}

static int rm_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	struct collect collect;
	struct gc gc;
	bool failed = false;
	(void)opts;
	collect_init(&collect, c, &gc);
	collect.quiet = true;
	for (size_t i = 0; i < operands->n; i++)
		failed = remove_pod(c, &gc, operands->v[i]) < 0 || failed;
	return failed ? err_set(e, -EIO, "failed to remove one or more pods") : 0;
}

const struct command cmd_rm = {
	.name = "rm",
	.usage = "[OPTIONS] UUID... | --uuid-file=FILE",
	.summary = "remove pods that do not run",
	.description =
		"Deletes the pods at once, without a grace period, and prints their UUIDs. Pods\n"
		"that run or are being prepared are refused (see husk stop).",
	COMMAND_FLAGS(flags, struct rm_opts),
	.needs_owner = true,
	.uuids = CLI_ARGS_MAX,
	.run = rm_run,
};
