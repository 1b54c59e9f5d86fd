/* SPDX-License-Identifier: Apache-2.0 */
/* husk, stage0: finds the command and runs it. */
#include <signal.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/help.h"
#include "host/cli/run_command.h"
#include "host/config/config.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"

struct program_opts {
	bool version;
};

static const struct flag program_flags[] = {
	FLAG_SWITCH("version", struct program_opts, version, "print the version of husk"),
};

/* No command word: only global flags, --version, or nothing. */
static int run_without_command(struct cli *c, char *const *args)
{
	static const struct command program = { .name = "husk" };
	struct program_opts o = { false };
	const struct flag_set sets[] = {
		{ .flags = program_flags, .n = ARRAY_SIZE(program_flags), .opts = &o },
		cli_global_flags(c),
	};
	cleanup_strv struct strv operands;
	strv_init(&operands, CLI_ARGS_MAX);
	struct err e = ERR_INIT;
	c->cmd = &program;
	int r = flags_parse(sets, ARRAY_SIZE(sets), args, &operands, &e);
	if (r != 0) {
		fprintf(stderr, "Error: %s; see husk help\n", e.text);
		return EXIT_HUSK_FAILURE;
	}
	if (o.version && !c->help) {
		printf("husk %s\n", HUSK_VERSION);
		return 0;
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

/* Finds the command in @group (NULL: among all) that the first word of @argv names, and runs it. */
static int run_words(struct cli *c, const struct command *group, char *const *argv)
{
	static char *const none[] = { NULL };
	size_t word = command_word_index(argv);
	if (!argv[word] || strcmp(argv[word], "--") == 0)
		return group ? run_command(c, argv) : run_without_command(c, argv);
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
	if (c->cmd->subs)
		return run_words(c, c->cmd, rest);
	return run_command_may(c, rest) ? run_command(c, rest) : EXIT_HUSK_FAILURE;
}

int main(int argc, char **argv)
{
	CLEANUP(config_deinit) struct config config;
	struct cli c = { .start_ns = clock_monotonic_ns(),
			 .stage1_lock = -EBADF,
			 .config = &config };
	static char *const none[] = { NULL };
	config_init(&config);
	/* A limit of the file size shows as EFBIG, which is told, instead of a silent death. */
	if (fd_fill_stdio() < 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return EXIT_HUSK_FAILURE;
	int status = run_words(&c, NULL, argc > 0 ? argv + 1 : none);
	fd_close(c.stage1_lock);
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fputs("husk: cannot write to stdout\n", stderr);
		return EXIT_HUSK_FAILURE;
	}
	return status;
}
