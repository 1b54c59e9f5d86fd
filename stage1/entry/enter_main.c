/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The enter entrypoint of a stage1: a program in an app of the pod in the working directory
 * (docs/protocol-stage1.md). It runs where, as whom and with the environment that the pod manifest
 * has for the app, and as confined as the app.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "lib/wire/words.h"
#include "stage1/apps/pod_plan.h"
#include "stage1/backend.h"
#include "stage1/entry/controller.h"
#include "stage1/entry/enter.h"
#include "stage1/pod/podfiles.h"
#include "stage1/streams/tty.h"

#define TIMEOUT_MS_MAX UINT64_C(86400000) /* a day; who needs longer needs none */

struct options {
	const char *app;
	const char *user, *workdir; /* NULL: the app's */
	char *const *args;          /* which has the --env=NAME=VALUE, --group=NUMBER */
	bool tty, no_tty, clear_env;
	int control_fd;       /* -EBADF: nobody controls it */
	uint64_t timeout_ms;  /* 0: none */
	char *const *command; /* NULL-terminated, not empty */
};

/* One of the options that say something else than the app's part of the manifest. 0 or -EINVAL. */
static int parse_other(const char *arg, struct options *o)
{
	if (str_starts(arg, "--user="))
		o->user = arg + strlen("--user=");
	else if (str_starts(arg, "--workdir="))
		o->workdir = arg + strlen("--workdir=");
	else if (str_starts(arg, "--timeout-ms="))
		return num_parse_u64(arg + strlen("--timeout-ms="), TIMEOUT_MS_MAX, &o->timeout_ms);
	else if (strcmp(arg, "--tty=true") == 0)
		o->tty = true;
	else if (strcmp(arg, "--tty=false") == 0)
		o->no_tty = true;
	else if (strcmp(arg, "--clear-env=true") == 0)
		o->clear_env = true;
	else if (!controller_option(arg, &o->control_fd) && !str_starts(arg, "--group="))
		return str_starts(arg, "--env=") && strchr(arg + strlen("--env=") + 1, '=')
			       ? 0
			       : -EINVAL;
	return 0;
}

/* [--debug] [--pid=N] --appname=NAME [OTHERS] -- COMMAND [ARG...] */
static int enter_parse(int argc, char **argv, struct options *ret)
{
	*ret = (struct options){ .args = argv, .control_fd = -EBADF };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			ret->command = argv + i + 1;
			break;
		}
		if (str_starts(argv[i], "--appname="))
			ret->app = argv[i] + strlen("--appname=");
		else if (!str_starts(argv[i], "--pid=") && strcmp(argv[i], "--debug") != 0 &&
			 parse_other(argv[i], ret) < 0)
			return -EINVAL;
	}
	return ret->app && ret->command && ret->command[0] ? 0 : -EINVAL;
}

/* A terminal for a person at one; else pipes, and input if there can be any. */
static int choose_streams(const struct options *o, struct agent_process *p)
{
	const char *term = o->control_fd < 0 ? getenv("TERM") : NULL;
	p->with_tty = o->tty || (!o->no_tty && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO));
	p->with_stdin = p->with_tty || !fd_is_dev_null(STDIN_FILENO);
	if (!p->with_tty)
		return 0;
	return term && !strv_env_get(&p->env, "TERM") ? strv_addf(&p->env, "TERM=%s", term) : 0;
}

static int take_env(const char *text, struct strv *env)
{
	const char *value = strchr(text, '=');
	cleanup_free char *name = strndup(text, (size_t)(value - text));
	return name ? strv_env_set(env, name, value + 1) : -ENOMEM;
}

/* What the options say instead of the manifest. A user has the groups that the image gives it. */
static int apply_options(const struct options *o, struct agent_app_exec *m)
{
	struct agent_process *p = &m->process;
	int r = 0;
	if (o->clear_env)
		strv_deinit(&p->env);
	if (o->user) {
		p->group[0] = '\0';
		r = str_copy(p->user, sizeof(p->user), o->user);
	}
	p->cwd_is_there = true; /* the app made it if it is its image's; nobody else makes any */
	if (r == 0 && o->workdir)
		r = str_copy(p->cwd, sizeof(p->cwd), o->workdir);
	for (char *const *arg = o->args; r == 0 && *arg && strcmp(*arg, "--") != 0; arg++) {
		if (str_starts(*arg, "--env="))
			r = take_env(*arg + strlen("--env="), &p->env);
		else if (str_starts(*arg, "--group="))
			r = strv_add(&m->groups, *arg + strlen("--group="));
	}
	return r;
}

static int make_request(const struct options *o, const struct pod_app *app,
			struct agent_app_exec *m)
{
	int r = str_copy(m->app, sizeof(m->app), o->app);
	if (r == 0)
		r = pod_plan_process(app, &m->process);
	for (char *const *word = o->command; r == 0 && *word; word++)
		r = strv_add(&m->process.exec, *word);
	if (r == 0)
		r = apply_options(o, m);
	return r < 0 ? r : choose_streams(o, &m->process);
}

static int check_words(const struct agent_process *p, struct err *e)
{
	const struct strv *const lists[] = { &p->exec, &p->env };
	int r = words_check(&p->exec, &p->env, e);
	return r < 0 ? r : words_check_message(lists, ARRAY_SIZE(lists), e);
}

static int run(const struct options *o, int *ret_status, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest manifest;
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	char secret[AGENT_SECRET_LEN + 1];
	pod_manifest_init(&manifest);
	agent_app_exec_init(&m);
	cleanup_fd int pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	int r = podfiles_read_manifest(pod_fd, &manifest, e);
	if (r < 0)
		return r;
	const struct pod_app *app = pod_manifest_find(&manifest, o->app);
	if (!app)
		return err_set(e, -ENOENT, "the pod has no app \"%s\"", o->app);
	r = make_request(o, app, &m);
	if (r < 0)
		return err_sys(e, r, "command (at most %d words and %d variables)", AGENT_EXEC_MAX,
			       AGENT_ENV_MAX);
	r = check_words(&m.process, e);
	if (r < 0)
		return r;
	r = podfiles_read_secret(pod_fd, secret, e);
	if (r < 0)
		return r;
	const struct enter_input in = { .route = &flavor_route,
					.secret = secret,
					.exec = &m,
					.control_fd = o->control_fd,
					.timeout_ms = (int64_t)o->timeout_ms };
	return enter_run(&in, ret_status, e);
}

/* Says why it has failed: who controls it reads nothing else, or else a person does. */
static void fail(const struct options *o, const struct err *e)
{
	struct agent_exec_exited m = { .code = EXIT_HUSK_FAILURE };
	str_copy_text(m.message, sizeof(m.message), e->text);
	if (o->control_fd >= 0)
		controller_tell_exited(o->control_fd, &m);
	else
		fprintf(stderr, "stage1: enter: %s\n", e->text);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct options o;
	int status = 0;
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	if (enter_parse(argc, argv, &o) < 0) {
		fprintf(stderr, "stage1: enter: usage: enter [--debug] [--pid=N] --appname=NAME "
				"[--user=USER] [--workdir=DIR] [--env=NAME=VALUE]... [--tty=BOOL] "
				"[--timeout-ms=N] [--group=NUMBER]... [--clear-env=true] "
				"[--control=FD] -- COMMAND [ARG...]\n");
		return EXIT_HUSK_FAILURE;
	}
	if (run(&o, &status, &e) == 0)
		return status;
	fail(&o, &e);
	return EXIT_HUSK_FAILURE;
}
