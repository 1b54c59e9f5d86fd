/* SPDX-License-Identifier: Apache-2.0 */
/* husk app stop */
#include "host/cli/app_command.h"

static const struct flag flags[] = {
	APP_FLAG_APP,
	APP_FLAG_GRACE,
	APP_FLAG_UUID_FILE,
};

static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	const struct app_opts *o = opts;
	int r = app_command_open(c, o, operands, "must provide the app to stop", true, &a, e);
	if (r != 0)
		return r;
	r = pod_app_stop(&a.target, o->app, o->grace_s, e);
	if (r != APP_POD_STOPPED)
		return r;
	printf("pod \"%s\" is already stopped\n", a.pod.uuid.text);
	return 0;
}

const struct command cmd_app_stop = {
	.name = "stop",
	.path = "app stop",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "stop an app of a running pod",
	.description =
		"Sends SIGTERM, and SIGKILL to what is left after the grace period; returns when the\n"
		"app has ended. It can be started again.",
	COMMAND_FLAGS(flags, struct app_opts),
	.defaults = &app_defaults,
	.run = run,
};
