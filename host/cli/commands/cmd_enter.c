/* SPDX-License-Identifier: Apache-2.0 */
/* husk enter */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/cli/app_flags.h"
#include "host/cli/flags/duration.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/running.h"
#include "host/pod/wait.h"
#include "lib/os/clock.h"

#define DEFAULT_COMMAND "/bin/bash"
#define TIMEOUT_MAX_NS  (INT64_C(24) * 3600 * NS_PER_SEC)

struct enter_opts {
	const char *app;
	const char *user, *workdir; /* NULL: as the app */
	struct strv env;
	bool tty, no_tty;
	int64_t timeout_ms; /* 0: none */
};

static int add_env(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct enter_opts *o = opts;
	return app_flag_add_variable(&o->env, f, value, e);
}

static int set_workdir(void *opts, const struct flag *f, const char *value, struct err *e)
{
	if (value[0] != '/' || strlen(value) > AGENT_PATH_MAX)
		return err_set(e, -EINVAL,
			       "--%s: \"%.80s\" is not an absolute path of at most %d bytes",
			       f->name, value, AGENT_PATH_MAX);
	return flag_set_string(opts, f, value, e);
}

static int set_user(void *opts, const struct flag *f, const char *value, struct err *e)
{
	if (!*value || strlen(value) > AGENT_USER_MAX)
		return err_set(e, -EINVAL, "--%s: \"%.80s\" is not a user of at most %d bytes",
			       f->name, value, AGENT_USER_MAX);
	return flag_set_string(opts, f, value, e);
}

static int set_timeout(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct enter_opts *o = opts;
	int64_t ns = 0;
	if (duration_parse(value, &ns) < 0 || ns < NS_PER_MS || ns > TIMEOUT_MAX_NS)
		return err_set(e, -EINVAL, "--%s: \"%.80s\" is not a duration from 1ms to 24h",
			       f->name, value);
	o->timeout_ms = ns / NS_PER_MS;
	return 0;
}

static const struct flag flags[] = {
	FLAG_STRING("app", "NAME", struct enter_opts, app,
		    "the app to enter; needed if the pod has several"),
	FLAG_OWN("env", "NAME=VALUE", add_env,
		 "set a variable, beside those of the app; repeatable"),
	FLAG_SWITCH("no-tty", struct enter_opts, no_tty, "no terminal, even if husk has one"),
	FLAG_OWN("timeout", "DURATION", set_timeout,
		 "end the command after that time, with exit status 124"),
	FLAG_SWITCH("tty", struct enter_opts, tty, "a terminal, even if husk has none"),
	FLAG_AT("user", "USER[:GROUP]", set_user, struct enter_opts, user,
		"run as this user, instead of the app's: names or numbers"),
	FLAG_AT("workdir", "DIR", set_workdir, struct enter_opts, workdir,
		"run in this directory, instead of the app's"),
};

/* Which names there are, for somebody who has to choose. */
static void list_apps(const struct cli *c, const struct pod_info *info)
{
	cli_message(c, "pod contains multiple apps:");
	for (size_t i = 0; i < info->n_apps; i++)
		cli_message(c, "\t%s", info->apps[i].name);
}

/*
 * Becomes the enter entrypoint of stage1 for @app, of the pod @p with @info. Returns only on
 * failure.
 */
static int enter_app(const struct cli *c, const struct enter_opts *o, const struct pod *p,
		     const struct pod_info *info, const char *app, const struct stage1 *stage1,
		     char *const *command, struct err *e)
{
	static char shell[] = DEFAULT_COMMAND;
	static char *const assumed[] = { shell, NULL };
	if (!command[0]) {
		cli_message(c, "no command specified, assuming \"%s\"", DEFAULT_COMMAND);
		command = assumed;
	}
	const struct abi_enter enter = {
		.app = app,
		.pid = info->pid,
		.debug = c->debug,
		.user = o->user,
		.workdir = o->workdir,
		.env = &o->env,
		.tty = o->tty      ? "true"
		       : o->no_tty ? "false"
				   : NULL,
		.timeout_ms = o->timeout_ms,
		.command = command,
	};
	return pod_enter(p, stage1, &enter, CLI_ARGS_MAX, e);
}

static int enter(struct cli *c, const struct enter_opts *o, char *const *words, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	cleanup_free struct stage1 *stage1 = NULL;
	int r = cli_open_pod(c, false, words[0], &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = pod_need_running(&p, e);
	if (r == 0)
		r = cli_pod_stage1(c, &p, &stage1, e);
	if (r == 0)
		r = pod_enter_wait(ps, &p, stage1, &info, e);
	if (r < 0)
		return r;
	if (!o->app && info.n_apps > 1)
		list_apps(c, &info);
	const char *app = cli_find_app(c, &info, o->app, e);
	if (!app)
		return -EINVAL;
	words++;
	if (words[0] && strcmp(words[0], "--") == 0)
		words++;
	return enter_app(c, o, &p, &info, app, stage1, words, e);
}

/* Flags end at the first argument that is none: the rest is the command's. */
static int parse(const struct flag_set *sets, size_t n_sets, char *const *args,
		 struct strv *operands, struct err *e)
{
	size_t at = 0;
	int r = 0;
	while (r == 0 && args[at] && flag_is_flag(args[at]))
		r = flag_parse_one(sets, n_sets, args, &at, e);
	if (r != 0)
		return r;
	if (args[at] && strcmp(args[at], "--") == 0)
		at++;
	for (; r == 0 && args[at]; at++)
		r = strv_add(operands, args[at]);
	return r < 0 ? err_sys(e, r, "arguments") : 0;
}

static void enter_init(void *opts)
{
	strv_init(&((struct enter_opts *)opts)->env, AGENT_ENV_MAX);
}

static void deinit(void *opts)
{
	strv_deinit(&((struct enter_opts *)opts)->env);
}

static int run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct enter_opts *o = opts;
	if (o->tty && o->no_tty)
		return err_set(e, CLI_MISUSE, "--tty and --no-tty exclude each other");
	if (operands->n == 0)
		return err_set(e, CLI_MISUSE, "must provide the pod UUID");
	return enter(c, o, operands->v, e); /* returns only on failure */
}

static const char description[] =
	"Runs COMMAND, " DEFAULT_COMMAND
	" if there is none, as another process of the app: in its root\n"
	"directory, as its user, with its environment and as confined as it is. It has a\n"
	"terminal if husk has one for input and output, or as --tty and --no-tty say. The exit status is the command's, 128\n"
	"and the number of the signal that ended it, 203 if it could not be executed, 254 if\n"
	"husk failed. The command ends with husk, and with the app.";

/* What both names of it have. */
#define ENTER                                                                              \
	.usage = "[OPTIONS] UUID [COMMAND [ARGS...]]",                                     \
	.summary = "run a command in an app of a running pod", .description = description, \
	COMMAND_FLAGS(flags, struct enter_opts), .init = enter_init, .deinit = deinit,     \
	.parse = parse, .needs_owner = true, .run = run

const struct command cmd_enter = { .name = "enter", ENTER };
const struct command cmd_app_exec = { .name = "exec", .path = "app exec", ENTER };
