/* SPDX-License-Identifier: Apache-2.0 */
/* husk rm */
#include <errno.h>

#include "host/cli/collect.h"
#include "host/cli/pods.h"

struct rm_opts {
	const char *uuid_file;
};

static const struct flag flags[] = {
	FLAG_STRING("uuid-file", "FILE", struct rm_opts, uuid_file,
		    "take the UUID from this file (see run --uuid-file-save)"),
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

static int run(struct cli *c, char *const *args)
{
	struct rm_opts o = { 0 };
	cleanup_strv struct strv operands;
	struct collect collect;
	struct gc gc;
	int status;
	bool failed = false;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &status) ||
	    !cli_take_uuids(c, o.uuid_file, CLI_ARGS_MAX, &operands, &status))
		return status;
	collect_init(&collect, c, &gc);
	collect.quiet = true;
	for (size_t i = 0; i < operands.n; i++)
		failed = remove_pod(c, &gc, operands.v[i]) < 0 || failed;
	if (!failed)
		return 0;
	struct err e = ERR_INIT;
	err_set(&e, -EIO, "failed to remove one or more pods");
	return cli_fail(c, &e);
}

const struct command cmd_rm = {
	.name = "rm",
	.usage = "[OPTIONS] UUID... | --uuid-file=FILE",
	.summary = "remove pods that do not run",
	.description =
		"Deletes the pods at once, without a grace period, and prints their UUIDs. Pods\n"
		"that run or are being prepared are refused (see husk stop).",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.needs_owner = true,
	.run = run,
};
