/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/suites.h"
#include "bench/volume.h"

static void set_why(char why[RESULTS_TEXT_MAX], const char *text)
{
	if (why[0] == '\0')
		results_set_text(why, text);
}

/* Nobody waits for a column of what is not there unless it was asked for. */
static bool is_wanted(const struct run *run, size_t index)
{
	return index < run->options->n_stage1s || run->options->peers_named;
}

static void find_contender(struct run *run, size_t index)
{
	struct results *r = run->results;
	struct contender *c = &run->contenders[r->n_columns];
	struct column *column = &r->columns[r->n_columns];
	struct err e = ERR_INIT;
	contender_init(c, run->options->contenders[index], run->site, column);
	int x = c->ops->find(c, &e);
	if (x == -ENOENT && !is_wanted(run, index))
		return;
	r->n_columns++;
	if (x < 0) {
		set_why(column->why, e.text);
		fprintf(stderr, "husk-bench: %s: %s: its column stays blank\n", column->name,
			e.text);
	}
}

void run_find_contenders(struct run *run)
{
	for (size_t i = 0; i < run->options->n_contenders; i++)
		find_contender(run, i);
}

static int sweep(struct run *run, struct contender *c)
{
	struct err e = ERR_INIT;
	if (c->column->version[0] == '\0')
		return 0; /* it was never found */
	run->site->runner->cleaning = true;
	int r = c->ops->sweep(c, &e);
	run->site->runner->cleaning = false;
	if (r < 0)
		fprintf(stderr, "husk-bench: %s: its pods cannot be removed: %s\n", c->column->name,
			e.text);
	return r;
}

int run_sweep(struct run *run)
{
	int r = 0;
	for (size_t i = 0; i < run->results->n_columns; i++) {
		int x = sweep(run, &run->contenders[i]);
		r = r < 0 ? r : x;
	}
	return r;
}

/* Ends and removes what a killed run left of the contender @name, if that is here. */
static int sweep_left(struct run *run, const char *name)
{
	static struct column column;
	static struct contender c;
	struct err e = ERR_INIT;
	column = (struct column){ 0 };
	contender_init(&c, name, run->site, &column);
	const char *dir = c.ops == &contender_husk ? run->site->data : c.dir;
	if (faccessat(AT_FDCWD, dir, F_OK, 0) < 0 || c.ops->find(&c, &e) < 0)
		return 0;
	return sweep(run, &c);
}

int run_sweep_left(struct run *run)
{
	int r = sweep_left(run, contender_stage1s[0]); /* they share their directory */
	for (size_t i = 0; r == 0 && contender_peers[i]; i++)
		r = sweep_left(run, contender_peers[i]);
	return r;
}

void run_deinit(struct run *run)
{
	for (size_t i = 0; i < run->results->n_columns; i++)
		contender_deinit(&run->contenders[i]);
}

/* The first pod says which kernel it sees, and whether there is anything to measure. */
static void try_contender(struct run *run, struct contender *c)
{
	struct err e = ERR_INIT;
	char text[RESULTS_TEXT_MAX];
	cleanup_command struct command command;
	command_init(&command);
	snprintf(text, sizeof(text), "first pod of %.100s", c->column->title);
	progress_say(&run->progress, text);
	int r = c->ops->prepare ? c->ops->prepare(c, &e) : 0;
	if (r == 0)
		r = c->ops->run(c, 0, WORDS("uname", "-r"), &command, &e);
	if (r == 0)
		r = command_run(run->site->runner, &command, &e);
	if (r < 0) {
		set_why(c->column->why, e.text);
		progress_end(&run->progress);
		fprintf(stderr, "husk-bench: %s: %s: its column stays blank\n", c->column->name,
			e.text);
	} else {
		cleanup_free char *kernel = buf_take_string(&command.out);
		snprintf(text, sizeof(text), "%.*s", kernel ? (int)strcspn(kernel, "\n") : 0,
			 kernel ? kernel : "");
		results_set_text(c->column->kernel, text);
	}
	(void)sweep(run, c);
}

