/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and how a command line finds its command. */
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/flags/habits.h"

const struct command *const commands[] = {
	&cmd_app,   &cmd_attach, &cmd_cat_manifest, &cmd_config, &cmd_doctor,
	&cmd_enter, &cmd_events, &cmd_export,       &cmd_fetch,  &cmd_gc,
	&cmd_help,  &cmd_image,  &cmd_list,         &cmd_logs,   &cmd_prepare,
	&cmd_rm,    &cmd_run,    &cmd_run_prepared, &cmd_stats,  &cmd_status,
	&cmd_stop,  &cmd_top,    &cmd_trust,        &cmd_update, &cmd_version,
};
const size_t n_commands = ARRAY_SIZE(commands);

struct command_list {
	const struct command *const *v;
	size_t n;
};

static struct command_list members(const struct command *group)
{
	return group ? (struct command_list){ group->subs, group->n_subs }
		     : (struct command_list){ commands, n_commands };
}

const struct command *command_find(const struct command *group, const char *word)
{
	struct command_list all = members(group);
	const struct command *found = NULL;
	size_t matches = 0;
	for (size_t i = 0; i < all.n; i++) {
		if (strcmp(all.v[i]->name, word) == 0)
			return all.v[i];
		if (!*word || !str_starts(all.v[i]->name, word))
			continue;
		found = all.v[i];
		matches++;
	}
	return matches == 1 ? found : NULL;
}

/* The flag @name in whichever command of @all or of a group in it, or NULL. */
static const struct flag *find_flag(struct command_list all, const char *name, size_t len)
{
	const struct flag *f = NULL;
	for (size_t i = 0; !f && i < all.n; i++) {
		const struct flag_set set = command_flags(all.v[i], NULL);
		f = flag_find(&set, 1, name, len, NULL);
		if (!f)
			f = find_flag(members(all.v[i]), name, len);
	}
	return f;
}

/* True if the flag --NAME[=...] takes the next argument for its value, in whichever command. */
static bool takes_next_argument(const char *arg)
{
	if (strchr(arg, '=') || !str_starts(arg, "--"))
		return false;
	const struct flag_set global = cli_global_flags(NULL);
	const struct flag *f = flag_find(&global, 1, arg + 2, strlen(arg + 2), NULL);
	if (!f)
		f = find_flag(members(NULL), arg + 2, strlen(arg + 2));
	return f && f->arg && !f->bare;
}

size_t command_word_index(char *const *argv)
{
	size_t i = 0;
	while (argv[i] && flag_is_flag(argv[i]))
		i += takes_next_argument(argv[i]) && argv[i + 1] ? 2 : 1;
	return i;
}

/*
 * Prints which members of @all were perhaps meant by @word, in one clause with its blank in front.
 */
static void put_suggestions(FILE *f, struct command_list all, const char *word)
{
	int n = 0;
	for (size_t i = 0; i < all.n; i++) {
		const char *name = all.v[i]->name;
		if ((*word && str_starts(name, word)) || habit_is_near(word, name))
			fprintf(f, "%s%s", n++ == 0 ? " (did you mean " : " or ", name);
	}
	if (n > 0)
		fputs("?)", f);
}

void command_print_unknown(FILE *f, const struct command *group, const char *word)
{
	const char *path = group ? command_path(group) : "", *use = habit_command(word);
	const char *blank = group ? " " : "";
	struct err e = ERR_INIT; /* makes the word printable */
	err_set(&e, -EINVAL, "unknown command \"%.128s\" for \"husk%s%s\"", word, blank, path);
	fprintf(f, "Error: %s", e.text);
	if (!group && use)
		fprintf(f, " (use %s)", use);
	else
		put_suggestions(f, members(group), word);
	fprintf(f, "; see husk help%s%s\n", blank, path);
}
