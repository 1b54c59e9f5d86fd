/* SPDX-License-Identifier: Apache-2.0 */
/* Results as a run could have them, with every kind of cell and with texts that mean mischief. */
#ifndef TESTS_UNIT_BENCH_EXAMPLE_H
#define TESTS_UNIT_BENCH_EXAMPLE_H

#include "bench/results.h"

static const struct row example_rows[] = {
	{ "start.warm.end", "Warm: to the end of the command", "ms", true, "How it is measured." },
	{ "memory.guest", "Of that touched by the guest", "MiB", true, "Only where there is one." },
	{ "many.starts", "Pods per second", "1/s", false, "All at once." },
};

static inline void example_cell(struct results *r, size_t row, size_t column, size_t n,
				const double *v, const char *why)
{
	struct cell *cell = &r->rows[row].cells[column];
	for (size_t i = 0; i < n; i++)
		cell->v[i] = v[i];
	cell->n = n;
	results_set_text(cell->why, why);
}

static inline void example_column(struct results *r, const char *name, const char *title,
				  const char *version, const char *kernel, const char *why)
{
	struct column *c = &r->columns[r->n_columns++];
	c->name = name;
	results_set_text(c->title, title);
	results_set_text(c->version, version);
	results_set_text(c->kernel, kernel);
	results_set_text(c->why, why);
}

static inline void example_make(struct results *r)
{
	*r = (struct results){ .rounds = 3 };
	results_add_fact(r, "date", "Date", "2026-01-02 03:04:05 UTC");
	results_add_fact(r, "image", "Image", "<script>alert('x')</script> & \"more\"\n");
	example_column(r, "kvm", "kvm (TCG)", "husk 0.1.0; QEMU \"7.2\"", "6.12-husk", "");
	r->columns[0].emulated = true;
	example_column(r, "runc", "runc", "runc version <1>", "6.18", "");
	example_column(r, "crun", "crun", "", "", "not installed");
	static const char *const suites[] = { "start", "memory", "many" };
	for (size_t i = 0; i < 3; i++)
		r->rows[r->n_rows++] =
			(struct shown_row){ .suite = suites[i], .row = &example_rows[i] };
	for (size_t i = 0; i < 3; i++)
		example_cell(r, i, 2, 0, NULL, "not installed");
	example_cell(r, 0, 0, 3, (const double[]){ 1000, 900, 1400 }, "");
	example_cell(r, 0, 1, 3, (const double[]){ 50.25, 40, 60 }, "");
	example_cell(r, 1, 0, 1, (const double[]){ 38.5 }, "");
	example_cell(r, 1, 1, 0, NULL, "there is no guest");
	example_cell(r, 2, 0, 2, (const double[]){ 1.5, 2.5 }, "timed out");
	example_cell(r, 2, 1, 1, (const double[]){ 1234567 }, "exit status 1: </td>\x1b[2J");
}

#endif
