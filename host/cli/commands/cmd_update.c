/* SPDX-License-Identifier: Apache-2.0 */
/* husk update */
#include <errno.h>
#include <string.h>

#include "host/cli/app_command.h"

/* All flags of the command; those of other commands about an app are in front. */
struct update_opts {
	struct app_opts app;
	struct limits_change limits;
};

/* Of the isolator that f->offset is the enum of. */
static int set_limit(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct update_opts *o = opts;
	unsigned bit = 1U << f->offset;
	if (o->limits.changed & bit)
		return err_set(e, -EINVAL, "--%s: given twice", f->name);
	o->limits.changed |= bit;
	if (strcmp(value, "none") == 0)
		return 0;
	int r = isolators_set(&o->limits.values, (enum isolator)f->offset, value, e);
	return r < 0 ? err_context(e, "--%s", f->name) : 0;
}

#define LIMIT(name_, arg_, isolator_, help_)                                      \
	{                                                                         \
		.name = (name_), .arg = (arg_), .set = set_limit,                 \
		.offset = (size_t)ISOLATOR_##isolator_, .help = help_ ", or none" \
	}

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct update_opts, app.app,
		    "this app; without, the pod as a whole"),
	LIMIT("cpu", "QUANTITY", CPU, "processor time, e.g. 1.5 or 1500m"),
	LIMIT("cpu-shares", "N", CPU_SHARES, "weight when processors are short; others have 1024"),
	LIMIT("memory", "SIZE", MEMORY, "most memory, e.g. 64Mi"),
	LIMIT("pids-limit", "N", PIDS, "most processes and threads"),
	FLAG_STRING("uuid-file", "FILE", struct update_opts, app.uuid_file,
		    "take the UUID from this file (see run --uuid-file-save)"),
};

static int update_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	const struct update_opts *o = opts;
	int r = app_command_open(c, &o->app, operands, NULL, true, &a, e);
	if (r == 0 && o->limits.changed == 0)
		r = err_set(e, CLI_MISUSE, "must provide a limit to change");
	if (r != 0)
		return r;
	return o->app.app ? pod_app_update(&a.target, o->app.app, &o->limits, e)
			  : pod_update(&a.target, &o->limits, e);
}

const struct command cmd_update = {
	.name = "update",
	.usage = "[OPTIONS] [--app=NAME] UUID | --uuid-file=FILE",
	.summary = "change the limits of a running pod or of an app in it",
	.description =
		"They hold at once. Those of an app hold for what it starts, too, and when it is\n"
		"started again; a limit of memory below what it uses is refused, and so is one beyond\n"
		"the VM. Those of a pod are what it may use of the host; of a VM that is its processor\n"
		"time alone.",
	COMMAND_FLAGS(flags, struct update_opts),
	.run = update_run,
};
