/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured, and what was: the data that suites fill and reports show. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#define RESULTS_COLUMNS_MAX 7   /* two stage1s and five peers are known */
#define RESULTS_ROWS_MAX    48  /* all suites have 44 */
#define RESULTS_ROUNDS_MAX  100 /* more says nothing new, and takes hours under emulation */
#define RESULTS_FACTS_MAX   12  /* host.c and main.c know 9 */
#define RESULTS_TEXT_MAX    256 /* a line of a table; longer reasons are cut */

/* One line of a table: a figure of each contender. */
struct row {
	const char *id; /* in JSON and CSV */
	const char *title;
	const char *unit;
	bool less_is_better;
	const char *how; /* how it is measured, in a sentence */
};

/* What one contender has in one row. */
struct cell {
	double v[RESULTS_ROUNDS_MAX];
	size_t n;
	char why[RESULTS_TEXT_MAX]; /* why there are no, or no further, values; else empty */
};

struct shown_row {
	const char *suite;
	const struct row *row;
	struct cell cells[RESULTS_COLUMNS_MAX];
};

struct column {
	const char *name;
	char title[RESULTS_TEXT_MAX];
	char version[RESULTS_TEXT_MAX];
	char kernel[RESULTS_TEXT_MAX]; /* that the pods see; empty if that is not known */
	char why[RESULTS_TEXT_MAX];    /* why nothing was measured; else empty */
	bool emulated;                 /* its processor is software */
};

/* Something that has to be known to understand the figures. */
struct fact {
	const char *key;
	const char *title;
	char text[RESULTS_TEXT_MAX];
};

struct results {
	struct fact facts[RESULTS_FACTS_MAX];
	size_t n_facts;
	struct column columns[RESULTS_COLUMNS_MAX];
	size_t n_columns;
	struct shown_row rows[RESULTS_ROWS_MAX];
	size_t n_rows;
	unsigned rounds;
	bool partial; /* interrupted before the end */
};

/*
 * Puts @text, which may come from anywhere, into one of the texts above: cut, UTF-8, and without
 * what would steer a terminal. All of them are set this way.
 */
void results_set_text(char out[RESULTS_TEXT_MAX], const char *text);

/* Adds a fact; beyond RESULTS_FACTS_MAX it is dropped. @key and @title are constants. */
void results_add_fact(struct results *r, const char *key, const char *title, const char *text);

/* The figures that a report shows of a cell. */
struct stats {
	double min, q1, median, q3, max;
};

/*
 * Of @n values, at least one: quartiles are interpolated linearly between neighbours (type 7 of
 * Hyndman and Fan, as R and numpy do).
 */
struct stats stats_of(const double *v, size_t n);

/*
 * How often the median of column @column is that of the first column of @row. False, and nothing,
 * if one of them has no values or the first's is 0.
 */
bool results_ratio(const struct shown_row *row, size_t column, double *ret);

#endif
