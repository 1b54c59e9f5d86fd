/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of the commands that make, run and fill pods, and the setters of those of the pod. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "host/cli/app_flags.h"
#include "host/cli/images.h"
#include "host/cli/run_args.h"
#include "host/manifest/ports.h"
#include "host/manifest/volumes.h"

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

/* Flags about the network, whose values the launcher knows. */
static int set_network(void *opts, const struct flag *f, const char *value, struct err *e)
{
	static const struct {
		const char *name;
		int (*take)(struct network_wishes *w, const char *value, struct err *e);
	} flags[] = {
		{ STAGE1_OPT_NET, network_add_nets },
		{ STAGE1_OPT_NETNS, network_set_netns },
		{ STAGE1_OPT_DNS, network_add_dns },
		{ STAGE1_OPT_DNS_SEARCH, network_add_dns_search },
		{ STAGE1_OPT_DNS_OPT, network_add_dns_options },
		{ STAGE1_OPT_DNS_DOMAIN, network_set_dns_domain },
		{ STAGE1_OPT_HOSTS, network_add_hosts },
	};
	struct run_opts *o = opts;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (strcmp(flags[i].name, f->name) == 0)
			return flags[i].take(&o->request.network, value, e);
	return -ENOENT; /* not one of the table's */
}

static int add_port(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	(void)f;
	return ports_add(&o->request.ports, value, e);
}

static int add_direct_port(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	(void)f;
	return ports_add_direct(&o->request.ports, value, e);
}

/* The IPC of the host is shared with no pod, of whatever kind. */
static int set_ipc(void *opts, const struct flag *f, const char *value, struct err *e)
{
	(void)opts;
	if (strcmp(value, "parent") == 0)
		return err_set(e, -EOPNOTSUPP,
			       "--%s: every pod has a private IPC namespace (try to remove --ipc)",
			       f->name);
	if (!*value || strcmp(value, "auto") == 0 || strcmp(value, "private") == 0)
		return 0;
	return err_set(e, -EINVAL, "--%s: \"%.80s\" is not auto, private or parent", f->name,
		       value);
}

static int add_sysctl(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	(void)f;
	return sysctls_add(&o->request.sysctls, value, e);
}

static int add_volume(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	(void)f;
	return volumes_add_text(&o->request.volumes, value, e);
}

static int set_exit_policy(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct run_opts *o = opts;
	if (pod_exit_policy_parse(value, &o->request.exit_policy) == 0)
		return 0;
	return err_set(e, -EINVAL, "--%s: \"%.80s\" is not any-failure, all-exited or never",
		       f->name, value);
}

#define EXIT_POLICIES "any-failure|all-exited|never"

/* A flag whose setter takes a member at an offset; one whose setter does not. */
#define AT(in_, name_, arg_, set_, offset_, help_)                                  \
	{                                                                           \
		.name = (name_), .arg = (arg_), .set = (set_), .offset = (offset_), \
		.help = (help_), .in = (in_),                                       \
	}
#define OWN(in_, name_, arg_, set_, help_) AT(in_, name_, arg_, set_, 0, help_)
#define SWITCH(in_, name_, member_, help_) \
	AT(in_, name_, NULL, flag_set_bool, offsetof(struct run_opts, member_), help_)
#define STRING(in_, name_, member_, help_) \
	AT(in_, name_, "FILE", flag_set_string, offsetof(struct run_opts, member_), help_)
#define STAGE1(name_, arg_, help_)                                                      \
	AT(IN_MAKES, name_, arg_, stage1_choice_set, offsetof(struct run_opts, stage1), \
	   "image of the stage1" help_)
#define TAG(in_, name_, list_, help_)                                                       \
	AT(in_, name_, "NAME=VALUE", pod_or_app_flag_tag, offsetof(struct pod_tags, list_), \
	   help_ "; repeatable")
#define NETWORK(name_, arg_, help_) OWN(IN_STARTS, name_, arg_, set_network, help_)

/* The same of the flags that follow an image. */
#define APP_IN(in_, name_, arg_, set_, offset_, help_)                              \
	{                                                                           \
		.name = (name_), .arg = (arg_), .set = (set_), .offset = (offset_), \
		.help = (help_), .per_app = true, .in = (in_),                      \
	}
#define APP(name_, arg_, set_, offset_, help_) APP_IN(IN_APPS, name_, arg_, set_, offset_, help_)
#define APP_TEXT(name_, arg_, member_, help_) \
	APP(name_, arg_, app_flag_text, offsetof(struct app_options, member_), help_)
