/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/file.h"
#include "lib/os/path.h"

static size_t columns_with_values(const struct shown_row *row, size_t n_columns)
{
	size_t n = 0;
	for (size_t i = 0; i < n_columns; i++)
		n += row->cells[i].n > 0;
	return n;
}

/* A line for each column that has values; yields the largest. */
static int data_of_row(const struct results *r, const struct shown_row *row, struct buf *out,
		       double *ret_max)
{
	int x = buf_puts(out, "$d << EOD\n");
	*ret_max = 0;
	for (size_t i = 0; x == 0 && i < r->n_columns; i++) {
		const struct cell *cell = &row->cells[i];
		if (cell->n == 0)
			continue;
		struct stats s = stats_of(cell->v, cell->n);
		*ret_max = MAX(*ret_max, s.max);
		x = buf_printf(out, "\"%s\" %.6g %.6g %.6g\n", r->columns[i].title, s.median, s.min,
			       s.max);
	}
	return x < 0 ? x : buf_puts(out, "EOD\n");
}

/* Titles of rows and columns are husk-bench's own: no quote is in them. */
static int script_of_row(const struct results *r, size_t index, struct buf *out)
{
	const struct shown_row *row = &r->rows[index];
	double max = 0;
	int x = data_of_row(r, row, out, &max);
	if (x < 0)
		return x;
	return buf_printf(out,
			  "set terminal svg size 400,260 dynamic noenhanced font 'sans-serif,12' "
			  "name 'p%zu' background rgb 'white'\n"
			  "set output ARG1.'/plot-%zu.svg'\n"
			  "set title \"%s, %s\"\nset format y '%s'\nset xrange [-0.6:%zu.6]\n"
			  "plot $d using 0:2:3:4:(0.6):xtic(1) with boxerrorbars lc rgb '#6699cc'\n"
			  "unset output\n",
			  index, index, row->row->title, row->row->unit,
			  max >= 10000 ? "%.1s %c" : "%g",
			  columns_with_values(row, r->n_columns) - 1);
}

int plots_script(const struct results *r, struct buf *out)
{
	int x = buf_puts(out, "set style fill solid 1\nunset key\n"
			      "set yrange [0:*]\nset errorbars lw 1.5 lc rgb '#333333'\n"
			      "set grid ytics lc rgb '#dddddd'\nset border 3\n"
			      "set tics nomirror\n");
	for (size_t i = 0; x == 0 && i < r->n_rows; i++)
		if (columns_with_values(&r->rows[i], r->n_columns) > 1)
			x = script_of_row(r, i, out);
	return x;
}

static int run_gnuplot(const struct results *r, struct runner *runner, const char *dir,
		       struct err *e)
{
	char program[PATH_MAX], script[PATH_MAX + 16];
	const char *path = getenv("PATH");
	if (path_find_program("gnuplot", path ? path : "/usr/bin:/bin", program, sizeof(program)) <
	    0)
		return err_set(e, -ENOENT,
			       "gnuplot is not installed (apt-get install gnuplot-nox)");
	snprintf(script, sizeof(script), "%s/plots.gp", dir);
	cleanup_buf struct buf text;
	cleanup_command struct command gnuplot;
	buf_init(&text, PLOTS_SCRIPT_MAX);
	command_init(&gnuplot);
	int x = plots_script(r, &text);
	if (x == 0)
		x = file_save_path(script, buf_data(&text), buf_len(&text), 0600);
	if (x < 0)
		return err_sys(e, x, "cannot write \"%s\"", script);
	x = command_words(&gnuplot, WORDS(program, "-c", script, dir), e);
	return x < 0 ? x : command_run(runner, &gnuplot, e);
}

/* The element without what is in front of it in a file. */
static char *read_plot(const char *dir, size_t index)
{
	char name[PATH_MAX + 32];
	cleanup_free char *text = NULL;
	snprintf(name, sizeof(name), "%s/plot-%zu.svg", dir, index);
	if (file_read_at(AT_FDCWD, name, PLOTS_SVG_MAX, &text, NULL) < 0)
		return NULL;
	const char *svg = strstr(text, "<svg");
	return svg ? strdup(svg) : NULL;
}

int plots_make(const struct results *r, struct runner *runner, const char *dir, char ***ret_plots,
	       struct err *e)
{
	int x = run_gnuplot(r, runner, dir, e);
	if (x < 0)
		return x;
	char **plots = calloc(RESULTS_ROWS_MAX, sizeof(*plots));
	if (!plots)
		return err_sys(e, -ENOMEM, "cannot read drawings");
	for (size_t i = 0; i < r->n_rows; i++)
		plots[i] = read_plot(dir, i);
	*ret_plots = plots;
	return 0;
}

void plots_free(char **plots)
{
	for (size_t i = 0; plots && i < RESULTS_ROWS_MAX; i++)
		free(plots[i]);
	free(plots);
}
