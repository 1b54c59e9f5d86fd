/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody may have meant who typed a flag or a command that is not there: one that is spelt
 * nearly like it, or what other container tools call it. Pure.
 */
#ifndef HOST_CLI_FLAGS_HABITS_H
#define HOST_CLI_FLAGS_HABITS_H

#include <stdbool.h>
#include <stddef.h>

struct flag_set;

/* Longest word that is compared; longer ones are like nothing. */
#define HABIT_WORD_MAX 32

/*
 * True if few enough edits (insert, delete, replace, swap neighbours) turn @word into @name for
 * their length: one for every three characters. Case does not count.
 */
bool habit_is_near(const char *word, const char *name);

/*
 * What to write instead of the unknown flag @arg (with its dashes; a value behind "=" does not
 * count) in one clause without full stop, or NULL. Only flags that are in @sets are named.
 * *ret_near is the flag that is spelt nearly so, else NULL.
 */
const char *habit_flag(const struct flag_set *sets, size_t n_sets, const char *arg,
		       const char **ret_near);

/* The command of husk that does what other tools call @word, e.g. "husk list" for "ps"; or NULL. */
const char *habit_command(const char *word);

#endif
