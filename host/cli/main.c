/* SPDX-License-Identifier: Apache-2.0 */
/* husk, stage0: finds the command and runs it. */
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/help.h"
#include "host/config/config.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"

/* No command word: only global flags, or nothing. */
static int run_without_command(struct cli *c, char *const *args)
{
	static const struct command program = { .name = "husk" };
	const struct flag_set set = { .flags = global_flags, .n = n_global_flags, .opts = c };
	cleanup_strv struct strv operands;
	strv_init(&operands, CLI_ARGS_MAX);
	struct err e = ERR_INIT;
	c->cmd = &program;
	int r = flags_parse(&set, 1, args, &operands, &e);
	if (r != 0) {
		fprintf(stderr, "Error: %s\n", e.text);
		help_print_program(stdout);
		return EXIT_HUSK_FAILURE;
	}
	if (!c->help)
		fputs("husk: missing command\n", stderr);
	help_print_program(stdout);
	return c->help ? 0 : CLI_USAGE_EXIT;
}

/* All arguments but the program's name, and but the command word at @skip. */
static int collect_args(char *const *argv, size_t skip, struct strv *args)
{
	for (size_t i = 0; argv[i]; i++) {
		int r = i == skip ? 0 : strv_add(args, argv[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A group without a member's name: tells what there is. */
static int run_group(struct cli *c, char *const *args)
{
	cleanup_strv struct strv operands;
	int status = 0;
	strv_init(&operands, CLI_ARGS_MAX);
	if (cli_parse(c, NULL, args, &operands, &status))
		help_print_command(stdout, c->cmd);
	return status;
}

/* Finds the command in @group (NULL: among all) that the first word of @argv names, and runs it. */
static int run_command(struct cli *c, const struct command *group, char *const *argv)
{
	static char *const none[] = { NULL };
	size_t word = command_word_index(argv);
	if (!argv[word] || strcmp(argv[word], "--") == 0)
		return group ? run_group(c, argv) : run_without_command(c, argv);
	c->cmd = command_find(group, argv[word]);
	if (!c->cmd) {
		command_print_unknown(stderr, group, argv[word]);
		return EXIT_HUSK_FAILURE;
	}
	cleanup_strv struct strv args;
	strv_init(&args, CLI_ARGS_MAX);
	int r = collect_args(argv, word, &args);
	if (r < 0) {
		fprintf(stderr, "%s: more than %zu arguments\n", c->cmd->name, CLI_ARGS_MAX);
		return EXIT_HUSK_FAILURE;
	}
	char *const *rest = args.v ? args.v : none;
	return c->cmd->subs ? run_command(c, c->cmd, rest) : c->cmd->run(c, rest);
}

int main(int argc, char **argv)
{
	CLEANUP(config_deinit) struct config config;
	struct cli c = { .start_ns = clock_monotonic_ns(),
			 .start_tsc = tsc_begin(),
			 .config = &config };
	static char *const none[] = { NULL };
	config_init(&config);
	if (fd_fill_stdio() < 0)
		return EXIT_HUSK_FAILURE;
	int status = run_command(&c, NULL, argc > 0 ? argv + 1 : none);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fputs("husk: cannot write to stdout\n", stderr);
		return EXIT_HUSK_FAILURE;
	}
	return status;
}
