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
#include "host/cli/flags/flags.h"
#include "host/cli/format/progress.h"
#include "host/cli/stage1_choice.h"
#include "host/pod/run.h"

#define RUN_ENV_FILES_MAX ((size_t)16) /* --set-env-file; people have one or two */

/* Parsed options; an app flag finds its app in @app. */
struct run_opts {
	struct run_request request;
	struct app_options *app; /* the last image's app, NULL before the first; borrowed */
	bool app_has_args;       /* "--" was seen behind the last image */
	struct strv env_files;
	struct stage1_choice stage1;
	flag_other_fn other;  /* of the command */
	const char *manifest; /* --pod-manifest, NULL if absent */
	bool inherit_env;
	bool store_only, no_store;
	bool mds_register;
	bool no_overlay;          /* means nothing: there is no other way */
	bool quiet;               /* prepare only */
	struct progress progress; /* of fetching the images */
};

/* Which of the commands have a flag. */
enum {
	IN_RUN = 1 << 0,
	IN_PREPARE = 1 << 1,
	IN_PREPARED = 1 << 2,                          /* run-prepared */
	IN_SANDBOX = 1 << 3,                           /* app sandbox */
	IN_ADD = 1 << 4,                               /* app add */
	IN_APPS = IN_RUN | IN_PREPARE | IN_ADD,        /* those that take images */
	IN_MAKES = IN_RUN | IN_PREPARE | IN_SANDBOX,   /* those that make a pod */
	IN_STARTS = IN_RUN | IN_PREPARED | IN_SANDBOX, /* those that start one */
	IN_PODS = IN_MAKES | IN_STARTS,
};

/* The flags of struct run_opts of all these commands, in alphabetic order. */
#define RUN_FLAG_COUNT 73
extern const struct flag run_flags[RUN_FLAG_COUNT];

/* No options at all; @opts is a struct run_opts, here and below. */
void run_opts_init(void *opts);

/* Frees what @opts owns; it is as after run_opts_init(). */
void run_opts_deinit(void *opts);

/*
 * The cli_parse_fn of these commands; the options of the first set are a struct run_opts, which
 * @args must outlive. There are no operands. 0; FLAG_BAD and @e for a wrong flag in front of the
 * first image; -errno and @e otherwise, the message being complete. Images are not required here:
 * see run_opts_check().
 */
int run_args_parse(const struct flag_set *sets, size_t n_sets, char *const *args,
		   struct strv *operands, struct err *e);

/*
 * Takes over what --insecure-options says about running; says so where it and other flags say
 * nothing.
 */
void run_opts_take_global(const struct cli *c, struct run_opts *o);

/*
 * Reads what flags refer to: the pod manifest, and the host's environment @host_env
 * (NULL-terminated). 0, or -errno and @e.
 */
int run_opts_complete(struct run_opts *o, char *const *host_env, struct err *e);

/* What must hold between options: at least one image, one with --interactive. 0 or -EINVAL, @e. */
int run_opts_check(const struct run_opts *o, struct err *e);

/* The part of it that is about the run only, not about apps. 0 or -EINVAL, @e. */
int run_opts_check_run(const struct run_opts *o, struct err *e);

/* Of a struct command that has the flags with the bit @in_. */
#define RUN_COMMAND(in_)                                                                 \
	COMMAND_FLAGS(run_flags, struct run_opts), .only = (in_), .init = run_opts_init, \
						   .deinit = run_opts_deinit

#endif
