/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/results.h"

#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"

void results_set_text(char out[RESULTS_TEXT_MAX], const char *text)
{
	str_copy_text(out, RESULTS_TEXT_MAX, text);
	str_make_printable(out);
}

void results_add_fact(struct results *r, const char *key, const char *title, const char *text)
{
	if (r->n_facts >= RESULTS_FACTS_MAX)
		return;
	struct fact *f = &r->facts[r->n_facts++];
	f->key = key;
	f->title = title;
	results_set_text(f->text, text);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* The value at @part (0 to 1) of the sorted @v. */
static double quantile(const double *v, size_t n, double part)
{
	double at = (double)(n - 1) * part;
	size_t below = (size_t)at;
	if (below + 1 >= n)
		return v[n - 1];
	return v[below] + (at - (double)below) * (v[below + 1] - v[below]);
}

struct stats stats_of(const double *v, size_t n)
{
	double sorted[RESULTS_ROUNDS_MAX];
	n = MIN(n, ARRAY_SIZE(sorted));
	memcpy(sorted, v, n * sizeof(*v));
	qsort(sorted, n, sizeof(*sorted), compare);
	return (struct stats){ .min = sorted[0],
			       .q1 = quantile(sorted, n, 0.25),
			       .median = quantile(sorted, n, 0.5),
			       .q3 = quantile(sorted, n, 0.75),
			       .max = sorted[n - 1] };
}

bool results_ratio(const struct shown_row *row, size_t column, double *ret)
{
	const struct cell *first = &row->cells[0], *cell = &row->cells[column];
	if (first->n == 0 || cell->n == 0)
		return false;
	double base = stats_of(first->v, first->n).median;
	if (base <= 0)
		return false;
	*ret = stats_of(cell->v, cell->n).median / base;
	return true;
}