#define ISOLATOR(name_, arg_, isolator_, help_) \
	APP(name_, arg_, app_flag_isolator, (size_t)ISOLATOR_##isolator_, help_)
#define STREAM(name_, arg_, help_) APP(name_, arg_, app_flag_stream, 0, help_)
#define ADDED_TAG(name_, list_, help_)                                                      \
	APP_IN(IN_ADD, name_, "NAME=VALUE", app_flag_tag, offsetof(struct pod_tags, list_), \
	       help_ "; repeatable")

const struct flag run_flags[RUN_FLAG_COUNT] = {
	TAG(IN_RUN | IN_PREPARE, "annotation", notes,
	    "appc annotation of the pod, behind an image of its app"),
	TAG(IN_SANDBOX, "annotation", notes, "appc annotation of the pod"),
	ADDED_TAG("annotation", notes, "appc annotation of the app"),
	ISOLATOR("cap-remove", "NAMES", CAPS_REMOVE, "old name of --caps-remove"),
	ISOLATOR("cap-retain", "NAMES", CAPS_RETAIN, "old name of --caps-retain"),
	ISOLATOR("caps-remove", "NAMES", CAPS_REMOVE, "capabilities to take away"),
	ISOLATOR("caps-retain", "NAMES", CAPS_RETAIN,
		 "capabilities to leave, instead of the usual ones"),
	ISOLATOR("cpu", "QUANTITY", CPU, "processor time, e.g. 1.5 or 1500m"),
	ISOLATOR("cpu-shares", "N", CPU_SHARES,
		 "weight when processors are short; others have 1024"),
	SWITCH(IN_STARTS, "detach", request.detach,
	       "return when the pod is up, with its UUID; see husk logs"),
	NETWORK("dns", "IP|host|none", "name servers of the apps; repeatable"),
	NETWORK("dns-domain", "DOMAIN", "local domain of the apps' resolver"),
	NETWORK("dns-opt", "OPTION", "option of the apps' resolver; repeatable"),
	NETWORK("dns-search", "DOMAIN", "domain in which names are looked for; repeatable"),
	APP("environment", "NAME=VALUE", app_flag_env, 0,
	    "set a variable; beats --set-env and the image; repeatable"),
	APP_TEXT("exec", "PROGRAM", exec, "run this instead of the image's entrypoint and command"),
	OWN(IN_RUN | IN_PREPARE, "exit-policy", EXIT_POLICIES, set_exit_policy,
	    "which ends of apps end the pod (default any-failure)"),
	OWN(IN_SANDBOX, "exit-policy", EXIT_POLICIES, set_exit_policy,
	    "which ends of apps end the pod (default never)"),
	APP_TEXT("group", "GROUP", group, "group of the app: name or number"),
	OWN(IN_PODS, "hostname", "NAME", set_hostname, "host name of the pod"),
	NETWORK("hosts-entry", "IP=NAME", "line of /etc/hosts, or host: the host's; repeatable"),
	SWITCH(IN_APPS, "inherit-env", inherit_env,
	       "give apps the variables of husk that they have no value for"),
	APP("init", NULL, app_flag_isolator, ISOLATOR_INIT,
	    "a process 1 that reaps for the app (default: the app is process 1)"),
	SWITCH(IN_RUN | IN_PREPARED, "interactive", request.interactive,
	       "connect the terminal to the app; one app only"),
	OWN(IN_RUN | IN_PREPARED, "ipc", "auto|private|parent", set_ipc,
	    "IPC namespace of the pod; it always has one of its own"),
	SWITCH(IN_RUN | IN_PREPARE | IN_PREPARED, "mds-register", mds_register,
	       "accepted from rkt; there is no metadata service"),
	ISOLATOR("memory", "SIZE", MEMORY, "most memory of the app, e.g. 64Mi"),
	APP_IN(IN_ADD, "mnt-volume", "name=NAME,kind=KIND,target=PATH[,...]", app_flag_volume, 0,
	       "a volume of the app's own, and where it is; repeatable"),
	OWN(IN_RUN | IN_PREPARE | IN_ADD, "mount", "volume=NAME,target=PATH", pod_or_app_flag_mount,
	    "where a volume is, behind an image in its app; repeatable"),
	OWN(IN_RUN | IN_PREPARE, "name", "NAME", pod_or_app_flag_name,
	    "name of the pod; behind an image of its app (default: from the image's name)"),
	OWN(IN_SANDBOX, "name", "NAME", pod_or_app_flag_name,
	    "name of the pod, for all that takes a UUID"),
	APP_IN(IN_ADD, "name", "NAME", app_flag_text, offsetof(struct app_options, name),
	       "name of the app (default: from the image's name)"),
	{ .name = "net",
	  .arg = "NAME[:ARGS]",
	  .bare = "default",
	  .set = set_network,
	  .help = "networks: default, none, host, all, or configured ones; repeatable",
	  .in = IN_PODS },
	NETWORK("netns", "PATH", "network namespace to use instead, as it is"),
	APP("no-new-privileges", NULL, app_flag_isolator, ISOLATOR_NO_NEW_PRIVS,
	    "no privileges through set-user-ID programs"),
	SWITCH(IN_MAKES, "no-overlay", no_overlay, "accepted from rkt; images are never copied"),
	SWITCH(IN_APPS, "no-store", no_store, "the same as --pull-policy=update"),
	ISOLATOR("oom-score-adj", "N", OOM_SCORE_ADJ,
		 "-1000 to 1000: who goes first when memory is short"),
	ISOLATOR("pids-limit", "N", PIDS, "most processes and threads of the app"),
	STRING(IN_RUN | IN_PREPARE, "pod-manifest", manifest,
	       "an appc pod manifest that says everything about the apps"),
	OWN(IN_RUN | IN_PREPARE, "port", "NAME:[HOSTIP:]PORT", add_port,
	    "port of the host for the app port NAME, or N/tcp, N/udp; repeatable"),
	OWN(IN_SANDBOX, "port", "N/PROTOCOL:[HOSTIP:]PORT", add_direct_port,
	    "port of the host that leads to the pod's port N; repeatable"),
	SWITCH(IN_PODS, "private-users", request.private_users,
	       "root of the pod is nobody on the host; the same as --userns=private"),
	AT(IN_APPS, "pull-policy", PULL_POLICIES, cli_set_pull_policy,
	   offsetof(struct run_opts, request.pull_policy), PULL_POLICY_HELP("new")),
	SWITCH(IN_PREPARE, "quiet", quiet, "print nothing but the UUID"),
	APP("readonly-rootfs", NULL, app_flag_switch, offsetof(struct app_options, read_only_root),
	    "nothing can be written into the root"),
	ISOLATOR("rlimit", "NAME=SOFT[:HARD]", RLIMITS,
		 "limit of each process, e.g. nofile=1024; repeatable"),
	APP("seccomp", "POLICY", app_flag_seccomp, 0,
	    "system calls: [mode=retain|remove,][errno=NAME,]NAMES"),
	OWN(IN_APPS, "set-env", "NAME=VALUE", add_pod_env,
	    "set a variable for all apps; beats the image; repeatable"),
	AT(IN_APPS, "set-env-file", "FILE", flag_add_string, offsetof(struct run_opts, env_files),
	   "set the variables in the file for all apps; beats the image"),
	APP_TEXT("signature", "FILE", signature,
		 "the detached signature of an appc image (default: beside it)"),
	STAGE1("stage1-from-dir", "FILE", ": a file of the directory for these"),
	STAGE1("stage1-hash", "ID", ": one of the store"),
	STAGE1("stage1-name", "NAME[:VERSION]", ": of the store, or found by discovery"),
	STAGE1("stage1-path", "PATH", ", or its directory"),
	STAGE1("stage1-url", "URL", ": file, http, https or docker"),
	STREAM("stderr", "log|null|stream|tty", "where standard error goes to; log: husk logs"),
	STREAM("stdin", "null|stream|tty",
	       "where standard input comes from; stream, tty: husk attach"),
	STREAM("stdout", "log|null|stream|tty", "where standard output goes to; log: husk logs"),
	ISOLATOR("stop-signal", "SIGNAL", STOP_SIGNAL,
		 "what asks the app to end (default SIGTERM)"),
	SWITCH(IN_APPS, "store-only", store_only, "the same as --pull-policy=never"),
	APP("supplementary-gids", "NUMBERS", app_flag_groups, 0, "further groups of the app"),
	OWN(IN_MAKES, "sysctl", "NAME=VALUE", add_sysctl,
	    "kernel parameter of the pod, as sysctl(8) has them; repeatable"),
	APP_TEXT("user", "USER", user, "user of the app: name or number"),
	TAG(IN_RUN | IN_PREPARE, "user-annotation", annotations,
	    "note on the pod, behind an image on its app"),
	TAG(IN_SANDBOX, "user-annotation", annotations, "note on the pod"),
	ADDED_TAG("user-annotation", annotations, "note on the app"),
	TAG(IN_RUN | IN_PREPARE, "user-label", labels,
	    "label on the pod, behind an image on its app"),
	TAG(IN_SANDBOX, "user-label", labels, "label on the pod"),
	ADDED_TAG("user-label", labels, "label on the app"),
	STRING(IN_MAKES, "uuid-file-save", request.uuid_file, "write the pod's UUID there"),
	OWN(IN_MAKES, "volume", "NAME,kind=KIND[,...]", add_volume,
	    "a directory, file or disk for apps of the pod; repeatable"),
	APP_TEXT("working-dir", "DIR", working_dir, "working directory of the app"),
};
