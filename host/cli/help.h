/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts made from the tables. */
#ifndef HOST_CLI_HELP_H
#define HOST_CLI_HELP_H

#include <stdio.h>

struct command;
struct flag_set;

/* The help of the program: NAME, USAGE, VERSION, COMMANDS, DESCRIPTION, GLOBAL OPTIONS. */
void help_print_program(FILE *f);

/*
 * The help of one command: NAME, USAGE, DESCRIPTION, OPTIONS, OPTIONS OF THE STAGE1 if there are
 * some, GLOBAL OPTIONS.
 */
void help_print_command(FILE *f, const struct command *cmd, const struct flag_set *of_stage1);

#endif
