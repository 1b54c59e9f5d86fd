/* husk run */
#include <unistd.h>

#include "host/cli/cli.h"
#include "host/cli/help.h"
#include "host/cli/run_args.h"
#include "host/cli/settings.h"
#include "lib/os/fd.h"

static void print_note(void *ctx, const char *text)
{
	cli_message(ctx, "%s", text);
}

static int start_pod(struct cli *c, struct run_opts *o)
{
	char path[PATH_MAX], space[PATH_MAX];
	const char *stage1 = NULL;
	struct err e = ERR_INIT;
	struct uuid uuid;
	int r = run_opts_complete(o, environ, &e);
	if (r == 0)
		r = run_opts_check(o, &e);
	if (r == 0)
		r = cli_data_dir(c, path, &e);
	if (r == 0)
		r = cli_stage1_dir(c, space, &stage1, &e);
	if (r < 0)
		return cli_fail(c, &e);
	cleanup_fd int data_fd = cli_open_data_dir(c, true, &e);
	if (data_fd < 0)
		return cli_fail(c, &e);
	o->request.start_ns = c->start_ns;
	o->request.debug = c->debug;
	o->request.note = c->debug ? print_note : NULL;
	o->request.note_ctx = c;
	if (pod_run(&o->request, data_fd, path, stage1, &uuid, &e) != RUN_DETACHED)
		return cli_fail(c, &e);
	printf("%s\n", uuid.text);
	return 0;
}

static int run(struct cli *c, char *const *args)
{
	const struct flag_set global = { .flags = global_flags, .n = n_global_flags, .opts = c };
	CLEANUP(run_opts_deinit) struct run_opts o;
	struct err e = ERR_INIT;
	run_opts_init(&o);
	int r = run_args_parse(c->cmd, &global, args, &o, &e);
	if (c->help) {
		help_print_command(stdout, c->cmd);
		return 0;
	}
	if (r == FLAG_BAD)
		return cli_usage_error(c, &e);
	return r < 0 ? cli_fail(c, &e) : start_pod(c, &o);
}

const struct command cmd_run = {
	.name = "run",
	.usage = "[OPTIONS] IMAGE [APP OPTIONS] [-- ARGS... [---]] [IMAGE ...]",
	.summary = "run one or more apps in a pod",
	.description =
		"Makes a pod, starts its virtual machine and becomes the pod's supervisor: the exit\n"
		"status is that of the first app that failed, 0 if none did, 254 if husk failed. With\n"
		"--detach the supervisor goes to the background, and the UUID is printed when the pod\n"
		"is up.\n"
		"\n"
		"An IMAGE is a path of an OCI layout or docker archive, PATH:TAG, or oci:, oci-archive:\n"
		"or docker-archive: with such a path. App options follow the image that they are for.\n"
		"ARGS replace the image's command and are given to its entrypoint, if it has one;\n"
		"--exec=PROGRAM replaces both, and ARGS then are the program's arguments. A lone ---\n"
		"ends ARGS, so that another image can follow.",
	.flags = run_flags,
	.n_flags = RUN_FLAG_COUNT,
	.per_app_grammar = true,
	.run = run,
};
