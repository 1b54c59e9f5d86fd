/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/run_args.h"

#include <errno.h>
#include <string.h>

#include "host/cli/flags/env_file.h"
#include "host/cli/flags/insecure.h"
#include "host/manifest/user_manifest.h"
#include "lib/os/file.h"

#define APP_CONTEXT "error parsing app image arguments"

void run_opts_init(void *opts)
{
	struct run_opts *o = opts;
	memset(o, 0, sizeof(*o));
	run_request_init(&o->request);
	strv_init(&o->env_files, RUN_ENV_FILES_MAX);
}

void run_opts_deinit(void *opts)
{
	struct run_opts *o = opts;
	run_request_deinit(&o->request);
	strv_deinit(&o->env_files);
}

static int start_image(struct run_opts *o, const char *image, struct err *e)
{
	bool maybe_argument = o->app && !o->app_has_args;
	int r = run_request_add_app(&o->request, image, &o->app);
	if (r < 0)
		return err_sys(e, r, APP_CONTEXT ": at most %d apps", AGENT_APPS_MAX);
	o->app->maybe_argument = maybe_argument;
	o->app_has_args = false;
	return 0;
}

/* Takes the arguments behind "--" up to a lone "---" or the end; moves *@at behind them. */
static int take_args(struct run_opts *o, char *const *args, size_t *at, struct err *e)
{
	if (!o->app)
		return err_set(e, -EINVAL,
			       APP_CONTEXT ": an image is required before any app arguments");
	if (o->app_has_args)
		return err_set(e, -EINVAL,
			       APP_CONTEXT ": only one set of app arguments allowed per image");
	o->app_has_args = true;
	for (; args[*at] && strcmp(args[*at], "---") != 0; (*at)++) {
		int r = strv_add(&o->app->args, args[*at]);
		if (r < 0)
			return err_sys(e, r, APP_CONTEXT ": at most %zu app arguments",
				       o->app->args.max);
	}
	if (args[*at])
		(*at)++;
	return 0;
}

/* Takes the argument at args[*at] and what belongs to it. */
static int take_argument(const struct flag_set *sets, size_t n_sets, char *const *args, size_t *at,
			 struct run_opts *o, struct err *e)
{
	const char *arg = args[*at];
	if (strcmp(arg, "--") == 0) {
		(*at)++;
		return take_args(o, args, at, e);
	}
	if (*arg && strcmp(arg, "---") != 0 && flag_is_flag(arg)) {
		int r = flag_parse_one(sets, n_sets, args, at, e);
		if (r != FLAG_BAD || !o->app)
			return r;
		if (o->app->maybe_argument)
			err_context(e, POD_TAKEN_FOR_IMAGE, o->app->image);
		return err_context(e, APP_CONTEXT);
	}
	(*at)++;
	if (!*arg || strcmp(arg, "---") == 0) /* empty, or a stray end of arguments */
		return 0;
	return start_image(o, arg, e);
}

int run_args_parse(const struct flag_set *sets, size_t n_sets, char *const *args,
		   struct strv *operands, struct err *e)
{
	struct run_opts *o = sets[0].opts;
	(void)operands;
	o->other = sets[0].other;
	for (size_t at = 0; args[at];) {
		int r = take_argument(sets, n_sets, args, &at, o, e);
		if (r != 0)
			return r;
	}
	return 0;
}

void run_opts_take_global(const struct cli *c, struct run_opts *o)
{
	struct run_request *q = &o->request;
	q->all_capabilities = c->insecure & INSECURE_CAPABILITIES;
	q->no_seccomp = c->insecure & INSECURE_SECCOMP;
	q->open_paths = c->insecure & INSECURE_PATHS;
	if (o->mds_register)
		cli_message(c, "--mds-register has no effect, there is no metadata service");
}

/* Each name once in all files together. */
static int read_env_file(const char *path, struct strv *env, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len;
	int r = file_read_path(path, ENV_FILE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "--set-env-file: cannot read \"%s\"", path);
	r = env_file_parse(text, len, env, e);
	return r < 0 ? err_context(e, "--set-env-file: \"%s\"", path) : 0;
}

static int read_manifest(struct run_opts *o, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len;
	const struct pod_env *env = &o->request.env;
	if (o->request.n_apps > 0 || o->inherit_env || o->env_files.n > 0 || env->set.n > 0 ||
	    o->store_only || o->no_store || o->request.pull_policy != PULL_NEW ||
	    o->request.ports.n > 0 || o->request.volumes.n > 0 || o->request.mounts.n > 0 ||
	    o->request.sysctls.n > 0)
		return err_set(e, -EINVAL,
			       "conflicting flags set with --pod-manifest (see --help)");
	int r = file_read_path(o->manifest, POD_MANIFEST_SIZE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "--pod-manifest: cannot read \"%s\"", o->manifest);
	r = declare_parse(text, len, &o->request, e);
	return r < 0 ? err_context(e, "pod manifest \"%s\"", o->manifest) : 0;
}

int run_opts_complete(struct run_opts *o, char *const *host_env, struct err *e)
{
	int r = 0;
	if (o->manifest)
		return read_manifest(o, e);
	if (o->store_only && o->no_store)
		return err_set(e, -EINVAL, "both --store-only and --no-store specified");
	if (o->store_only || o->no_store)
		o->request.pull_policy = o->store_only ? PULL_NEVER : PULL_UPDATE;
	for (size_t i = 0; r == 0 && i < o->env_files.n; i++)
		r = read_env_file(o->env_files.v[i], &o->request.env.file, e);
	if (r < 0)
		return r;
	for (; o->inherit_env && r == 0 && *host_env; host_env++)
		r = strv_add(&o->request.env.inherited, *host_env);
	return r < 0 ? err_sys(e, r, "--inherit-env: at most %d variables", AGENT_ENV_MAX) : 0;
}

/* Ports of a manifest are not the command line's; where there is no network they lead nowhere. */
static int check_network(const struct run_opts *o, struct err *e)
{
	const struct run_request *q = &o->request;
	int r = network_check(&q->network, e);
	if (r == 0 && q->ports.n > 0 && !o->manifest)
		r = network_check_ports(&q->network, e);
	if (r == 0)
		r = pod_ports_check(&q->ports, e);
	if (r == 0 && o->mds_register && network_is_only(&q->network, STAGE1_NET_NONE))
		return err_set(e, -EINVAL,
			       "--mds-register flag does not work with --net=none. Please use "
			       "'host', 'default' or an equivalent network");
	return r;
}

int run_opts_check_run(const struct run_opts *o, struct err *e)
{
	if (o->request.interactive && o->request.detach)
		return err_set(e, -EINVAL, "--interactive and --detach exclude each other");
	return check_network(o, e);
}

/* A terminal of the user's own is all three streams. */
static int check_interactive(const struct run_opts *o, struct err *e)
{
	static const struct stream_modes none;
	if (o->request.n_apps > 1)
		return err_set(e, -EINVAL, "interactive option only supports one image");
	if (o->request.n_apps == 1 && memcmp(&o->request.apps[0].streams, &none, sizeof(none)) != 0)
		return err_set(e, -EINVAL, "--interactive excludes --stdin, --stdout and --stderr");
	return 0;
}

int run_opts_check(const struct run_opts *o, struct err *e)
{
	if (o->request.n_apps == 0 && !o->request.is_mutable)
		return err_set(e, -EINVAL,
			       "must provide at least one image or specify the pod manifest");
	int r = o->request.interactive ? check_interactive(o, e) : 0;
	if (r < 0)
		return r;
	return run_opts_check_run(o, e);
}
