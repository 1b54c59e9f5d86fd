/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags of an app: those that follow its image, in the tables of all commands with that grammar. Their
 * setters take a struct run_opts and fill its present app.
 *
 * A limit such as --memory may be the pod's, too: in front of the first image it is an option of the
 * stage1, if that declares one of the name.
 */
#ifndef HOST_CLI_APP_FLAGS_H
#define HOST_CLI_APP_FLAGS_H

#include "host/cli/flags.h"
#include "host/cli/run_args.h"

/*
 * Setters, with the texts of struct flag. A text of struct app_options, at most once; a variable; a group
 * list; a switch of it; an isolator, which f->offset is the enum of; --seccomp; --stdin
 * and so on; a list of struct pod_tags.
 */
int app_flag_text(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_env(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_groups(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_switch(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_isolator(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_seccomp(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_stream(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e);

/* The same of the pod. */
int pod_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e);

/*
 * The same of the last image's app, or in front of the first image of the pod: its name, a list of
 * tags.
 */
int pod_or_app_flag_name(void *opts, const struct flag *f, const char *value, struct err *e);
int pod_or_app_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e);

/*
 * Adds NAME=value to @env for the flag @f; each name once. 0, or -EINVAL, -E2BIG, -ENOMEM and @e.
 */
int app_flag_add_variable(struct strv *env, const struct flag *f, const char *value, struct err *e);

#define APP_FLAG(name_, arg_, set_, offset_, help_)                                              \
	{                                                                                        \
		.name = (name_), .arg = (arg_), .help = (help_), .per_app = true, .set = (set_), \
		.offset = (offset_)                                                              \
	}
#define APP_TEXT(name_, arg_, member_, help_) \
	APP_FLAG(name_, arg_, app_flag_text, offsetof(struct app_options, member_), help_)
#define APP_ISOLATOR(name_, arg_, isolator_, help_) \
	APP_FLAG(name_, arg_, app_flag_isolator, (size_t)(isolator_), help_)

#define FLAG_CAPS_REMOVE \
	APP_ISOLATOR("caps-remove", "NAMES", ISOLATOR_CAPS_REMOVE, "capabilities to take away")
#define FLAG_CAPS_RETAIN                                           \
	APP_ISOLATOR("caps-retain", "NAMES", ISOLATOR_CAPS_RETAIN, \
		     "capabilities to leave, instead of the usual ones")
#define FLAG_CAP_REMOVE \
	APP_ISOLATOR("cap-remove", "NAMES", ISOLATOR_CAPS_REMOVE, "old name of --caps-remove")
#define FLAG_CAP_RETAIN \
	APP_ISOLATOR("cap-retain", "NAMES", ISOLATOR_CAPS_RETAIN, "old name of --caps-retain")
#define FLAG_CPU APP_ISOLATOR("cpu", "QUANTITY", ISOLATOR_CPU, "processor time, e.g. 1.5 or 1500m")
#define FLAG_CPU_SHARES                                      \
	APP_ISOLATOR("cpu-shares", "N", ISOLATOR_CPU_SHARES, \
		     "weight when processors are short; others have 1024")
#define FLAG_ENVIRONMENT                                       \
	APP_FLAG("environment", "NAME=VALUE", app_flag_env, 0, \
		 "set a variable; beats --set-env and the image; repeatable")
#define FLAG_EXEC \
	APP_TEXT("exec", "PROGRAM", exec, "run this instead of the image's entrypoint and command")
#define FLAG_GROUP APP_TEXT("group", "GROUP", group, "group of the app: name or number")
#define FLAG_APP_MEMORY \
	APP_ISOLATOR("memory", "SIZE", ISOLATOR_MEMORY, "most memory of the app, e.g. 64Mi")
#define FLAG_NAME APP_TEXT("name", "NAME", name, "name of the app (default: from the image's name)")
#define POD_NAME_FLAG(help_)                                                                \
	{                                                                                   \
		.name = "name", .arg = "NAME", .set = pod_or_app_flag_name, .help = (help_) \
	}
#define FLAG_POD_OR_APP_NAME \
	POD_NAME_FLAG(       \
		"name of the pod; behind an image of its app (default: from the image's name)")
#define FLAG_POD_NAME POD_NAME_FLAG("name of the pod, for all that takes a UUID")
#define FLAG_NO_NEW_PRIVILEGES                                                        \
	APP_FLAG("no-new-privileges", NULL, app_flag_isolator, ISOLATOR_NO_NEW_PRIVS, \
		 "no privileges through set-user-ID programs")
#define FLAG_OOM_SCORE_ADJ                                         \
	APP_ISOLATOR("oom-score-adj", "N", ISOLATOR_OOM_SCORE_ADJ, \
		     "-1000 to 1000: who goes first when memory is short")
#define FLAG_PIDS_LIMIT \
	APP_ISOLATOR("pids-limit", "N", ISOLATOR_PIDS, "most processes and threads of the app")
#define FLAG_READONLY_ROOTFS                                   \
	APP_FLAG("readonly-rootfs", NULL, app_flag_switch,     \
		 offsetof(struct app_options, read_only_root), \
		 "nothing can be written into the root")
#define FLAG_RLIMIT                                                  \
	APP_ISOLATOR("rlimit", "NAME=SOFT[:HARD]", ISOLATOR_RLIMITS, \
		     "limit of each process, e.g. nofile=1024; repeatable")
#define FLAG_SECCOMP                                       \
	APP_FLAG("seccomp", "POLICY", app_flag_seccomp, 0, \
		 "system calls: [mode=retain|remove,][errno=NAME,]NAMES")
#define FLAG_SIGNATURE                           \
	APP_TEXT("signature", "FILE", signature, \
		 "the detached signature of an appc image (default: beside it)")
#define FLAG_SUPPLEMENTARY_GIDS \
	APP_FLAG("supplementary-gids", "NUMBERS", app_flag_groups, 0, "further groups of the app")
#define FLAG_USER        APP_TEXT("user", "USER", user, "user of the app: name or number")
#define FLAG_WORKING_DIR APP_TEXT("working-dir", "DIR", working_dir, "working directory of the app")

#define FLAG_USER_ANNOTATION                                    \
	APP_FLAG("user-annotation", "NAME=VALUE", app_flag_tag, \
		 offsetof(struct pod_tags, annotations), "note on the app; repeatable")
#define FLAG_USER_LABEL                                                                       \
	APP_FLAG("user-label", "NAME=VALUE", app_flag_tag, offsetof(struct pod_tags, labels), \
		 "label on the app; repeatable")
#define FLAG_TAG(name_, set_, list_, help_)                                 \
	{                                                                   \
		.name = (name_), .arg = "NAME=VALUE", .set = (set_),        \
		.offset = offsetof(struct pod_tags, list_), .help = (help_) \
	}
#define FLAG_ANNOTATION                                    \
	FLAG_TAG("annotation", pod_or_app_flag_tag, notes, \
		 "appc annotation of the pod, behind an image of its app; repeatable")
#define FLAG_POD_ANNOTATION \
	FLAG_TAG("annotation", pod_flag_tag, notes, "appc annotation of the pod; repeatable")
#define FLAG_APP_ANNOTATION                                                                  \
	APP_FLAG("annotation", "NAME=VALUE", app_flag_tag, offsetof(struct pod_tags, notes), \
		 "appc annotation of the app; repeatable")
#define FLAG_ANY_USER_ANNOTATION                                      \
	FLAG_TAG("user-annotation", pod_or_app_flag_tag, annotations, \
		 "note on the pod, behind an image on its app; repeatable")
#define FLAG_ANY_USER_LABEL                                 \
	FLAG_TAG("user-label", pod_or_app_flag_tag, labels, \
		 "label on the pod, behind an image on its app; repeatable")
#define FLAG_STDIN                                               \
	APP_FLAG("stdin", "null|stream|tty", app_flag_stream, 0, \
		 "where standard input comes from; stream, tty: husk attach")
#define FLAG_STDOUT                                                   \
	APP_FLAG("stdout", "log|null|stream|tty", app_flag_stream, 0, \
		 "where standard output goes to; log: husk logs")
#define FLAG_STDERR                                                   \
	APP_FLAG("stderr", "log|null|stream|tty", app_flag_stream, 0, \
		 "where standard error goes to; log: husk logs")

#endif
