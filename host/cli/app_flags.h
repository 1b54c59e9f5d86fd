/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags of an app: those that follow its image, in the tables of all commands with that
 * grammar. Their setters take a struct run_opts and fill its present app.
 *
 * A limit such as --memory may be the pod's, too: in front of the first image it is an option of
 * the stage1, if that declares one of the name.
 */
#ifndef HOST_CLI_APP_FLAGS_H
#define HOST_CLI_APP_FLAGS_H

#include "host/cli/flags/flags.h"
#include "host/cli/run_args.h"

/*
 * Setters, with the texts of struct flag. A text of struct app_options, at most once; a variable; a
 * group list; a switch of it; an isolator, which f->offset is the enum of; --seccomp; --stdin and
 * so on; --mnt-volume; a list of struct pod_tags.
 */
int app_flag_text(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_env(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_groups(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_switch(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_isolator(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_seccomp(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_stream(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_volume(void *opts, const struct flag *f, const char *value, struct err *e);
int app_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e);

/*
 * The same of the last image's app, or in front of the first image of the pod: its name, a list of
 * tags; a mount.
 */
int pod_or_app_flag_name(void *opts, const struct flag *f, const char *value, struct err *e);
int pod_or_app_flag_tag(void *opts, const struct flag *f, const char *value, struct err *e);
int pod_or_app_flag_mount(void *opts, const struct flag *f, const char *value, struct err *e);

/*
 * Adds NAME=value to @env for the flag @f; each name once. 0, or -EINVAL, -E2BIG, -ENOMEM and @e.
 */
int app_flag_add_variable(struct strv *env, const struct flag *f, const char *value, struct err *e);

#endif
