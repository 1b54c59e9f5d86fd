/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/help.h"

#include <string.h>

#include "host/cli/cli.h"

#define PROGRAM_SUMMARY "runs pods of apps in small virtual machines"
#define COLUMN_MIN      16 /* of names; longer ones push the column out */
#define LABEL_MAX       64

/* "--name=ARG", "--name[=ARG]" or "--name[=false]" in @out of LABEL_MAX bytes. */
static void flag_label(const struct flag *f, char out[LABEL_MAX])
{
	if (!f->arg)
		snprintf(out, LABEL_MAX, "--%s[=false]", f->name);
	else if (f->bare)
		snprintf(out, LABEL_MAX, "--%s[=%s]", f->name, f->arg);
	else
		snprintf(out, LABEL_MAX, "--%s=%s", f->name, f->arg);
}

static void print_flags(FILE *f, const char *title, const struct flag_set *set)
{
	char label[LABEL_MAX];
	int width = COLUMN_MIN;
	if (!flag_next(set, NULL))
		return;
	for (const struct flag *flag = NULL; (flag = flag_next(set, flag));) {
		flag_label(flag, label);
		if (flag->help)
			width = MAX(width, (int)strlen(label));
	}
	fprintf(f, "\n%s:\n", title);
	for (const struct flag *flag = NULL; (flag = flag_next(set, flag));) {
		if (!flag->help)
			continue;
		flag_label(flag, label);
		fprintf(f, "\t%-*s  %s%s", width, label, flag->help,
			flag->per_app ? " (per app)" : "");
		if (flag->letter)
			fprintf(f, " (-%c)", flag->letter);
		fputc('\n', f);
	}
}

/* Prints @text with a tab in front of each line. */
static void print_indented(FILE *f, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		fprintf(f, "%s%.*s\n", len ? "\t" : "", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void print_commands(FILE *f, const struct command *const *list, size_t n)
{
	fputs("\nCOMMANDS:\n", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "\t%-*s  %s\n", COLUMN_MIN, list[i]->name, list[i]->summary);
}

static void print_global_flags(FILE *f)
{
	const struct flag_set global = cli_global_flags(NULL);
	print_flags(f, "GLOBAL OPTIONS", &global);
}

void help_print_program(FILE *f)
{
	fprintf(f, "NAME:\n\thusk - %s\n", PROGRAM_SUMMARY);
	fputs("\nUSAGE:\n\thusk [GLOBAL OPTIONS] COMMAND [ARGUMENTS]\n\thusk --version\n", f);
	fprintf(f, "\nVERSION:\n\t%s\n", HUSK_VERSION);
	print_commands(f, commands, n_commands);
	fputs("\nDESCRIPTION:\n", f);
	print_indented(
		f, "Each pod gets a virtual machine of its own. There is no daemon: pods are\n"
		   "directories, and every husk process can act on all of them.\n"
		   "A command may be shortened to any unique prefix. 'husk help COMMAND' tells\n"
		   "about one command.");
	print_global_flags(f);
}

static void print_command(FILE *f, const struct command *cmd)
{
	const char *path = command_path(cmd);
	fprintf(f, "NAME:\n\thusk %s - %s\n", path, cmd->summary);
	fprintf(f, "\nUSAGE:\n\thusk %s%s%s\n", path, *cmd->usage ? " " : "", cmd->usage);
	if (cmd->n_subs > 0)
		print_commands(f, cmd->subs, cmd->n_subs);
	fputs("\nDESCRIPTION:\n", f);
	print_indented(f, cmd->description);
	const struct flag_set flags = command_flags(cmd, NULL);
	print_flags(f, "OPTIONS", &flags);
}

void help_print_command(FILE *f, const struct command *cmd, const struct flag_set *of_stage1)
{
	print_command(f, cmd);
	print_flags(f, "OPTIONS OF THE STAGE1", of_stage1);
	print_global_flags(f);
}
