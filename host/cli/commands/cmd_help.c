/* SPDX-License-Identifier: Apache-2.0 */
/* husk help [COMMAND [SUBCOMMAND]] */
#include "host/cli/cli.h"
#include "host/cli/help.h"
#include "host/cli/run_command.h"
#include "lib/wire/stage1.h"

static int help_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct command *about = NULL;
	(void)opts;
	(void)e;
	if (operands->n == 0) {
		help_print_program(stdout);
		return 0;
	}
	for (size_t i = 0; i < operands->n && (!about || about->subs); i++) {
		const struct command *found = command_find(about, operands->v[i]);
		if (!found) {
			command_print_unknown(stderr, about, operands->v[i]);
			return EXIT_HUSK_FAILURE;
		}
		about = found;
	}
	run_command_help(c, about);
	return 0;
}

const struct command cmd_help = {
	.name = "help",
	.usage = "[COMMAND [SUBCOMMAND]]",
	.summary = "tell about husk or one of its commands",
	.description =
		"Without COMMAND lists all commands; with COMMAND tells what it does and which\n"
		"options it has. The same as --help.",
	.run = help_run,
};
