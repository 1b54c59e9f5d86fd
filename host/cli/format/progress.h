/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far downloads and conversions are, on stderr: the functions for struct fetch_options.
 *
 * On a terminal the transfer that was told of last has one line, which is redrawn in place; when it
 * ends the line says what came in which time, and stays. Elsewhere there is only that last line. A
 * transfer that fails leaves no line, since an error follows.
 *
 * What a line says is pure: progress_track(), progress_draw(), progress_sum_up().
 */
#ifndef HOST_CLI_FORMAT_PROGRESS_H
#define HOST_CLI_FORMAT_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/images.h"

/*
 * Longest name of a transfer that is kept; longer ones lose their beginning. A shown URL has 300.
 */
#define PROGRESS_WHAT_MAX ((size_t)400)
/* Widest line that is drawn, in columns; wider terminals are not filled. */
#define PROGRESS_WIDTH_MAX ((size_t)160)
/* Room for a last line: the name, a size, a time. */
#define PROGRESS_TEXT_MAX (PROGRESS_WHAT_MAX + 64)
/* Points in time that are remembered for the rate: a quarter of a second apart, five seconds. */
#define PROGRESS_SAMPLES_MAX ((size_t)20)
/* Transfers under way at a time: the layers of an image are fetched one by one, a few ahead. */
#define PROGRESS_TRACKS_MAX ((size_t)8)

/* One transfer. */
struct progress_track {
	char what[PROGRESS_WHAT_MAX + 1]; /* str_is_text(); "": no transfer */
	int64_t start_ns;
	uint64_t done, total; /* bytes; a total of 0 is unknown */
	struct {
		int64_t ns;
		uint64_t done;
	} samples[PROGRESS_SAMPLES_MAX]; /* the newest at [n_samples - 1] */
	size_t n_samples;
};

/* Where lines are drawn. */
struct progress {
	int fd;
	bool terminal; /* lines are redrawn */
	bool notes;    /* they are printed */
	struct progress_track tracks[PROGRESS_TRACKS_MAX];
	size_t drawn; /* columns of the line that stands there unfinished */
};

/*
 * Takes in what a transfer tells at @now_ns (CLOCK_MONOTONIC). The first time *t is zero. What of
 * the name is no printable UTF-8 becomes '?', so that a server cannot steer the terminal.
 */
void progress_track(struct progress_track *t, const struct fetch_progress *p, int64_t now_ns);

/*
 * The line for @t at @now_ns, of at most @width (and PROGRESS_WIDTH_MAX) columns. Of the name it
 * has ASCII alone, with a '?' for each other character.
 */
void progress_draw(const struct progress_track *t, int64_t now_ns, size_t width,
		   char out[PROGRESS_WIDTH_MAX + 1]);

/* The last line for @t that ended at @now_ns: "WHAT: SIZE in TIME". */
void progress_sum_up(const struct progress_track *t, int64_t now_ns, char out[PROGRESS_TEXT_MAX]);

/*
 * Draws on @fd, which is borrowed. It redraws lines if that is a terminal. @notes: notes are
 * printed.
 */
void progress_init(struct progress *g, int fd, bool notes);

/* fetch_options.progress; @ctx is a struct progress. What cannot be written is lost. */
void progress_show(void *ctx, const struct fetch_progress *p);

/* fetch_options.note; @ctx is a struct progress. Prints @text as a line of its own. */
void progress_note(void *ctx, const char *text);

/*
 * Removes the line that stands there unfinished. To be called before anything else goes to the
 * terminal.
 */
void progress_clear(struct progress *g);

#endif
