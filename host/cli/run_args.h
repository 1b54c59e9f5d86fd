/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `husk run` and `husk prepare`:
 *
 *   [POD FLAGS] IMAGE [APP FLAGS] [-- ARGS... [---]] IMAGE ...
 *
 * App flags belong to the image in front of them; pod flags may stand anywhere outside ARGS.
 */
#ifndef HOST_CLI_RUN_ARGS_H
#define HOST_CLI_RUN_ARGS_H

#include <stdbool.h>

#include "host/cli/cli.h"
#include "host/cli/flags.h"
#include "host/cli/progress.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/run.h"

#define RUN_NETS_MAX      ((size_t)16) /* networks of one pod */
#define RUN_ENV_FILES_MAX ((size_t)16) /* --set-env-file; people have one or two */

/* Parsed options; an app flag finds its app in @app. */
struct run_opts {
	struct run_request request;
	struct app_options *app; /* the last image's app, NULL before the first; borrowed */
	bool app_has_args;       /* "--" was seen behind the last image */
	struct strv nets;
	struct strv env_files;
	struct stage1_choice stage1;
	flag_other_fn other;      /* of the command */
	const char *manifest;     /* --pod-manifest, NULL if absent */
	const struct flag *later; /* the first that asks for what is not there yet, NULL if none */
	bool inherit_env;
	bool store_only, no_store;
	bool mds_register;
	bool no_overlay;          /* means nothing: there is no other way */
	bool quiet;               /* prepare only */
	struct progress progress; /* of fetching the images */
};

/* Tables of struct run_opts: of `run`, and of the two halves of it. */
#define RUN_FLAG_COUNT          56
#define PREPARE_FLAG_COUNT      49
#define RUN_PREPARED_FLAG_COUNT 11
#define SANDBOX_FLAG_COUNT      23
#define APP_ADD_FLAG_COUNT      35
extern const struct flag sandbox_flags[SANDBOX_FLAG_COUNT]; /* of app sandbox */
extern const struct flag app_add_flags[APP_ADD_FLAG_COUNT];
extern const struct flag run_flags[RUN_FLAG_COUNT];
extern const struct flag prepare_flags[PREPARE_FLAG_COUNT];
extern const struct flag run_prepared_flags[RUN_PREPARED_FLAG_COUNT];

/* No options at all. */
void run_opts_init(struct run_opts *o);

/* Frees what @o owns; it is as after run_opts_init(). */
void run_opts_deinit(struct run_opts *o);

/*
 * Parses @args (NULL-terminated, must outlive @o) with the flags of @cmd, which are of struct
 * run_opts, and those in @global. 0;
 * FLAG_BAD and @e for a wrong flag in front of the first image; -errno and @e otherwise, the message
 * being complete. Images are not required here: see run_opts_check().
 */
int run_args_parse(const struct command *cmd, const struct flag_set *global, char *const *args,
		   struct run_opts *o, struct err *e);

/*
 * Takes over what --insecure-options says about running; says so where it and other flags say
 * nothing.
 */
void run_opts_take_global(const struct cli *c, struct run_opts *o);

/*
 * Reads what flags refer to: the pod manifest, and the host's environment @host_env (NULL-terminated).
 * 0, or -errno and @e.
 */
int run_opts_complete(struct run_opts *o, char *const *host_env, struct err *e);

/* What must hold between options: at least one image, one with --interactive. 0 or -EINVAL, @e. */
int run_opts_check(const struct run_opts *o, struct err *e);

/* The part of it that is about the run only, not about apps. 0 or -EINVAL, @e. */
int run_opts_check_run(const struct run_opts *o, struct err *e);

#endif
