/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of flags.
 *
 * Grammar: --name=value or --name value; switches --name or --name=true|false; a few switches
 * have a letter, -h is --help.
 */
#ifndef HOST_CLI_FLAGS_FLAGS_H
#define HOST_CLI_FLAGS_FLAGS_H

#include "host/cli/flags/flag.h"

/* FLAG_BAD: a flag is unknown or has a bad value; the struct err says which. */
enum {
	FLAG_BAD = 1,
};

/*
 * Says that no table has the flag @arg (with its dashes), and what may have been meant. FLAG_BAD.
 */
int flag_unknown(const struct flag_set *sets, size_t n_sets, const char *arg, struct err *e);

/* True if @arg has the form of a flag: it begins with a dash and is neither "-" nor "--". */
bool flag_is_flag(const char *arg);

/*
 * Parses the flag at argv[*at], for which flag_is_flag() holds, and its value; moves *at behind
 * both. 0, FLAG_BAD and @e, or -errno and @e from a setter that failed for another reason than the
 * value.
 */
int flag_parse_one(const struct flag_set *sets, size_t n_sets, char *const *argv, size_t *at,
		   struct err *e);

/*
 * Parses the flags in @argv (NULL-terminated) and collects the other arguments in @operands; all
 * arguments behind a "--" are operands. Errors as flag_parse_one(), and -errno for @operands.
 */
int flags_parse(const struct flag_set *sets, size_t n_sets, char *const *argv,
		struct strv *operands, struct err *e);

#endif
