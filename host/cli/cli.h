/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all commands of husk share: the table of commands, global flags, messages.
 *
 * One file per command (cmd_NAME.c); commands.c has the table. Results go to stdout, messages to
 * stderr with the command's name in front.
 */
#ifndef HOST_CLI_CLI_H
#define HOST_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "host/cli/flags/flags.h"
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

#define CLI_USAGE_EXIT 2 /* no command at all */

/* No errno: the arguments do not go together; said with a hint at the help of the command. */
#define CLI_MISUSE (-4096)

/*
 * Most arguments of one command line: more than Linux gives a program with the usual limit of its
 * stack, as an app may be given as many.
 */
#define CLI_ARGS_MAX ((size_t)262144)

struct cli;
struct config;

/*
 * Parses @args with @sets, those of a command and the global flags. Returns as flags_parse(), which
 * is the usual one; others have grammars of their own.
 */
typedef int (*cli_parse_fn)(const struct flag_set *sets, size_t n_sets, char *const *args,
			    struct strv *operands, struct err *e);

struct command {
	const char
		*name; /* one word; of a subcommand the last one, which its messages begin with */
	const char *path; /* all words of a subcommand; NULL: the name is all */
	/*
	 * Of a group of commands, which has no flags and no function: its members, alphabetically.
	 */
	const struct command *const *subs;
	size_t n_subs;
	const char *usage;   /* what follows the name, e.g. "[--format=FORMAT] UUID" */
	const char *summary; /* one line for the list of commands, no full stop */
	const char *description;
	const struct flag *flags;
	size_t n_flags;
	unsigned only;       /* those of them that the command has, as in struct flag_set */
	bool needs_owner;    /* of the data directory: nobody else than root for root's */
	flag_other_fn other; /* takes flags that are the stage1's; NULL: there are none */
	/* The structure that the flags fill, what is in it before (NULL: zeros), its end. */
	size_t opts_size;
	const void *defaults;
	void (*init)(void *opts), (*deinit)(void *opts); /* may be NULL */
	cli_parse_fn parse;                              /* NULL: flags_parse() */
	size_t uuids; /* UUID... | --uuid-file=FILE: at most so many; 0: of another form */
	/*
	 * Does it. @operands: all arguments but the command word, flags and their values. Returns
	 * the exit status, or -errno or CLI_MISUSE and @e, which is then said.
	 */
	int (*run)(struct cli *c, void *opts, struct strv *operands, struct err *e);
	int failure; /* the exit status if anything fails; 0: EXIT_HUSK_FAILURE */
};

/* Of a struct command: its table of flags, and the structure that they fill. */
#define COMMAND_FLAGS(table, type) \
	.flags = (table), .n_flags = ARRAY_SIZE(table), .opts_size = sizeof(type)

struct cli {
	int64_t start_ns; /* CLOCK_MONOTONIC at the start of the process */
	const struct command *cmd;
	bool debug;
	bool help;
	const char *dir;    /* --dir, NULL if absent */
	const char *stage1; /* --stage1, NULL if absent */
	int stage1_lock;    /* of an extracted image, see stage1_image.h; -EBADF */
	unsigned insecure;  /* --insecure-options, bits of insecure.h */
	/* --system-config and so on, NULL if absent, "" for none. */
	const char *system_config, *local_config, *user_config;
	struct config *config; /* what was read of the configuration, see settings.h */
};

/* All commands in alphabetic order. */
extern const struct command *const commands[];
extern const size_t n_commands;

/* The global flags, for @c, and those of @cmd, for its structure of options. */
struct flag_set cli_global_flags(struct cli *c);
struct flag_set command_flags(const struct command *cmd, void *opts);

extern const struct command cmd_app, cmd_attach, cmd_cat_manifest, cmd_config, cmd_doctor,
	cmd_enter, cmd_events, cmd_export, cmd_fetch, cmd_gc, cmd_help, cmd_image, cmd_list,
	cmd_logs, cmd_prepare, cmd_rm, cmd_run, cmd_run_prepared, cmd_stats, cmd_status, cmd_stop,
	cmd_top, cmd_trust, cmd_update, cmd_version;

/* Members of the group cmd_image. */
extern const struct command cmd_image_cat_manifest, cmd_image_export, cmd_image_extract,
	cmd_image_fetch, cmd_image_gc, cmd_image_list, cmd_image_render, cmd_image_rm,
	cmd_image_verify;

/* Members of the group cmd_app. */
extern const struct command cmd_app_add, cmd_app_exec, cmd_app_list, cmd_app_rm, cmd_app_sandbox,
	cmd_app_start, cmd_app_stats, cmd_app_status, cmd_app_stop;

/*
 * The command that @word names completely or by a unique prefix, else NULL; in a group, or with
 * NULL among all.
 */
const struct command *command_find(const struct command *group, const char *word);

/* All its words, as they are typed behind "husk". */
const char *command_path(const struct command *cmd);

/*
 * The index in @argv (NULL-terminated, starting at 0) of the command word: the first argument that
 * is neither a flag nor a flag's value. The index of the NULL if there is none.
 */
size_t command_word_index(char *const *argv);

/*
 * Prints one line, "Error: unknown command", for @word, and what may have been meant; @group as
 * above.
 */
void command_print_unknown(FILE *f, const struct command *group, const char *word);

/* Says a wrong flag: "Error: TEXT; see husk help COMMAND" on stderr. Returns 254. */
int cli_usage_error(const struct cli *c, const struct err *e);

/* Prints "COMMAND: TEXT" on stderr. Returns 254. */
int cli_fail(const struct cli *c, const struct err *e);

/* Prints "COMMAND: " and the formatted text on stderr; control characters are replaced. */
void cli_message(const struct cli *c, const char *fmt, ...) PRINTF_FORMAT(2, 3);

/*
 * Writes @text, which may be empty, to stdout. That this fails is seen at the end of the program.
 */
void cli_print(const struct buf *text);

#endif
