/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the run is, on standard error: a bar that is drawn over itself on a terminal, a line for
 * each turn elsewhere.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool terminal;
	int64_t start_ns;
	unsigned done, total; /* in weights of steps */
};

/* Begins with @total still to do. */
void progress_init(struct progress *p, unsigned total);

/* Says what is being done now. @text is one line. */
void progress_say(const struct progress *p, const char *text);

/* @weight more is done. */
void progress_add(struct progress *p, unsigned weight);

/* Takes the bar away. */
void progress_end(const struct progress *p);

/*
 * The bar for a terminal: "[####......] 40 %, 2 min 10 s left: TEXT", cut to @columns. The time
 * left is what was needed so far, in proportion; without it, before anything is known (@elapsed_s <
 * 1 or nothing done). @out has room for @size bytes.
 */
void progress_format(const struct progress *p, int64_t elapsed_s, const char *text,
		     unsigned columns, char *out, unsigned size);

#endif
