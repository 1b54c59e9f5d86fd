/* SPDX-License-Identifier: Apache-2.0 */
/* husk app start, husk app stop, husk app rm */
#include "host/cli/app_command.h"

static const struct flag flags[] = {
	APP_FLAG_APP,
	APP_FLAG_GRACE,
	APP_FLAG_UUID_FILE,
};

static const struct flag start_flags[] = {
	APP_FLAG_APP,
	APP_FLAG_UUID_FILE,
};

static int app_start_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	const struct app_opts *o = opts;
	int r = app_command_open(c, o, operands, "must provide the app to start", true, &a, e);
	if (r == 0)
		r = pod_app_start(&a.target, o->app, e);
	return r;
}

const struct command cmd_app_start = {
	.name = "start",
	.path = "app start",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "start an app of a running pod",
	.description =
		"For the first time, or again after it has ended, with what it has written since it\n"
		"was added. An app that runs is left alone.",
	COMMAND_FLAGS(start_flags, struct app_opts),
	.defaults = &app_defaults,
	.run = app_start_run,
};

static int app_stop_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
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
		"Asks it to end, and sends SIGKILL to what is left after the grace period; returns\n"
		"when the app has ended. It can be started again.",
	COMMAND_FLAGS(flags, struct app_opts),
	.defaults = &app_defaults,
	.run = app_stop_run,
};

static int remove_app(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	CLEANUP(app_command_deinit) struct app_command a;
	const struct app_opts *o = opts;
	int r = app_command_open(c, o, operands, "must provide the app to remove", true, &a, e);
	if (r == 0)
		r = pod_app_remove(&a.target, o->app, o->grace_s, e);
	return r;
}

const struct command cmd_app_rm = {
	.name = "rm",
	.path = "app rm",
	.usage = "[OPTIONS] --app=NAME UUID | --uuid-file=FILE",
	.summary = "remove an app from a pod",
	.description =
		"Stops it if it runs, then removes it with what it has written and logged. Its name\n"
		"is free again, and so is its space.",
	COMMAND_FLAGS(flags, struct app_opts),
	.defaults = &app_defaults,
	.run = remove_app,
};
