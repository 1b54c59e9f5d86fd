/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/cli/format/stats.h"
#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

#define SAMPLE_INTERVAL_NS (NS_PER_SEC / 4)
#define RATE_WINDOW_NS     (NS_PER_SEC / 2)       /* less says nothing about the rate */
#define LEFT_MAX_S         (UINT64_C(100) * 3600) /* longer is a guess of no use */
#define WIDTH_DEFAULT      ((size_t)80)           /* of terminals that do not tell */
#define WHAT_WIDTH_MIN     ((size_t)12) /* columns of the name before figures are left out */
#define FIGURES_MAX        ((size_t)96) /* percentage, two sizes, a rate, a time */

/* Copies the end of @what, cleaned. */
static void copy_what(char out[PROGRESS_WHAT_MAX + 1], const char *what)
{
	size_t len = strlen(what);
	str_copy_printable(out, PROGRESS_WHAT_MAX + 1, what + len - MIN(len, PROGRESS_WHAT_MAX));
}

/* The same with one column for each character: nobody knows how wide others are here. */
static void narrow_what(char out[PROGRESS_WHAT_MAX + 1], const char *what)
{
	size_t n = 0;
	for (; *what; what += str_chars_len(what, 1))
		out[n++] = *what < 0x20 || *what > 0x7e ? '?' : *what;
	out[n] = '\0';
}

static void add_sample(struct progress_track *t, int64_t now_ns)
{
	if (t->n_samples == PROGRESS_SAMPLES_MAX) {
		memmove(t->samples, t->samples + 1, sizeof(t->samples) - sizeof(t->samples[0]));
		t->n_samples--;
	}
	t->samples[t->n_samples].ns = now_ns;
	t->samples[t->n_samples].done = t->done;
	t->n_samples++;
}

void progress_track(struct progress_track *t, const struct fetch_progress *p, int64_t now_ns)
{
	if (t->n_samples == 0) {
		copy_what(t->what, p->what);
		t->start_ns = now_ns;
	}
	if (p->done < t->done) /* it starts over */
		t->n_samples = 0;
	t->done = p->done;
	t->total = p->total;
	if (t->n_samples == 0 || now_ns - t->samples[t->n_samples - 1].ns >= SAMPLE_INTERVAL_NS)
		add_sample(t, now_ns);
}

/* Bytes per second, lately. 0 if unknown. */
static uint64_t rate_of(const struct progress_track *t, int64_t now_ns)
{
	if (t->n_samples == 0 || now_ns - t->samples[0].ns < RATE_WINDOW_NS)
		return 0;
	double seconds = (double)(now_ns - t->samples[0].ns) / (double)NS_PER_SEC;
	return (uint64_t)((double)(t->done - t->samples[0].done) / seconds);
}

static void format_size(uint64_t bytes, char out[STATS_CELL_MAX])
{
	stats_size((int64_t)MIN(bytes, (uint64_t)INT64_MAX), out);
}

