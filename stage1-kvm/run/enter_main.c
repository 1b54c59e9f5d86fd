/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The enter entrypoint of stage1-kvm: a program in an app of the pod in the working directory
 * (docs/protocol-stage1.md). It runs where, as whom and with the environment that the pod manifest has
 * for the app, and as confined as the app.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1-kvm/plan/plan.h"
#include "stage1-kvm/run/enter.h"
#include "stage1-kvm/run/podfiles.h"
#include "stage1-kvm/run/tty.h"

struct options {
	const char *app;
	char *const *command; /* NULL-terminated, not empty */
};

/* [--debug] [--pid=N] --appname=NAME -- COMMAND [ARG...] */
static int parse(int argc, char **argv, struct options *ret)
{
	*ret = (struct options){ 0 };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			ret->command = argv + i + 1;
			break;
		}
		if (str_starts(argv[i], "--appname="))
			ret->app = argv[i] + strlen("--appname=");
		else if (!str_starts(argv[i], "--pid=") && strcmp(argv[i], "--debug") != 0)
			return -EINVAL;
	}
	return ret->app && ret->command && ret->command[0] ? 0 : -EINVAL;
}

/* A terminal for a person at one; else pipes, and input if there can be any. */
static int choose_streams(struct agent_process *p)
{
	const char *term = getenv("TERM");
	p->with_tty = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	p->with_stdin = p->with_tty || !fd_is_dev_null(STDIN_FILENO);
	if (!p->with_tty)
		return 0;
	tty_size(STDIN_FILENO, &p->rows, &p->cols);
	return term && !strv_env_get(&p->env, "TERM") ? strv_addf(&p->env, "TERM=%s", term) : 0;
}

static int make_request(const struct options *o, const struct pod_app *app,
			struct agent_app_exec *m)
{
	int r = str_copy(m->app, sizeof(m->app), o->app);
	if (r == 0)
		r = plan_process(app, &m->process);
	for (char *const *word = o->command; r == 0 && *word; word++)
		r = strlen(*word) > AGENT_STRING_MAX ? -E2BIG : strv_add(&m->process.exec, *word);
	return r < 0 ? r : choose_streams(&m->process);
}

static int run(const struct options *o, int *ret_status, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest manifest;
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	struct dial_target target;
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
		return err_sys(e, r, "command (at most %d words of %d bytes)", AGENT_EXEC_MAX,
			       AGENT_STRING_MAX);
	r = podfiles_dial_target(pod_fd, &target, e);
	if (r == 0)
		r = podfiles_read_secret(pod_fd, secret, e);
	if (r < 0)
		return r;
	const struct enter_input in = { .target = &target, .secret = secret, .exec = &m };
	return enter_run(&in, ret_status, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct options o;
	int status = 0;
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	if (parse(argc, argv, &o) < 0) {
		fprintf(stderr, "stage1: enter: usage: enter [--debug] [--pid=N] --appname=NAME -- "
				"COMMAND [ARG...]\n");
		return EXIT_HUSK_FAILURE;
	}
	if (run(&o, &status, &e) == 0)
		return status;
	fprintf(stderr, "stage1: enter: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
