/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that husk itself does not know: the stage1 declares them, husk tells about them, passes
 * them on, and says which are unknown as soon as it is known which stage1 it is.
 */
#ifndef HOST_CLI_STAGE1_OPTIONS_H
#define HOST_CLI_STAGE1_OPTIONS_H

#include "host/cli/cli.h"
#include "host/cli/run_args.h"
#include "host/launch/stage1.h"

/* A flag_other_fn of struct run_opts: keeps the option for stage1_options_check(). */
int stage1_options_take(void *opts, const char *name, size_t len, const char *value, struct err *e);

/* Puts what is configured for @s in front of @options. 0, or -errno and @e. */
int stage1_options_add_configured(const struct cli *c, const struct stage1 *s, struct strv *options,
				  struct err *e);

/*
 * Puts what is configured for @s in front of the user's options, and has @s look at all that the
 * user gave, before anything is fetched or made. 0; FLAG_BAD and @e if @s declares no such option;
 * -errno and @e.
 */
int stage1_options_check(struct cli *c, struct run_opts *o, const struct stage1 *s, struct err *e);

/*
 * For the help about a command: what the stage1 of new pods, read into @space, declares, as @flags.
 * An empty set if there is no such stage1.
 */
struct flag_set stage1_options_flags(struct cli *c, struct stage1 *space,
				     struct flag flags[STAGE1_OPTIONS_MAX]);

#endif
