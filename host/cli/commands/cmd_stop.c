/* SPDX-License-Identifier: Apache-2.0 */
/* husk stop */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "host/cli/pods.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/launch/abi.h"
#include "host/pod/info.h"
#include "lib/os/clock.h"
#include "lib/os/lock.h"

#define POLL_NS INT64_C(10000000)

/* stage1 gives apps and guest half a minute each; then the VM is killed, which ends the pod. */
#define STOP_WAIT_NS (120 * NS_PER_SEC)

struct stop_opts {
	const char *uuid_file;
	bool force;
};

static const struct flag flags[] = {
	FLAG_SWITCH("force", struct stop_opts, force, "kill the VM, without asking the apps"),
	FLAG_UUID_FILE(struct stop_opts),
};

/* Waits until nobody holds the pod's lock: then it has ended. */
static int wait_unlocked(const struct pod *p, struct err *e)
{
	int64_t deadline = clock_monotonic_ns() + STOP_WAIT_NS;
	int r;
	while ((r = lock_try_shared(p->fd)) == LOCK_TAKEN && clock_monotonic_ns() < deadline)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	if (r == 0)
		lock_release(p->fd);
	if (r == LOCK_TAKEN)
		return err_set(e, -ETIMEDOUT, "pod \"%s\" did not end within %lld s (use --force)",
			       p->uuid.text, (long long)(STOP_WAIT_NS / NS_PER_SEC));
	return r < 0 ? err_sys(e, r, "pod \"%s\"", p->uuid.text) : 0;
}

static int call_stage1(struct cli *c, const struct pod *p, bool force, struct err *e)
{
	cleanup_strv struct strv args;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	strv_init(&args, ABI_ARGS_MAX);
	int r = stage1 ? cli_pod_stage1(c, p, stage1, e) : err_sys(e, -ENOMEM, "stage1");
	if (r < 0)
		return r;
	if (!stage1->stop[0])
		return err_set(e, -EOPNOTSUPP, "stage1 \"%s\" cannot stop pods", stage1->dir);
	r = abi_stop_args(stage1, p->uuid.text, c->debug, force, &args);
	return r < 0 ? err_sys(e, r, "arguments of stage1")
		     : stage1_call(stage1->stop, p->fd, &args, e);
}

static int stop_open_pod(struct cli *c, const struct pod *p, bool force, struct err *e)
{
	enum pod_state state = pod_state_of(p->phase, p->locked);
	if (pod_state_is_after_run(state)) {
		printf("pod \"%s\" is already stopped\n", p->uuid.text);
		return 0;
	}
	if (state != POD_STATE_RUNNING)
		return err_set(e, -EINVAL, "pod \"%s\" is not running", p->uuid.text);
	int r = call_stage1(c, p, force, e);
	if (r == 0)
		r = wait_unlocked(p, e);
	if (r == 0)
		printf("\"%s\"\n", p->uuid.text);
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
	.description =
		"Asks each pod's apps to end with SIGTERM, kills those that do not, powers the VM\n"
		"off and waits until it is gone. Prints the UUIDs of the pods stopped.",
	COMMAND_FLAGS(flags, struct stop_opts),
	.uuids = CLI_ARGS_MAX,
	.run = stop_run,
};
