/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said to the entrypoints of a stage1, in the words of the interface that it speaks: ours
 * (docs/protocol-stage1.md), or that of rkt's images in any of its versions. Pure.
 */
#ifndef HOST_LAUNCH_ABI_H
#define HOST_LAUNCH_ABI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/launch/network.h"
#include "host/launch/stage1.h"
#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/isolators.h"

/* Most arguments that abi_run_args() adds beside the options of the user. */
#define ABI_RUN_ARGS_MAX ((size_t)15 + NETWORK_ARGS_MAX)

/* All of app/..., gc, stop, stats; of update, which has the most: four limits, too. */
#define ABI_ARGS_MAX ((size_t)6)

/* All of attach: the action, the app, three options, and each end. */
#define ABI_ATTACH_ARGS_MAX ((size_t)5 + ABI_END_COUNT_)

/* Most options that a stage1 can lack: --hostname, --dns-conf-mode, --insecure-options. */
#define ABI_LACKING_MAX ((size_t)3)

/* A pod to run. All is borrowed. */
struct abi_run {
	const char *uuid;
	const char *hostname; /* NULL: stage1 chooses */
	const char *cache_dir;
	const struct network_wishes *network; /* NULL: nothing was said */
	bool has_ports;                       /* of the host that lead into the pod */
	bool has_blocks;                      /* volumes of kind=block */
	bool has_sysctls;                     /* the pod has kernel parameters to be set */
	const struct strv *options;           /* that the stage1 declares: "--name=value" */
	bool debug, interactive, detach, is_mutable;
	bool private_users; /* ids of its own: what every pod in a machine of its own has */
	bool all_capabilities, open_paths, no_seccomp;
	int64_t start_ns;
};

/* An app to enter. All is borrowed. */
struct abi_enter {
	const char *app;
	pid_t pid; /* of the supervisor, 0: unknown */
	bool debug;
	const char *user, *workdir; /* NULL: as the app */
	const struct strv *env;
	const char *tty;           /* "true", "false", NULL: as it comes */
	int64_t timeout_ms;        /* 0: none */
	const struct strv *groups; /* numbers, in place of the app's; NULL: those of the app */
	bool clear_env;            /* of the app's variables it has none */
	int control_fd;            /* who controls it hears of it here; 0: nobody does */
	char *const *command;
};

/* What of an app can be attached to. */
enum abi_end {
	ABI_END_STDIN,
	ABI_END_STDOUT,
	ABI_END_STDERR,
	ABI_END_TTY_IN,
	ABI_END_TTY_OUT,
	ABI_END_COUNT_,
};

/* An app to attach to. All is borrowed. */
struct abi_attach {
	const char *app;
	bool list;               /* what there is to attach to, instead of attaching */
	unsigned int ends;       /* bit set of 1U << ABI_END_...; 0: all that the app has */
	bool keep_stdin;         /* the end of our input is not the app's */
	const char *detach_keys; /* NULL: stage1's default */
	int control_fd;          /* the size of a terminal comes from here; 0: nobody says it */
};

/* What the statistics are to be about. */
struct abi_stats {
	const char *uuid, *app; /* NULL: all apps */
	bool host;              /* no app: what the host counts */
	bool debug;
};

/* What an entrypoint app/... is asked about. */
struct abi_app {
	const char *uuid, *name;
	bool adds;       /* it is app/add */
	int64_t grace_s; /* -1: does not matter */
	int signal;      /* of app/signal; else 0 */
	bool all;        /* of app/signal: for all processes of the app */
};

/*
 * Whether @s can do at all what @q asks for, or would do something else: -EOPNOTSUPP and @e. What
 * it can do without is not looked at.
 */
int abi_check_run(const struct stage1 *s, const struct abi_run *q, struct err *e);

/*
 * The options of @q that @s does not know and goes without, each name with its dashes and once, in
 * @names, of ABI_LACKING_MAX. 0, or errors as strv_add().
 */
int abi_lacking(const struct stage1 *s, const struct abi_run *q, struct strv *names);

/*
 * The arguments of an entrypoint, behind its own path. 0, or errors as strv_add(). What the
 * interface has no words for is left out.
 */
int abi_run_args(const struct stage1 *s, const struct abi_run *q, struct strv *args);
int abi_stop_args(const struct stage1 *s, const char *uuid, bool debug, bool force,
		  struct strv *args);
int abi_gc_args(const char *uuid, bool stays, bool debug, struct strv *args);
int abi_app_args(const struct stage1 *s, const struct abi_app *q, struct strv *args);
int abi_attach_args(const struct abi_attach *q, struct strv *args);
int abi_stats_args(const struct abi_stats *q, struct strv *args);

/* Of those isolators of @l, all limits by numbers, that @changed names (bit N: enum isolator N). */
int abi_update_args(const char *uuid, unsigned changed, const struct isolators *l,
		    struct strv *args);

/* The same; -EOPNOTSUPP and @e if the command would not run as it was asked for. */
int abi_enter_args(const struct stage1 *s, const struct abi_enter *q, struct strv *args,
		   struct err *e);

#endif
