/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/run_args.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "host/cli/app_flags.h"
#include "host/cli/env_file.h"
#include "host/cli/images.h"
#include "host/cli/insecure.h"
#include "host/pod/declare.h"
#include "lib/os/file.h"

#define APP_CONTEXT "error parsing app image arguments"

void run_opts_init(struct run_opts *o)
{
	memset(o, 0, sizeof(*o));
	run_request_init(&o->request);
	strv_init(&o->nets, RUN_NETS_MAX);
	strv_init(&o->env_files, RUN_ENV_FILES_MAX);
}

void run_opts_deinit(struct run_opts *o)
{
	run_request_deinit(&o->request);
	strv_deinit(&o->nets);
	strv_deinit(&o->env_files);
}

static int add_pod_env(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	return app_flag_add_variable(&o->request.env.set, f, value, e);
}

static bool is_hostname(const char *s)
{
	size_t n = strlen(s);
	if (n == 0 || n > AGENT_HOSTNAME_MAX || s[0] == '-' || s[n - 1] == '-')
		return false;
	for (; *s; s++)
		if ((unsigned char)*s >= 0x80 ||
		    (!isalnum((unsigned char)*s) && !strchr("-._", *s)))
			return false;
	return true;
}

/* --hostname= (empty) means the default name, as if the flag were absent. */
static int set_hostname(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	if (*value && !is_hostname(value))
		return err_set(
			e, -EINVAL,
			"--%s: \"%.80s\" is not a host name (1 to %d of letters, digits, '-', '_' and "
			"'.')",
			f->name, value, AGENT_HOSTNAME_MAX);
	o->request.hostname = *value ? value : NULL;
	return 0;
}

static int add_net(struct run_opts *o, const char *name, size_t len, struct err *e)
{
	if (len == 0)
		return err_set(e, -EINVAL, "netname must not be empty");
	for (size_t i = 0; i < o->nets.n; i++)
		if (strncmp(o->nets.v[i], name, len) == 0 && o->nets.v[i][len] == '\0')
			return err_set(e, -EEXIST, "found duplicate netname \"%.*s\"", (int)len,
				       name);
	if (len != 4 || strncmp(name, "none", len) != 0)
		return err_set(e, -EOPNOTSUPP,
			       "network \"%.*s\": networks are not there yet (use --net=none)",
			       (int)MIN(len, (size_t)80), name);
	int r = strv_addf(&o->nets, "%.*s", (int)len, name);
	return r < 0 ? err_sys(e, r, "--net: at most %zu networks", o->nets.max) : 0;
}

/* A comma-separated list of NAME[:ARGS]. */
static int set_net(void *opts, const struct flag *f, const char *value, struct err *e)
{
	(void)f;
	for (;;) {
		size_t len = strcspn(value, ",");
		int r = add_net(opts, value, strcspn(value, ":,"), e);
		if (r < 0 || value[len] == '\0')
			return r;
		value += len + 1;
	}
}

/* A pod in a machine of its own has IPC of its own. */
static int set_ipc(void *opts, const struct flag *f, const char *value, struct err *e)
{
	(void)opts;
	if (strcmp(value, "parent") == 0)
		return err_set(
			e, -EOPNOTSUPP,
			"--%s: a pod in a virtual machine has a private IPC namespace (try to "
			"remove --ipc)",
			f->name);
	if (!*value || strcmp(value, "auto") == 0 || strcmp(value, "private") == 0)
		return 0;
	return err_set(e, -EINVAL, "--%s: \"%.80s\" is not auto, private or parent", f->name,
		       value);
}

/* What rkt has and husk does not: said when it is clear that nothing else is wrong. */
static int set_later(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	(void)value;
	(void)e;
	if (!o->later)
		o->later = f;
	return 0;
}

static int set_exit_policy(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	if (pod_exit_policy_parse(value, &o->request.exit_policy) == 0)
		return 0;
	return err_set(e, -EINVAL, "--%s: \"%.80s\" is not any-failure, all-exited or never",
		       f->name, value);
}

/* Flags that more than one of the commands has. Each table is in alphabetic order. */
#define FLAG_LATER(name_, thing_)                                  \
	{                                                          \
		.name = (name_), .arg = (thing_), .set = set_later \
	}
