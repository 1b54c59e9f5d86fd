/* SPDX-License-Identifier: Apache-2.0 */
/* husk enter */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/help.h"
#include "host/cli/pods.h"
#include "host/cli/settings.h"
#include "host/launch/stage1.h"
#include "host/pod/info.h"
#include "host/pod/wait.h"

#define DEFAULT_COMMAND "/bin/bash"
#define ENTER_ARGS_MAX  (CLI_ARGS_MAX + 8) /* the command, and what is in front of it */

struct enter_opts {
	const char *app;
};

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct enter_opts, app,
		    "the app to enter; needed if the pod has several"),
};

/* Which names there are, for somebody who has to choose. */
static void list_apps(const struct cli *c, const struct pod_info *info)
{
	cli_message(c, "pod contains multiple apps:");
	for (size_t i = 0; i < info->n_apps; i++)
		cli_message(c, "\t%s", info->apps[i].name);
}

static int make_args(const struct cli *c, const struct pod_info *info, const char *app,
		     char *const *command, struct strv *args)
{
	static char shell[] = DEFAULT_COMMAND;
	static char *const assumed[] = { shell, NULL };
	if (!command[0]) {
		cli_message(c, "no command specified, assuming \"%s\"", DEFAULT_COMMAND);
		command = assumed;
	}
	int r = c->debug ? strv_add(args, "--debug") : 0;
	if (r == 0 && info->pid > 0)
		r = strv_addf(args, "--pid=%d", (int)info->pid);
	if (r == 0)
		r = strv_addf(args, "--appname=%s", app);
	if (r == 0)
		r = strv_add(args, "--");
	for (; r == 0 && *command; command++)
		r = strv_add(args, *command);
	return r;
}

/* Waits until the apps of the pod have been started. */
static int wait_running(struct pods *ps, struct pod *p, struct err *e)
{
	if (pod_state_of(p->phase, p->locked) == POD_STATE_RUNNING) {
		int r = pod_wait_ready(ps, p, INT64_MAX, e);
		if (r < 0 && p->fd >= 0 && p->locked)
			return r;
	}
	if (pod_state_of(p->phase, p->locked) == POD_STATE_RUNNING)
		return 0;
	return err_set(e, -EINVAL, "pod \"%s\" isn't currently running", p->uuid.text);
}

/* Becomes the enter entrypoint of stage1. Returns only on failure. */
static int enter(struct cli *c, const struct enter_opts *o, char *const *words, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	cleanup_strv struct strv args;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	strv_init(&args, ENTER_ARGS_MAX);
	if (!stage1)
		return err_sys(e, -ENOMEM, "stage1");
	int r = cli_open_pod(c, false, words[0], &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = wait_running(ps, &p, e);
	if (r < 0)
		return r;
	r = pod_info_read(ps, &p, &info);
	if (r != 0)
		return err_set(e, -ENOENT, "pod \"%s\" isn't currently running", p.uuid.text);
	if (!o->app && info.n_apps > 1)
		list_apps(c, &info);
	const char *app = cli_find_app(c, &info, o->app, e);
	if (!app)
		return -EINVAL;
	words++;
	if (words[0] && strcmp(words[0], "--") == 0)
		words++;
	r = make_args(c, &info, app, words, &args);
	if (r < 0)
		return err_sys(e, r, "command");
	r = cli_open_stage1(c, stage1, e);
	return r < 0 ? r : stage1_exec_enter(stage1, p.fd, &args, e);
}

/* Flags end at the first argument that is none: the rest is the command's. */
static int parse(struct cli *c, struct enter_opts *o, char *const *args, size_t *at, struct err *e)
{
	const struct flag_set sets[] = {
		{ .flags = c->cmd->flags, .n = c->cmd->n_flags, .opts = o },
		{ .flags = global_flags, .n = n_global_flags, .opts = c },
	};
	while (args[*at] && flag_is_flag(args[*at])) {
		int r = flag_parse_one(sets, ARRAY_SIZE(sets), args, at, e);
		if (r != 0)
			return r;
	}
	if (args[*at] && strcmp(args[*at], "--") == 0)
		(*at)++;
	return 0;
}

static int run(struct cli *c, char *const *args)
{
	struct enter_opts o = { 0 };
	struct err e = ERR_INIT;
	size_t at = 0;
	int r = parse(c, &o, args, &at, &e);
	if (r == FLAG_BAD)
		return cli_usage_error(c, &e);
	if (r < 0)
		return cli_fail(c, &e);
	if (c->help) {
		help_print_command(stdout, c->cmd);
		return 0;
	}
	if (!args[at]) {
		err_set(&e, -EINVAL, "must provide the pod UUID");
		return cli_usage_error(c, &e);
	}
	enter(c, &o, args + at, &e); /* returns only on failure */
	return cli_fail(c, &e);
}

#define USAGE   "[OPTIONS] UUID [COMMAND [ARGS...]]"
#define SUMMARY "run a command in an app of a running pod"

static const char description[] =
	"Runs COMMAND, " DEFAULT_COMMAND
	" if there is none, as another process of the app: in its root\n"
	"directory, as its user, with its environment and as confined as it is. It has a\n"
	"terminal if husk has one for input and output. The exit status is the command's, 128\n"
	"and the number of the signal that ended it, 203 if it could not be executed, 254 if\n"
	"husk failed. The command ends with husk, and with the app.";

const struct command cmd_enter = {
	.name = "enter",
	.usage = USAGE,
	.summary = SUMMARY,
	.description = description,
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.per_app_grammar = true,
	.run = run,
};

const struct command cmd_app_exec = {
	.name = "exec",
	.path = "app exec",
	.usage = USAGE,
	.summary = SUMMARY,
	.description = description,
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.per_app_grammar = true,
	.run = run,
};