/* Puts the readings of a step into the cells of a contender. */
static void take_readings(const struct step *step, struct shown_row *rows, size_t column,
			  const struct reading *readings, const char *why)
{
	for (size_t i = 0; i < suites_step_rows(step); i++) {
		struct cell *cell = &rows[i].cells[column];
		if (!isnan(readings[i].value) && cell->n < RESULTS_ROUNDS_MAX)
			cell->v[cell->n++] = readings[i].value;
		else
			set_why(cell->why, readings[i].why[0] != '\0' ? readings[i].why : why);
	}
}

/* One contender does one step. False if it failed, and need not try again. */
static bool measure(struct run *run, const struct step *step, struct shown_row *rows, size_t column)
{
	struct contender *c = &run->contenders[column];
	struct reading readings[SUITES_STEP_ROWS_MAX];
	struct err e = ERR_INIT;
	for (size_t i = 0; i < SUITES_STEP_ROWS_MAX; i++)
		readings[i] = (struct reading){ .value = NAN };
	int r = volume_make(c, step->volume, &e);
	if (r == 0)
		r = step->measure(step, c, readings, &e);
	take_readings(step, rows, column, readings, e.text);
	(void)sweep(run, c);
	return r == 0;
}

static unsigned rounds_of(const struct run *run, const struct step *step)
{
	return step->once ? 1 : run->options->rounds;
}

static void measure_step(struct run *run, const struct step *step, struct shown_row *rows)
{
	struct results *r = run->results;
	bool failed[RESULTS_COLUMNS_MAX] = { false };
	char text[RESULTS_TEXT_MAX];
	for (unsigned round = 0; round < rounds_of(run, step); round++)
		for (size_t i = 0; i < r->n_columns; i++) {
			if (run->site->runner->interrupted)
				return;
			if (r->columns[i].why[0] == '\0' && !failed[i]) {
				snprintf(text, sizeof(text), "%s, round %u of %u: %.100s",
					 step->suite, round + 1, rounds_of(run, step),
					 r->columns[i].title);
				progress_say(&run->progress, text);
				failed[i] = !measure(run, step, rows, i);
			}
			progress_add(&run->progress, step->weight);
		}
}

/* The rows of all steps that are wanted, in order; yields the weight of what is to be done. */
static unsigned add_rows(struct run *run)
{
	struct results *r = run->results;
	unsigned weight = 0;
	for (size_t i = 0; i < suites_n_steps; i++) {
		const struct step *step = &suites_steps[i];
		if (!options_want(run->options, step->suite))
			continue;
		weight += step->weight * rounds_of(run, step) * (unsigned)r->n_columns;
		for (size_t k = 0; k < suites_step_rows(step) && r->n_rows < RESULTS_ROWS_MAX; k++)
			r->rows[r->n_rows++] =
				(struct shown_row){ .suite = step->suite, .row = &step->rows[k] };
	}
	return weight;
}

/* Every cell without values says why. */
static void explain_blanks(struct results *r)
{
	for (size_t i = 0; i < r->n_rows; i++)
		for (size_t k = 0; k < r->n_columns; k++) {
			struct cell *cell = &r->rows[i].cells[k];
			if (cell->n == 0)
				set_why(cell->why, r->columns[k].why);
			if (cell->n == 0 && r->partial)
				set_why(cell->why, "interrupted");
		}
}

void run_measure(struct run *run)
{
	struct results *r = run->results;
	size_t at = 0;
	progress_init(&run->progress, add_rows(run));
	for (size_t i = 0; i < r->n_columns; i++)
		if (r->columns[i].why[0] == '\0' && !run->site->runner->interrupted)
			try_contender(run, &run->contenders[i]);
	for (size_t i = 0; i < suites_n_steps; i++) {
		const struct step *step = &suites_steps[i];
		if (!options_want(run->options, step->suite))
			continue;
		measure_step(run, step, &r->rows[at]);
		at += suites_step_rows(step);
	}
	r->partial = run->site->runner->interrupted;
	explain_blanks(r);
	progress_end(&run->progress);
}
