/* SPDX-License-Identifier: Apache-2.0 */
/* From the words of a command line to the command's exit status. */
#ifndef HOST_CLI_RUN_COMMAND_H
#define HOST_CLI_RUN_COMMAND_H

#include "host/cli/cli.h"

/* Runs c->cmd with @args; a group tells of its members. Returns the exit status. */
int run_command(struct cli *c, char *const *args);

/*
 * True if the command c->cmd may act on the data directory that @args, of which nothing else counts
 * here, choose. Said if not: only root makes, runs, enters and removes pods in a directory of root.
 */
bool run_command_may(const struct cli *c, char *const *args);

/* The help about @cmd on stdout, with the options of the stage1 that new pods get. */
void run_command_help(struct cli *c, const struct command *cmd);

#endif
