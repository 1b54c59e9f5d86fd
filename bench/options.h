/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of husk-bench. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench/results.h"
#include "lib/base/err.h"

#define OPTIONS_SUITES_MAX 16  /* there are 9, each once */
#define OPTIONS_PODS_MAX   200 /* 100 GiB of guests; more is the business of a soak test */

struct options {
	const char *contenders[RESULTS_COLUMNS_MAX]; /* names, stage1s first */
	size_t n_stage1s, n_contenders;
	bool peers_named;  /* those that are not installed get a column, too */
	unsigned rounds;   /* 1 to RESULTS_ROUNDS_MAX */
	unsigned pods;     /* most idle pods at once, 1 to OPTIONS_PODS_MAX */
	const char *image; /* as husk fetch takes it; NULL: the one that husk-bench makes */
	const char *out;   /* directory of the results */
	const char *suites[OPTIONS_SUITES_MAX]; /* none: all */
	size_t n_suites;
	bool help, version;
};

/*
 * Reads the words of the command line into *ret, whose texts borrow from them and from tables.
 * @suites, NULL-terminated, are the names that suites have. -EINVAL with @e, which says what the
 * user could have meant.
 */
int options_read(char *const *argv, const char *const *suites, struct options *ret, struct err *e);

/* Whether a suite is to be measured. */
bool options_want(const struct options *o, const char *suite);

/* Prints what --help prints. */
void options_print_help(void);

#endif
