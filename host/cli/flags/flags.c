/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/flags/flags.h"

#include <errno.h>
#include <string.h>

#include "host/cli/flags/habits.h"

/* The spellings of truth that rkt's flags accepted. */
static const char *const true_words[] = { "1", "t", "T", "true", "TRUE", "True" };
static const char *const false_words[] = { "0", "f", "F", "false", "FALSE", "False" };

bool flag_is_flag(const char *arg)
{
	return arg[0] == '-' && arg[1] != '\0' && strcmp(arg, "--") != 0;
}

/* Finds the value of a switch. NULL if it is not a boolean. */
static const char *switch_value(const char *text)
{
	if (!text || str_is_one_of(text, true_words, ARRAY_SIZE(true_words)))
		return "true";
	return str_is_one_of(text, false_words, ARRAY_SIZE(false_words)) ? "false" : NULL;
}

/*
 * Finds the value of @f: *@value came with "=" or is NULL. Moves *@next if it takes the argument
 * there. 0 or FLAG_BAD and @e.
 */
static int take_value(const struct flag *f, char *const *argv, size_t *next, const char **value,
		      struct err *e)
{
	if (!f->arg) {
		const char *word = switch_value(*value);
		if (!word) {
			err_set(e, -EINVAL, "invalid argument \"%s\" for --%s: not true or false",
				*value, f->name);
			return FLAG_BAD;
		}
		*value = word;
	} else if (!*value && f->bare) {
		*value = f->bare;
	} else if (!*value) {
		*value = argv[*next];
		if (!*value) {
			err_set(e, -EINVAL, "flag needs an argument: --%s", f->name);
			return FLAG_BAD;
		}
		(*next)++;
	}
	return 0;
}

/* The switch that @arg, "-" and one letter, is short for; or NULL. */
static const struct flag *find_letter(const struct flag_set *sets, size_t n_sets, const char *arg)
{
	for (size_t s = 0; s < n_sets && arg[2] == '\0'; s++)
		for (const struct flag *f = NULL; (f = flag_next(&sets[s], f));)
			if (f->letter == arg[1])
				return f;
	return NULL;
}

int flag_unknown(const struct flag_set *sets, size_t n_sets, const char *arg, struct err *e)
{
	const char *near, *use = habit_flag(sets, n_sets, arg, &near);
	int len = (int)strcspn(arg, "=");
	const char *kind = arg[1] == '-' ? "flag" : "shorthand flag";
	if (use)
		err_set(e, -EINVAL, "unknown %s: %.*s (%s)", kind, len, arg, use);
	else if (near)
		err_set(e, -EINVAL, "unknown flag: %.*s (did you mean --%s?)", len, arg, near);
	else if (arg[1] != '-')
		err_set(e, -EINVAL, "unknown shorthand flag: %s (flags are long)", arg);
	else
		err_set(e, -EINVAL, "unknown flag: %.*s", len, arg);
	return FLAG_BAD;
}

/* A flag that no table has: it is somebody else's, and has a value, or it is wrong. */
static int take_other(const struct flag_set *sets, size_t n_sets, char *const *argv, size_t *at,
		      struct err *e)
{
	const char *arg = argv[*at], *name = arg + 2, *next = argv[*at + 1];
	size_t len = strcspn(name, "=");
	const char *value = name[len] == '=' ? name + len + 1 : next;
	if (!sets[0].other || !value)
		return flag_unknown(sets, n_sets, arg, e);
	int r = sets[0].other(sets[0].opts, name, len, value, e);
	*at += name[len] == '=' ? 1 : 2;
	return r;
}

int flag_parse_one(const struct flag_set *sets, size_t n_sets, char *const *argv, size_t *at,
		   struct err *e)
{
	const char *arg = argv[*at];
	const struct flag *letter = find_letter(sets, n_sets, arg);
	if (arg[1] != '-' && !letter)
		return flag_unknown(sets, n_sets, arg, e);
	const char *name = letter ? letter->name : arg + 2;
	size_t len = strcspn(name, "="), next = *at + 1;
	const char *value = name[len] == '=' ? name + len + 1 : NULL;
	const struct flag_set *set = NULL;
	const struct flag *f = flag_find(sets, n_sets, name, len, &set);
	if (!f)
		return take_other(sets, n_sets, argv, at, e);
	int r = take_value(f, argv, &next, &value, e);
	if (r != 0)
		return r;
	r = f->set(set->opts, f, value, e);
	if (r < 0)
		return r == -ENOMEM ? r : FLAG_BAD;
	*at = next;
	return 0;
}

/* Takes the argument at argv[*at]: a flag with its value, "--", or an operand. */
static int parse_argument(const struct flag_set *sets, size_t n_sets, char *const *argv, size_t *at,
			  bool *only_operands, struct strv *operands, struct err *e)
{
	if (!*only_operands && flag_is_flag(argv[*at]))
		return flag_parse_one(sets, n_sets, argv, at, e);
	int r = 0;
	if (!*only_operands && strcmp(argv[*at], "--") == 0)
		*only_operands = true;
	else
		r = strv_add(operands, argv[*at]);
	if (r < 0)
		return err_sys(e, r, "arguments");
	(*at)++;
	return 0;
}

int flags_parse(const struct flag_set *sets, size_t n_sets, char *const *argv,
		struct strv *operands, struct err *e)
{
	bool only_operands = false;
	for (size_t at = 0; argv[at];) {
		int r = parse_argument(sets, n_sets, argv, &at, &only_operands, operands, e);
		if (r != 0)
			return r;
	}
	return 0;
}
