/* SPDX-License-Identifier: Apache-2.0 */
/* husk app add */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cli/data_dir.h"
#include "host/cli/images.h"
#include "host/cli/pods.h"
#include "host/cli/run_args.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_choice.h"
#include "host/cli/start.h"
#include "host/pod/app.h"
#include "lib/os/fd.h"

/*
 * The first argument that is not a flag is the UUID: the operand. The others are as for husk run.
 */
static int app_add_parse(const struct flag_set *sets, size_t n_sets, char *const *args,
			 struct strv *operands, struct err *e)
{
	size_t uuid = command_word_index(args), n = uuid;
	while (args[n])
		n++;
	cleanup_free char **rest = calloc(n + 1, sizeof(*rest));
	int r = rest ? 0 : -ENOMEM;
	if (r == 0 && args[uuid])
		r = strv_add(operands, args[uuid]);
	if (r < 0)
		return err_sys(e, r, "arguments");
	for (size_t from = 0, to = 0; from < n; from++)
		if (from != uuid)
			rest[to++] = args[from];
	return run_args_parse(sets, n_sets, rest, operands, e);
}

static int add_app_to_pod(struct cli *c, const char *prefix, struct run_opts *o, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_free struct stage1 *stage1 = NULL;
	char path[PATH_MAX];
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return err_context(e, "problem retrieving pod");
	r = cli_data_dir(c, path, e);
	if (r == 0)
		r = cli_pod_stage1(c, &p, &stage1, e);
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

static int app_add_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	struct run_opts *o = opts;
	int r = run_opts_complete(o, environ, e);
	if (r < 0)
		return r;
	if (operands->n == 0 || o->request.n_apps == 0)
		return err_set(e, -EINVAL, "must provide the pod UUID and an IMAGEID");
	if (o->request.n_apps > 1)
		return err_set(e, -EINVAL, "must give only one app");
	return add_app_to_pod(c, operands->v[0], o, e);
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
	RUN_COMMAND(IN_ADD),
	.parse = app_add_parse,
	.run = app_add_run,
};