#define NETWORKS         "networks"
#define VOLUMES          "volumes"
#define FLAG_DNS         FLAG_LATER("dns", NETWORKS)
#define FLAG_DNS_DOMAIN  FLAG_LATER("dns-domain", NETWORKS)
#define FLAG_DNS_OPT     FLAG_LATER("dns-opt", NETWORKS)
#define FLAG_DNS_SEARCH  FLAG_LATER("dns-search", NETWORKS)
#define FLAG_HOSTS_ENTRY FLAG_LATER("hosts-entry", NETWORKS)
#define FLAG_PORT        FLAG_LATER("port", NETWORKS)
#define FLAG_MNT_VOLUME  FLAG_LATER("mnt-volume", VOLUMES)
#define FLAG_MOUNT       FLAG_LATER("mount", VOLUMES)
#define FLAG_VOLUME      FLAG_LATER("volume", VOLUMES)
#define FLAG_IPC                                                                 \
	{                                                                        \
		.name = "ipc", .arg = "auto|private|parent", .set = set_ipc,     \
		.help = "IPC namespace of the pod; it always has one of its own" \
	}
#define FLAG_MDS_REGISTER                                          \
	FLAG_SWITCH("mds-register", struct run_opts, mds_register, \
		    "accepted from rkt; there is no metadata service")
#define FLAG_NO_OVERLAY                                        \
	FLAG_SWITCH("no-overlay", struct run_opts, no_overlay, \
		    "accepted from rkt; images are never copied")
#define FLAG_NO_STORE \
	FLAG_SWITCH("no-store", struct run_opts, no_store, "the same as --pull-policy=update")
#define FLAG_STORE_ONLY \
	FLAG_SWITCH("store-only", struct run_opts, store_only, "the same as --pull-policy=never")
#define FLAG_DETACH                                            \
	FLAG_SWITCH("detach", struct run_opts, request.detach, \
		    "return when the pod is up, with its UUID; see husk logs")
#define FLAG_EXIT_POLICY                                                       \
	{                                                                      \
		.name = "exit-policy", .arg = "any-failure|all-exited|never",  \
		.set = set_exit_policy,                                        \
		.help = "which ends of apps end the pod (default any-failure)" \
	}
#define FLAG_HOSTNAME                                                   \
	{                                                               \
		.name = "hostname", .arg = "NAME", .set = set_hostname, \
		.help = "host name of the pod"                          \
	}
#define FLAG_INTERACTIVE                                                 \
	FLAG_SWITCH("interactive", struct run_opts, request.interactive, \
		    "connect the terminal to the app; one app only")
#define FLAG_INHERIT_ENV                                         \
	FLAG_SWITCH("inherit-env", struct run_opts, inherit_env, \
		    "give apps the variables of husk that they have no value for")
#define FLAG_NET                                                                 \
	{                                                                        \
		.name = "net", .arg = "none", .bare = "default", .set = set_net, \
		.help = "networks; this version has only none, the default"      \
	}
#define FLAG_POD_MANIFEST                                              \
	FLAG_STRING("pod-manifest", "FILE", struct run_opts, manifest, \
		    "an appc pod manifest that says everything about the apps")
#define FLAG_PULL FLAG_PULL_POLICY(struct run_opts, request.pull_policy, "new")
#define FLAG_SET_ENV                                                               \
	{                                                                          \
		.name = "set-env", .arg = "NAME=VALUE", .set = add_pod_env,        \
		.help = "set a variable for all apps; beats the image; repeatable" \
	}
#define FLAG_SET_ENV_FILE                                                             \
	{                                                                             \
		.name = "set-env-file", .arg = "FILE", .set = flag_add_string,        \
		.offset = offsetof(struct run_opts, env_files),                       \
		.help = "set the variables in the file for all apps; beats the image" \
	}
#define FLAGS_STAGE1 STAGE1_CHOICE_FLAGS(struct run_opts, stage1)
#define FLAG_UUID_FILE_SAVE                                                       \
	FLAG_STRING("uuid-file-save", "FILE", struct run_opts, request.uuid_file, \
		    "write the pod's UUID there")

