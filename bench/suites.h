/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured. A suite is a list of steps; a step is what is done at once with one contender,
 * and gives values for one row or several.
 */
#ifndef BENCH_SUITES_H
#define BENCH_SUITES_H

#include "bench/contender.h"
#include "bench/results.h"
#include "lib/base/err.h"

#define SUITES_STEP_ROWS_MAX 6 /* that of the processor has 5 */

/* A value, or why there is none: exactly one of them. */
struct reading {
	double value;
	char why[RESULTS_TEXT_MAX];
};

struct step {
	const char *suite;
	unsigned weight; /* seconds that it took with a slow contender: for the time left */
	bool once;       /* whatever the rounds */
	/*
	 * Fills the readings of all rows, which come without reason and value. -errno with @e if
	 * that ended early: what has no value by then gets that reason.
	 */
	int (*measure)(const struct step *step, struct contender *c, struct reading *readings,
		       struct err *e);
	struct row rows[SUITES_STEP_ROWS_MAX]; /* the first without id is behind the last */

	/* Of those that run a script: */
	const char *script;                   /* prints a line before and after each part */
	double amounts[SUITES_STEP_ROWS_MAX]; /* what each part does, in the unit of its row */
	const char *volume;                   /* the kind that the pod has; NULL: none */
	uint64_t feed;                        /* zero bytes for its standard input */
	bool cold;                            /* the caches of the image are dropped before */
};

/*
 * The names of the suites, in order, NULL-terminated; and for people, in a sentence, what one is
 * about.
 */
extern const char *const suites_names[];
const char *suites_about(const char *suite);

/* All steps; those of a suite one behind the other. */
extern const struct step suites_steps[];
extern const size_t suites_n_steps;

/* How many rows a step has. */
size_t suites_step_rows(const struct step *step);

#endif
