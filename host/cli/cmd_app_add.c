/* SPDX-License-Identifier: Apache-2.0 */
/* husk app add */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cli/help.h"
#include "host/cli/images.h"
#include "host/cli/pods.h"
#include "host/cli/run_args.h"
#include "host/cli/settings.h"
#include "host/cli/start.h"
#include "host/pod/app.h"
#include "lib/os/fd.h"

/* All arguments but the first that is not a flag, which is the UUID: *ret_uuid, or NULL. */
static int split(char *const *args, struct strv *rest, const char **ret_uuid)
{
	size_t at = command_word_index(args);
	int r = 0;
	*ret_uuid = args[at];
	for (size_t i = 0; r == 0 && args[i]; i++)
		if (i != at)
			r = strv_add(rest, args[i]);
	return r;
}

static int add(struct cli *c, const char *prefix, struct run_opts *o, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_free struct stage1 *stage1 = calloc(1, sizeof(*stage1));
	char path[PATH_MAX];
	if (!stage1)
		return err_sys(e, -ENOMEM, "stage1");
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = cli_data_dir(c, path, e);
	if (r == 0)
		r = cli_pod_stage1(c, &p, stage1, e);
	if (r == 0)
		r = cli_image_settings(c, &o->request.images, e);
	if (r < 0)
		return r;
	cleanup_fd int data_fd = cli_open_data_dir(c, true, e);
	if (data_fd < 0)
		return data_fd;
	cli_complete_request(c, o);
	const struct app_target t = { ps, &p, stage1 };
	return pod_app_add(&t, &o->request, data_fd, path, e);
}

static int check(const struct run_opts *o, const char *uuid, struct err *e)
{
	if (!uuid || o->request.n_apps == 0)
		return err_set(e, -EINVAL, "must provide the pod UUID and an IMAGEID");
	if (o->request.n_apps > 1)
		return err_set(e, -EINVAL, "must give only one app");
	return 0;
}

static int run(struct cli *c, char *const *args)
{
	static char *const none[] = { NULL };
	const struct flag_set global = cli_global_flags(c);
	CLEANUP(run_opts_deinit) struct run_opts o;
	cleanup_strv struct strv rest;
	const char *uuid = NULL;
	struct err e = ERR_INIT;
	run_opts_init(&o);
	strv_init(&rest, CLI_ARGS_MAX);
	int r = split(args, &rest, &uuid);
	if (r == 0)
		r = run_args_parse(c->cmd, &global, rest.v ? rest.v : none, &o, &e);
	if (c->help) {
		help_print_command(c, c->cmd);
		return 0;
	}
	if (r == FLAG_BAD)
		return cli_usage_error(c, &e);
	if (r == 0)
		r = run_opts_complete(&o, environ, &e);
	if (r == 0)
		r = check(&o, uuid, &e);
	if (r == 0)
		r = add(c, uuid, &o, &e);
	return r < 0 ? cli_fail(c, &e) : 0;
}

const struct command cmd_app_add = {
	.name = "add",
	.path = "app add",
	.usage = "[OPTIONS] UUID IMAGE [APP OPTIONS] [-- ARGS...]",
	.summary = "add an app to a running pod",
	.description =
		"Plugs the image into the virtual machine of a pod that husk app sandbox has made and\n"
		"mounts it there. The app is started by husk app start. IMAGE, APP OPTIONS and ARGS are\n"
		"those of husk run. For its output see husk logs.",
	.flags = run_flags,
	.n_flags = RUN_FLAG_COUNT,
	.only = IN_ADD,
	.per_app_grammar = true,
	.run = run,
};