const struct flag run_flags[] = {
	FLAG_ANNOTATION,
	FLAG_CAP_REMOVE,
	FLAG_CAP_RETAIN,
	FLAG_CAPS_REMOVE,
	FLAG_CAPS_RETAIN,
	FLAG_CPU,
	FLAG_CPU_SHARES,
	FLAG_DETACH,
	FLAG_DNS,
	FLAG_DNS_DOMAIN,
	FLAG_DNS_OPT,
	FLAG_DNS_SEARCH,
	FLAG_ENVIRONMENT,
	FLAG_EXEC,
	FLAG_EXIT_POLICY,
	FLAG_GROUP,
	FLAG_HOSTNAME,
	FLAG_HOSTS_ENTRY,
	FLAG_INHERIT_ENV,
	FLAG_INTERACTIVE,
	FLAG_IPC,
	FLAG_MDS_REGISTER,
	FLAG_APP_MEMORY,
	FLAG_MOUNT,
	FLAG_POD_OR_APP_NAME,
	FLAG_NET,
	FLAG_NO_NEW_PRIVILEGES,
	FLAG_NO_OVERLAY,
	FLAG_NO_STORE,
	FLAG_OOM_SCORE_ADJ,
	FLAG_PIDS_LIMIT,
	FLAG_POD_MANIFEST,
	FLAG_PORT,
	FLAG_PULL,
	FLAG_READONLY_ROOTFS,
	FLAG_RLIMIT,
	FLAG_SECCOMP,
	FLAG_SET_ENV,
	FLAG_SET_ENV_FILE,
	FLAG_SIGNATURE,
	FLAGS_STAGE1,
	FLAG_STDERR,
	FLAG_STDIN,
	FLAG_STDOUT,
	FLAG_STORE_ONLY,
	FLAG_SUPPLEMENTARY_GIDS,
	FLAG_USER,
	FLAG_ANY_USER_ANNOTATION,
	FLAG_ANY_USER_LABEL,
	FLAG_UUID_FILE_SAVE,
	FLAG_VOLUME,
	FLAG_WORKING_DIR,
};

const struct flag prepare_flags[] = {
	FLAG_ANNOTATION,
	FLAG_CAP_REMOVE,
	FLAG_CAP_RETAIN,
	FLAG_CAPS_REMOVE,
	FLAG_CAPS_RETAIN,
	FLAG_CPU,
	FLAG_CPU_SHARES,
	FLAG_ENVIRONMENT,
	FLAG_EXEC,
	FLAG_EXIT_POLICY,
	FLAG_GROUP,
	FLAG_HOSTNAME,
	FLAG_INHERIT_ENV,
	FLAG_MDS_REGISTER,
	FLAG_APP_MEMORY,
	FLAG_MOUNT,
	FLAG_POD_OR_APP_NAME,
	FLAG_NET,
	FLAG_NO_NEW_PRIVILEGES,
	FLAG_NO_OVERLAY,
	FLAG_NO_STORE,
	FLAG_OOM_SCORE_ADJ,
	FLAG_PIDS_LIMIT,
	FLAG_POD_MANIFEST,
	FLAG_PORT,
	FLAG_PULL,
	FLAG_SWITCH("quiet", struct run_opts, quiet, "print nothing but the UUID"),
	FLAG_READONLY_ROOTFS,
	FLAG_RLIMIT,
	FLAG_SECCOMP,
	FLAG_SET_ENV,
	FLAG_SET_ENV_FILE,
	FLAG_SIGNATURE,
	FLAGS_STAGE1,
	FLAG_STDERR,
	FLAG_STDIN,
	FLAG_STDOUT,
	FLAG_STORE_ONLY,
	FLAG_SUPPLEMENTARY_GIDS,
	FLAG_USER,
	FLAG_ANY_USER_ANNOTATION,
	FLAG_ANY_USER_LABEL,
	FLAG_UUID_FILE_SAVE,
	FLAG_VOLUME,
	FLAG_WORKING_DIR,
};

const struct flag run_prepared_flags[] = {
	FLAG_DETACH,     FLAG_DNS,          FLAG_DNS_DOMAIN,  FLAG_DNS_OPT,
	FLAG_DNS_SEARCH, FLAG_HOSTNAME,     FLAG_HOSTS_ENTRY, FLAG_INTERACTIVE,
	FLAG_IPC,        FLAG_MDS_REGISTER, FLAG_NET,
};

