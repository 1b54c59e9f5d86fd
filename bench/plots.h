/* SPDX-License-Identifier: Apache-2.0 */
/* Drawings of results, by gnuplot. */
#ifndef BENCH_PLOTS_H
#define BENCH_PLOTS_H

#include "bench/command.h"
#include "bench/results.h"
#include "lib/base/err.h"

/* A script of 40 drawings with 6 lines each. */
#define PLOTS_SCRIPT_MAX ((size_t)128 << 10)

/* Some 15 KiB each. */
#define PLOTS_SVG_MAX ((size_t)256 << 10)

/*
 * Appends the script that makes plot-N.svg in the directory that is its argument, for each row N
 * that at least two columns have values of. 0 or -errno.
 */
int plots_script(const struct results *r, struct buf *out);

/*
 * Has gnuplot make them in @dir. *ret_plots, RESULTS_ROWS_MAX of them and each NULL or an <svg>
 * element, is for plots_free(). -ENOENT with @e if there is no gnuplot, -errno.
 */
int plots_make(const struct results *r, struct runner *runner, const char *dir, char ***ret_plots,
	       struct err *e);

/* Accepts NULL. */
void plots_free(char **plots);

#endif