/* "5s", "3m05s", "2h05m". */
static void format_seconds(uint64_t s, char out[STATS_CELL_MAX])
{
	if (s < 60)
		snprintf(out, STATS_CELL_MAX, "%us", (unsigned)s);
	else if (s < 3600)
		snprintf(out, STATS_CELL_MAX, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else
		snprintf(out, STATS_CELL_MAX, "%lluh%02um", (unsigned long long)(s / 3600),
			 (unsigned)(s / 60 % 60));
}

/* What can be said in figures. */
struct figures {
	char percent[8]; /* "" if the total is unknown, as with the others */
	char done[STATS_CELL_MAX];
	char total[STATS_CELL_MAX];
	char rate[STATS_CELL_MAX];
	char left[STATS_CELL_MAX];
};

static void find_figures(const struct progress_track *t, int64_t now_ns, struct figures *f)
{
	uint64_t rate = rate_of(t, now_ns);
	*f = (struct figures){ .percent = "" };
	format_size(t->done, f->done);
	if (rate > 0)
		format_size(rate, f->rate);
	if (t->total == 0 || t->done > t->total)
		return;
	snprintf(f->percent, sizeof(f->percent), "%3u%%",
		 (unsigned)((double)t->done * 100 / (double)t->total));
	format_size(t->total, f->total);
	if (rate > 0 && (t->total - t->done) / rate < LEFT_MAX_S)
		format_seconds((t->total - t->done + rate - 1) / rate, f->left);
}

/* Writes the figures, the fewer the larger @less (0 to 3) is. */
static size_t write_figures(const struct figures *f, int less, char out[FIGURES_MAX])
{
	bool brief = less >= 3 && f->percent[0];
	bool total = less < 2 && f->total[0], rate = less < 2 && f->rate[0];
	bool left = less < 1 && f->left[0];
	snprintf(out, FIGURES_MAX, "%s%s%s%s%s%s%s%s%s", f->percent,
		 f->percent[0] && !brief ? "  " : "", brief ? "" : f->done, total ? "/" : "",
		 total ? f->total : "", rate ? "  " : "", rate ? f->rate : "", rate ? "/s" : "",
		 left ? "  " : "");
	size_t n = strlen(out);
	if (left)
		snprintf(out + n, FIGURES_MAX - n, "%s left", f->left);
	return strlen(out);
}

/*
 * Copies @what into @width columns: its end, if it does not fit, since that is where names differ.
 */
static void fit_what(const char *what, size_t width, char *out)
{
	size_t len = strlen(what), lost = len > width ? len - width : 0;
	size_t dots = lost > 0 ? MIN(width, (size_t)3) : 0;
	memset(out, ' ', width);
	memset(out, '.', dots);
	memcpy(out + dots, what + lost + dots, len - lost - dots);
	out[width] = '\0';
}

void progress_draw(const struct progress_track *t, int64_t now_ns, size_t width,
		   char out[PROGRESS_WIDTH_MAX + 1])
{
	struct figures f;
	char text[FIGURES_MAX], what[PROGRESS_WHAT_MAX + 1];
	narrow_what(what, t->what);
	size_t n = 0, want = MIN(strlen(what), WHAT_WIDTH_MIN);
	width = MIN(width, PROGRESS_WIDTH_MAX);
	find_figures(t, now_ns, &f);
	for (int less = 0; less <= 3; less++) {
		n = write_figures(&f, less, text);
		if (want + 2 + n <= width)
			break;
	}
	if (n + 2 >= width) {
		snprintf(out, PROGRESS_WIDTH_MAX + 1, "%.*s", (int)width, text);
		return;
	}
	fit_what(what, width - 2 - n, out);
	snprintf(out + width - 2 - n, PROGRESS_WIDTH_MAX + 1 - (width - 2 - n), "  %s", text);
}

void progress_sum_up(const struct progress_track *t, int64_t now_ns, char out[PROGRESS_TEXT_MAX])
{
	char size[STATS_CELL_MAX], time[STATS_CELL_MAX];
	int64_t ns = now_ns - t->start_ns;
	format_size(t->done, size);
	if (ns < 10 * NS_PER_SEC)
		snprintf(time, sizeof(time), "%u.%us", (unsigned)(ns / NS_PER_SEC),
			 (unsigned)(ns / (NS_PER_SEC / 10) % 10));
	else
		format_seconds((uint64_t)(ns / NS_PER_SEC), time);
	snprintf(out, PROGRESS_TEXT_MAX, "%s: %s in %s", t->what, size, time);
}

void progress_init(struct progress *g, int fd, bool notes)
{
	*g = (struct progress){ .fd = fd, .terminal = isatty(fd) == 1, .notes = notes };
}

/* The columns of the terminal, less one: a full line would wrap on some. */
static size_t terminal_width(int fd)
{
	struct winsize ws;
	if (ioctl(fd, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
		return WIDTH_DEFAULT - 1;
	return (size_t)ws.ws_col - 1;
}

void progress_clear(struct progress *g)
{
	char blank[PROGRESS_WIDTH_MAX + 3];
	if (g->drawn == 0)
		return;
	blank[0] = blank[g->drawn + 1] = '\r';
	memset(blank + 1, ' ', g->drawn);
	(void)fd_write_all(g->fd, blank, g->drawn + 2);
	g->drawn = 0;
}

/* Draws the line of @t over the one that stands there. */
static void redraw(struct progress *g, const struct progress_track *t, int64_t now_ns)
{
	char line[PROGRESS_WIDTH_MAX + 1], out[PROGRESS_WIDTH_MAX + 2];
	size_t width = terminal_width(g->fd);
	/* A terminal that became narrower has wrapped the old line: what is left of it stays. */
	size_t pad = MIN(g->drawn, width);
	progress_draw(t, now_ns, width, line);
	snprintf(out, sizeof(out), "\r%-*s", (int)pad, line);
	(void)fd_write_all(g->fd, out, strlen(out));
	g->drawn = strlen(out) - 1;
}

static void print_line(struct progress *g, const char *text)
{
	progress_clear(g);
	(void)fd_write_all(g->fd, text, strlen(text));
	(void)fd_write_all(g->fd, "\n", 1);
}

void progress_note(void *ctx, const char *text)
{
	struct progress *g = ctx;
	struct err printable = ERR_INIT;
	if (!g->notes)
		return;
	err_set(&printable, -EINVAL, "%s", text); /* makes it printable */
	print_line(g, printable.text);
}

/* The transfer of this name, a free place for it, or NULL. */
static struct progress_track *find_track(struct progress *g, const char *what)
{
	char clean[PROGRESS_WHAT_MAX + 1];
	struct progress_track *unused = NULL;
	copy_what(clean, what);
	for (size_t i = 0; i < PROGRESS_TRACKS_MAX; i++) {
		if (g->tracks[i].n_samples > 0 && strcmp(g->tracks[i].what, clean) == 0)
			return &g->tracks[i];
		if (g->tracks[i].n_samples == 0 && !unused)
			unused = &g->tracks[i];
	}
	return unused;
}

/* The last line of a transfer, which then is none any more. */
static void progress_finish(struct progress *g, struct progress_track *t, bool failed,
			    int64_t now_ns)
{
	char text[PROGRESS_TEXT_MAX];
	progress_sum_up(t, now_ns, text);
	if (failed)
		progress_clear(g);
	else
		print_line(g, text);
	*t = (struct progress_track){ .n_samples = 0 };
}

void progress_show(void *ctx, const struct fetch_progress *p)
{
	struct progress *g = ctx;
	int64_t now_ns = clock_monotonic_ns();
	struct progress_track *t = find_track(g, p->what);
	if (!t)
		return;
	progress_track(t, p, now_ns);
	if (p->ended)
		progress_finish(g, t, p->failed, now_ns);
	else if (g->terminal)
		redraw(g, t, now_ns);
}
