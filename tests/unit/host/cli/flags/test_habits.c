/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/habits.h"

#include <string.h>

#include "host/cli/cli.h"
#include "tests/support/fixture.h"

static void test_near(void **state)
{
	static const struct {
		const char *word, *name;
		bool near;
	} cases[] = {
		{ "list", "list", true },
		{ "LIST", "list", true },
		{ "lsit", "list", true }, /* two neighbours: one edit */
		{ "lis", "list", true },
		{ "lost", "list", true },
		{ "lots", "list", false }, /* two edits in four characters */
		{ "ps", "rm", false },
		{ "ps", "stop", false },
		{ "r", "rm", false },
		{ "statsu", "status", true },
		{ "tsatsu", "status", true }, /* two in six */
		{ "tsxtux", "status", false },
		{ "", "rm", false },
		{ "abcdefghijklmnopqrstuvwxyz-12345", "abcdefghijklmnopqrstuvwxyz-12346", true },
		{ "abcdefghijklmnopqrstuvwxyz-123456", "abcdefghijklmnopqrstuvwxyz-12345", false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (habit_is_near(cases[i].word, cases[i].name) != cases[i].near)
			fail_msg("%s, %s", cases[i].word, cases[i].name);
}

static const struct {
	const struct command *cmd;
	const char *arg, *use, *near;
} flags[] = {
	{ &cmd_run, "-it", "use --interactive", NULL },
	{ &cmd_run, "-d", "use --detach", NULL },
	{ &cmd_run, "-e", "use --environment=NAME=VALUE behind the image", NULL },
	{ &cmd_run, "--env=A=b", "use --environment=NAME=VALUE behind the image", NULL },
	{ &cmd_run, "--envi", NULL, NULL },
	{ &cmd_run, "--enviroment=A=b", NULL, "environment" },
	{ &cmd_logs, "-f", "use --follow", NULL },
	{ &cmd_stop, "-f", "use --force", NULL },
	{ &cmd_rm, "-f", NULL, NULL },
	{ &cmd_list, "-d", NULL, NULL },
	{ &cmd_list, "--fulll", NULL, "full" },
	{ &cmd_run, "-", NULL, NULL },
	{ &cmd_run, "---", NULL, NULL },
};

static void test_flags(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag_set set = command_flags(flags[i].cmd, NULL);
		const char *near, *use = habit_flag(&set, 1, flags[i].arg, &near);
		assert_true(use ? flags[i].use && strcmp(use, flags[i].use) == 0 : !flags[i].use);
		assert_true(near ? flags[i].near && strcmp(near, flags[i].near) == 0
				 : !flags[i].near);
	}
}

/* What is suggested is there, and what is there is no habit. */
static void test_commands(void **state)
{
	static const char *const words[] = { "ps",    "images", "rmi",   "pull",   "load",
					     "save",  "kill",   "exec",  "create", "commit",
					     "start", "wait",   "prune", "info",   "inspect" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *use = habit_command(words[i]);
		char name[32];
		assert_non_null(use);
		assert_true(str_starts(use, "husk "));
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(use + 5, " "), use + 5);
		assert_non_null(command_find(NULL, name));
	}
	for (size_t i = 0; i < n_commands; i++)
		assert_null(habit_command(commands[i]->name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_near),
		fixture_test(test_flags),
		fixture_test(test_commands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
