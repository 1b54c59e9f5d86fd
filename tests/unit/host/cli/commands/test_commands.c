/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "host/cli/cli.h"
#include "tests/support/fixture.h"

static void test_table_is_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_commands; i++) {
		const struct command *c = commands[i];
		assert_true(i == 0 || strcmp(commands[i - 1]->name, c->name) < 0);
		assert_non_null(c->usage);
		assert_non_null(c->description);
		assert_false(str_ends(c->summary, "."));
		const struct flag_set flags = command_flags(c, NULL);
		const struct flag_set global = cli_global_flags(NULL);
		const char *last = "";
		for (const struct flag *f = NULL; (f = flag_next(&flags, f));) {
			assert_non_null(f->set);
			assert_true(!f->help || strlen(f->help) > 0);
			assert_true(strcmp(last, f->name) < 0);
			assert_null(flag_find(&global, 1, f->name, strlen(f->name), NULL));
			last = f->name;
		}
	}
}

/* In front of the command word a flag means the same whichever command follows. */
static void test_flags_agree(void **state)
{
	(void)state;
	for (size_t a = 0; a < n_commands; a++) {
		const struct flag_set flags = command_flags(commands[a], NULL);
		for (const struct flag *flag = NULL; (flag = flag_next(&flags, flag));)
			for (size_t b = 0; b < n_commands; b++) {
				const struct flag_set set = command_flags(commands[b], NULL);
				const struct flag *same =
					flag_find(&set, 1, flag->name, strlen(flag->name), NULL);
				if (same)
					assert_int_equal(!same->arg, !flag->arg);
			}
	}
}

static void test_find(void **state)
{
	(void)state;
	assert_ptr_equal(command_find(NULL, "list"), &cmd_list);
	assert_ptr_equal(command_find(NULL, "li"), &cmd_list);
	assert_null(command_find(NULL, "l"));    /* or logs */
	assert_null(command_find(NULL, "stat")); /* or stats */
	assert_ptr_equal(command_find(NULL, "statu"), &cmd_status);
	assert_ptr_equal(command_find(NULL, "stats"), &cmd_stats);
	assert_ptr_equal(command_find(NULL, "status"), &cmd_status);
	assert_null(command_find(NULL, "statusx"));
	assert_null(command_find(NULL, ""));
	assert_ptr_equal(command_find(NULL, "image"), &cmd_image);
	assert_null(command_find(NULL, "images"));
}

static void check_members(const struct command *group)
{
	for (size_t i = 0; i < group->n_subs; i++) {
		const struct command *c = group->subs[i];
		assert_true(i == 0 || strcmp(group->subs[i - 1]->name, c->name) < 0);
		assert_ptr_equal(command_find(group, c->name), c);
		char want[64];
		snprintf(want, sizeof(want), "%s %s", group->name, c->name);
		assert_string_equal(command_path(c), want);
		assert_non_null(c->run);
	}
}

static void test_members(void **state)
{
	(void)state;
	check_members(&cmd_app);
	check_members(&cmd_image);
	assert_string_equal(command_path(&cmd_list), "list");
	assert_ptr_equal(command_find(NULL, "ap"), &cmd_app);
	assert_ptr_equal(command_find(&cmd_app, "star"), &cmd_app_start);
	assert_ptr_equal(command_find(&cmd_app, "statu"), &cmd_app_status);
	assert_null(command_find(&cmd_app, "stat")); /* or stats */
	assert_ptr_equal(command_find(&cmd_app, "r"), &cmd_app_rm);
	assert_null(command_find(&cmd_app, "sta"));
	assert_null(command_find(&cmd_app, "s"));
	assert_null(command_find(&cmd_app, "gc")); /* of the other commands */
	assert_null(command_find(&cmd_app, ""));
}

static void test_word_index(void **state)
{
	static const struct {
		const char *line;
		size_t want;
	} cases[] = {
		{ "list", 0 },
		{ "--debug list", 1 },
		{ "--dir /x list", 2 },
		{ "--dir=/x list", 1 },
		{ "--format json list", 2 },
		{ "--no-legend list", 1 },
		{ "--net run img", 1 },
		{ "--unknown list", 1 },
		{ "-h list", 1 },
		{ "--dir", 1 },
		{ "--debug", 1 },
		{ "", 0 },
		{ "-- list", 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char copy[64], *argv[8] = { NULL };
		size_t n = 0;
		snprintf(copy, sizeof(copy), "%s", cases[i].line);
		for (char *rest = copy, *word; (word = strsep(&rest, " "));)
			if (*word)
				argv[n++] = word;
		assert_int_equal(command_word_index(argv), cases[i].want);
	}
}

static void test_unknown(void **state)
{
	static const struct {
		const char *word, *want;
	} cases[] = {
		{ "frobnicate",
		  "Error: unknown command \"frobnicate\" for \"husk\"; see husk help\n" },
		{ "lsit", "Error: unknown command \"lsit\" for \"husk\" (did you mean list?); "
			  "see husk help\n" },
		{ "STATUS",
		  "Error: unknown command \"STATUS\" for \"husk\" (did you mean stats or status?); "
		  "see husk help\n" },
		{ "st",
		  "Error: unknown command \"st\" for \"husk\" (did you mean stats or status or "
		  "stop?); see husk help\n" },
		/* What other tools call it, rather than what is spelt nearly so. */
		{ "ps",
		  "Error: unknown command \"ps\" for \"husk\" (use husk list); see husk help\n" },
		{ "rmi",
		  "Error: unknown command \"rmi\" for \"husk\" (use husk image rm); see husk help\n" },
		{ "images", "Error: unknown command \"images\" for \"husk\" (use husk image list); "
			    "see husk help\n" },
		{ "rx", "Error: unknown command \"rx\" for \"husk\"; see husk help\n" },
		{ "", "Error: unknown command \"\" for \"husk\"; see husk help\n" },
		{ "\x1b[2J", "Error: unknown command \"?[2J\" for \"husk\"; see husk help\n" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char got[512] = "";
		FILE *f = fmemopen(got, sizeof(got), "w");
		assert_non_null(f);
		command_print_unknown(f, NULL, cases[i].word);
		fclose(f);
		assert_string_equal(got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_table_is_sound), fixture_test(test_flags_agree),
		fixture_test(test_find),           fixture_test(test_word_index),
		fixture_test(test_unknown),        fixture_test(test_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
