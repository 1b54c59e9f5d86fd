/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts made from the tables. */
#ifndef HOST_CLI_HELP_H
#define HOST_CLI_HELP_H

#include <stdio.h>

struct cli;
struct command;
struct flag_set;

/* The help of the program: NAME, USAGE, VERSION, COMMANDS, DESCRIPTION, GLOBAL OPTIONS. */
void help_print_program(FILE *f);

/* One section of it: the flags of @set. Nothing if there are none. */
void help_print_flags(FILE *f, const char *title, const struct flag_set *set);

/*
 * The help of one command on stdout: NAME, USAGE, DESCRIPTION, OPTIONS, OPTIONS OF THE STAGE1 if it
 * takes some, GLOBAL OPTIONS.
 */
void help_print_command(struct cli *c, const struct command *cmd);

#endif
