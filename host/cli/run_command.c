/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/run_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cli/data_dir.h"
#include "host/cli/help.h"
#include "host/cli/pods.h"
#include "host/cli/stage1_options.h"
#include "host/launch/stage1.h"
#include "lib/wire/stage1.h"

void run_command_help(struct cli *c, const struct command *cmd)
{
	struct flag flags[STAGE1_OPTIONS_MAX];
	cleanup_free struct stage1 *stage1 = cmd->other ? calloc(1, sizeof(*stage1)) : NULL;
	struct flag_set of_stage1 = { 0 };
	if (stage1)
		of_stage1 = stage1_options_flags(c, stage1, flags);
	help_print_command(stdout, cmd, &of_stage1);
}

/*
 * True: go on. False: the command is done (help was asked for, or the flags are wrong and that was
 * said) with exit status *ret_exit.
 */
static bool parse_command(struct cli *c, void *opts, char *const *args, struct strv *operands,
			  int *ret_exit)
{
	const struct flag_set sets[] = {
		command_flags(c->cmd, opts),
		cli_global_flags(c),
	};
	struct err e = ERR_INIT;
	cli_parse_fn parse = c->cmd->parse ? c->cmd->parse : flags_parse;
	int r = parse(sets, ARRAY_SIZE(sets), args, operands, &e);
	*ret_exit = 0;
	if (c->help)
		run_command_help(c, c->cmd);
	else if (r == FLAG_BAD)
		*ret_exit = cli_usage_error(c, &e);
	else if (r < 0)
		*ret_exit = cli_fail(c, &e);
	return r == 0 && !c->help;
}

/* What --uuid-file says, if the command has it. */
static const char *uuid_file(const struct command *cmd, void *opts)
{
	const struct flag_set set = command_flags(cmd, opts);
	const struct flag *f = flag_find(&set, 1, "uuid-file", strlen("uuid-file"), NULL);
	return f ? *(const char **)(void *)((char *)opts + f->offset) : NULL;
}

/* What comes of the arguments @args, with @opts and @operands to put them into. */
static int run(struct cli *c, void *opts, char *const *args, struct strv *operands)
{
	const struct command *cmd = c->cmd;
	struct err e = ERR_INIT;
	int status, r = 0;
	if (!parse_command(c, opts, args, operands, &status))
		return status;
	if (cmd->subs) { /* and none was named */
		run_command_help(c, cmd);
		return 0;
	}
	if (cmd->uuids > 0)
		r = cli_take_uuids(c, uuid_file(cmd, opts), cmd->uuids, operands, &e);
	if (r == 0)
		r = cmd->run(c, opts, operands, &e);
	if (r == CLI_MISUSE)
		return cli_usage_error(c, &e);
	return r < 0 ? cli_fail(c, &e) : r;
}

int run_command(struct cli *c, char *const *args)
{
	const struct command *cmd = c->cmd;
	cleanup_free void *opts = calloc(1, MAX(cmd->opts_size, (size_t)1));
	cleanup_strv struct strv operands;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!opts) {
		cli_message(c, "out of memory");
		return EXIT_HUSK_FAILURE;
	}
	if (cmd->defaults)
		memcpy(opts, cmd->defaults, cmd->opts_size);
	if (cmd->init)
		cmd->init(opts);
	int status = run(c, opts, args, &operands);
	if (cmd->deinit)
		cmd->deinit(opts);
	return status == EXIT_HUSK_FAILURE && cmd->failure ? cmd->failure : status;
}

/* Takes the global flags out of @args, up to "--"; what is wrong with them is said later. */
static void peek_global_flags(struct cli *c, char *const *args)
{
	const struct flag_set global = cli_global_flags(c);
	struct err ignored = ERR_INIT;
	for (size_t at = 0; args[at] && strcmp(args[at], "--") != 0;) {
		size_t before = at;
		if (flag_is_flag(args[at]))
			flag_parse_one(&global, 1, args, &at, &ignored);
		if (at == before)
			at++;
	}
}

bool run_command_may(const struct cli *c, char *const *args)
{
	char dir[PATH_MAX];
	struct cli peek = *c;
	struct err e = ERR_INIT;
	struct stat st;
	if (!c->cmd->needs_owner || geteuid() == 0)
		return true;
	peek_global_flags(&peek, args);
	if (peek.help || cli_data_dir(&peek, dir, &e) < 0 || stat(dir, &st) < 0 || st.st_uid != 0)
		return true;
	err_set(&e, -EPERM,
		"cannot run as unprivileged user: data directory \"%s\" is root's (--dir=DIR names "
		"one of your own)",
		dir);
	cli_fail(c, &e);
	return false;
}
