/* SPDX-License-Identifier: Apache-2.0 */
/* husk stop */
#include <errno.h>

#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/running.h"

struct stop_opts {
	const char *uuid_file;
	bool force;
};

static const struct flag flags[] = {
	FLAG_SWITCH("force", struct stop_opts, force, "kill the VM, without asking the apps"),
	FLAG_UUID_FILE(struct stop_opts),
};

static int stop_open_pod(struct cli *c, const struct pod *p, bool force, struct err *e)
{
	cleanup_free struct stage1 *stage1 = NULL;
	int r = pod_may_stop(p, e);
	if (r == 0)
		r = cli_pod_stage1(c, p, &stage1, e);
	if (r == 0)
		r = pod_stop(p, stage1, force, c->debug, e);
	if (r >= 0)
		printf(r == POD_STOPPED ? "pod \"%s\" is already stopped\n" : "\"%s\"\n",
		       p->uuid.text);
	return r;
}

static int stop_pod(struct cli *c, const char *prefix, bool force)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	int r = cli_open_pod(c, false, prefix, &ps, &p, &e);
	if (r == 0)
		r = stop_open_pod(c, &p, force, &e);
	if (r < 0)
		cli_message(c, "%s", e.text);
	return r;
}

static int stop_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct stop_opts *o = opts;
	int failed = 0;
	for (size_t i = 0; i < operands->n; i++)
		failed += stop_pod(c, operands->v[i], o->force) < 0;
	return failed > 0 ? err_set(e, -EIO, "failed to stop %d pod(s)", failed) : 0;
}

const struct command cmd_stop = {
	.name = "stop",
	.usage = "[OPTIONS] UUID... | --uuid-file=FILE",
	.summary = "stop running pods",
	.description = "Asks each pod's apps to end, kills those that do not, powers the VM\n"
		       "off and waits until it is gone. Prints the UUIDs of the pods stopped.",
	COMMAND_FLAGS(flags, struct stop_opts),
	.uuids = CLI_ARGS_MAX,
	.run = stop_run,
};
