/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a run: which contender does which step when. */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include "bench/contender.h"
#include "bench/options.h"
#include "bench/progress.h"
#include "bench/results.h"

struct run {
	const struct options *options;
	struct site *site;
	struct results *results;
	struct contender contenders[RESULTS_COLUMNS_MAX]; /* as the columns of the results */
	struct progress progress;
};

/*
 * Finds the contenders that the options name. Who is missing has a column that says so, and a line
 * on standard error.
 */
void run_find_contenders(struct run *run);

/*
 * Starts a pod of each contender, as a test and to fill caches, then measures: contenders take
 * turns in each round of each step. Failures are in the results.
 */
void run_measure(struct run *run);

/* Ends and removes all pods, also after a signal. 0 or -errno, with a line on standard error. */
int run_sweep(struct run *run);

/*
 * The same of whoever has something left in the directory of the site, from a run that was killed.
 */
int run_sweep_left(struct run *run);

/* Gives up what contenders have. */
void run_deinit(struct run *run);

#endif