const struct flag sandbox_flags[] = {
	FLAG_POD_ANNOTATION,
	FLAG_DETACH,
	FLAG_DNS,
	FLAG_DNS_DOMAIN,
	FLAG_DNS_OPT,
	FLAG_DNS_SEARCH,
	{ .name = "exit-policy",
	  .arg = "any-failure|all-exited|never",
	  .set = set_exit_policy,
	  .help = "which ends of apps end the pod (default never)" },
	FLAG_HOSTNAME,
	FLAG_HOSTS_ENTRY,
	FLAG_MOUNT,
	FLAG_POD_NAME,
	FLAG_NET,
	FLAG_NO_OVERLAY,
	FLAG_PORT,
	FLAGS_STAGE1,
	{ .name = "user-annotation",
	  .arg = "NAME=VALUE",
	  .set = pod_flag_tag,
	  .offset = offsetof(struct pod_tags, annotations),
	  .help = "note on the pod; repeatable" },
	{ .name = "user-label",
	  .arg = "NAME=VALUE",
	  .set = pod_flag_tag,
	  .offset = offsetof(struct pod_tags, labels),
	  .help = "label on the pod; repeatable" },
	FLAG_UUID_FILE_SAVE,
	FLAG_VOLUME,
};

const struct flag app_add_flags[] = {
	FLAG_APP_ANNOTATION,
	FLAG_CAP_REMOVE,
	FLAG_CAP_RETAIN,
	FLAG_CAPS_REMOVE,
	FLAG_CAPS_RETAIN,
	FLAG_CPU,
	FLAG_CPU_SHARES,
	FLAG_ENVIRONMENT,
	FLAG_EXEC,
	FLAG_GROUP,
	FLAG_INHERIT_ENV,
	FLAG_APP_MEMORY,
	FLAG_MNT_VOLUME,
	FLAG_MOUNT,
	FLAG_NAME,
	FLAG_NO_NEW_PRIVILEGES,
	FLAG_NO_STORE,
	FLAG_OOM_SCORE_ADJ,
	FLAG_PIDS_LIMIT,
	FLAG_PULL,
	FLAG_READONLY_ROOTFS,
	FLAG_RLIMIT,
	FLAG_SECCOMP,
	FLAG_SET_ENV,
	FLAG_SET_ENV_FILE,
	FLAG_SIGNATURE,
	FLAG_STDERR,
	FLAG_STDIN,
	FLAG_STDOUT,
	FLAG_STORE_ONLY,
	FLAG_SUPPLEMENTARY_GIDS,
	FLAG_USER,
	FLAG_USER_ANNOTATION,
	FLAG_USER_LABEL,
	FLAG_WORKING_DIR,
};

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
static int take_argument(const struct flag_set sets[2], char *const *args, size_t *at,
			 struct run_opts *o, struct err *e)
{
	const char *arg = args[*at];
	if (strcmp(arg, "--") == 0) {
		(*at)++;
		return take_args(o, args, at, e);
	}
	if (*arg && strcmp(arg, "---") != 0 && flag_is_flag(arg)) {
		int r = flag_parse_one(sets, 2, args, at, e);
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

int run_args_parse(const struct command *cmd, const struct flag_set *global, char *const *args,
		   struct run_opts *o, struct err *e)
{
	const struct flag_set sets[2] = {
		{ .flags = cmd->flags, .n = cmd->n_flags, .opts = o, .other = cmd->other },
		*global,
	};
	o->other = cmd->other;
	for (size_t at = 0; args[at];) {
		int r = take_argument(sets, args, &at, o, e);
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
	    o->store_only || o->no_store || o->request.pull_policy != PULL_NEW || o->later)
		return err_set(e, -EINVAL,
			       "conflicting flags set with --pod-manifest (see --help)");
	int r = file_read_path(o->manifest, POD_MANIFEST_SIZE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "--pod-manifest: cannot read \"%s\"", o->manifest);
	r = declare_parse(text, len, &o->request, e);
	return r < 0 ? err_context(e, "pod manifest \"%s\"", o->manifest) : 0;
}

static int check_later(const struct run_opts *o, struct err *e)
{
	return o->later ? err_set(e, -EOPNOTSUPP, "--%s: %s are not there yet", o->later->name,
				  o->later->arg)
			: 0;
}

int run_opts_complete(struct run_opts *o, char *const *host_env, struct err *e)
{
	int r = 0;
	if (o->manifest)
		return read_manifest(o, e);
	if (o->store_only && o->no_store)
		return err_set(e, -EINVAL, "both --store-only and --no-store specified");
	r = check_later(o, e);
	if (r < 0)
		return r;
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

int run_opts_check_run(const struct run_opts *o, struct err *e)
{
	if (o->request.interactive && o->request.detach)
		return err_set(e, -EINVAL, "--interactive and --detach exclude each other");
	return check_later(o, e);
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
