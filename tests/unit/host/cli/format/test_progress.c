/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/format/progress.h"

#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define SEC NS_PER_SEC

/* A transfer of @total bytes, at @rate bytes per second, after @seconds. */
static void advance(struct progress_track *t, const char *what, uint64_t total, uint64_t rate,
		    unsigned seconds)
{
	memset(t, 0, sizeof(*t));
	for (unsigned i = 0; i <= 4 * seconds; i++) {
		const struct fetch_progress p = {
			.what = what,
			.done = rate * i / 4,
			.total = total,
		};
		progress_track(t, &p, SEC + i * (SEC / 4));
	}
}

static void assert_drawn(const struct progress_track *t, unsigned seconds, size_t width,
			 const char *want)
{
	char line[PROGRESS_WIDTH_MAX + 1];
	progress_draw(t, SEC + seconds * SEC, width, line);
	assert_string_equal(line, want);
}

static void test_widths(void **state)
{
	static const struct {
		size_t width;
		const char *line;
	} lines[] = {
		{ 79,
		  "https://example.com/app.aci               20%  20MiB/100MiB  5.0MiB/s  16s left" },
		{ 60, "...ample.com/app.aci   20%  20MiB/100MiB  5.0MiB/s  16s left" },
		{ 50, "...ample.com/app.aci   20%  20MiB/100MiB  5.0MiB/s" },
		{ 40, "https://example.com/app.aci   20%  20MiB" },
		{ 30, "...le.com/app.aci   20%  20MiB" },
		{ 20, "...com/app.aci   20%" },
		{ 10, "...i   20%" },
		{ 7, ".   20%" },
		{ 6, " 20%" },
		{ 3, " 20" },
		{ 1, " " },
		{ 0, "" },
	};
	struct progress_track t;
	(void)state;
	advance(&t, "https://example.com/app.aci", 100 * MIB, 5 * MIB, 4);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_drawn(&t, 4, lines[i].width, lines[i].line);
}

static void test_width_limit(void **state)
{
	struct progress_track t;
	char what[PROGRESS_WHAT_MAX + 2], line[PROGRESS_WIDTH_MAX + 1];
	(void)state;
	memset(what, 'x', sizeof(what));
	what[PROGRESS_WHAT_MAX + 1] = '\0';
	what[0] = '<';
	advance(&t, what + 1, 10, 1, 1);
	assert_string_equal(t.what, what + 1);
	advance(&t, what, 10, 1, 1);
	assert_string_equal(t.what, what + 1);
	for (size_t width = 0; width < 3 * PROGRESS_WIDTH_MAX; width++) {
		progress_draw(&t, 2 * SEC, width, line);
		assert_true(strlen(line) <= width && strlen(line) <= PROGRESS_WIDTH_MAX);
	}
	assert_int_equal(strlen(line), PROGRESS_WIDTH_MAX);
}

static void test_unknown(void **state)
{
	struct progress_track t;
	(void)state;
	advance(&t, "layer", 0, 3 * KIB, 2);
	assert_drawn(&t, 2, 40, "layer                   6.0KiB  3.0KiB/s");
	assert_drawn(&t, 2, 20, "layer         6.0KiB");
	assert_drawn(&t, 2, 10, "..  6.0KiB");
	/* No rate yet. */
	advance(&t, "layer", 2 * MIB, 0, 0);
	assert_drawn(&t, 0, 40, "layer                      0%  0B/2.0MiB");
	/* More than there should be. */
	advance(&t, "layer", 5, 10, 1);
	assert_drawn(&t, 1, 40, "layer                         10B  10B/s");
	/* Nothing comes any more. */
	advance(&t, "layer", 2 * MIB, 0, 5);
	assert_drawn(&t, 5, 40, "layer                      0%  0B/2.0MiB");
	/* It will take for ever, or as good as that. */
	advance(&t, "layer", KIB * KIB * MIB, MIB, 2);
	assert_drawn(&t, 2, 60, "layer                            0%  2.0MiB/1.0TiB  1.0MiB/s");
	advance(&t, "x", UINT64_MAX, 1, 2);
	assert_drawn(&t, 2, 40, "x                    0%  2B/7.9EiB  1B/s");
}

static void test_time_left(void **state)
{
	static const struct {
		uint64_t total;
		const char *left;
	} cases[] = {
		{ 2, "0s left" },          { 3, "1s left" },        { 61, "59s left" },
		{ 62, "1m00s left" },      { 3601, "59m59s left" }, { 3602, "1h00m left" },
		{ 360001, "99h59m left" }, { 360002, "B/s" },
	};
	struct progress_track t;
	char line[PROGRESS_WIDTH_MAX + 1];
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		advance(&t, "x", cases[i].total, 1, 2);
		progress_draw(&t, 3 * SEC, 79, line);
		if (strcmp(line + strlen(line) - strlen(cases[i].left), cases[i].left) != 0)
			fail_msg("%s: %s", cases[i].left, line);
	}
}

/* The rate is that of the last seconds, not of all. */
static void test_rate(void **state)
{
	struct progress_track t;
	struct fetch_progress p = { .what = "x", .done = 500 * MIB };
	int64_t now = 0;
	(void)state;
	memset(&t, 0, sizeof(t));
	progress_track(&t, &p, now); /* resumed there */
	for (int i = 0; i < 100; i++) {
		now += SEC / 10;
		p.done += MIB;
		progress_track(&t, &p, now);
	}
	char line[PROGRESS_WIDTH_MAX + 1];
	progress_draw(&t, now, 40, line);
	assert_string_equal(line, "x                        600MiB  10MiB/s");
	for (int i = 0; i < 100; i++) {
		now += SEC / 10;
		p.done += KIB;
		progress_track(&t, &p, now);
	}
	progress_draw(&t, now, 40, line);
	assert_string_equal(line, "x                        600MiB  10KiB/s");
	/* From the beginning. */
	p.done = 100 * KIB;
	progress_track(&t, &p, now);
	progress_draw(&t, now + SEC, 40, line);
	assert_string_equal(line, "x                                 100KiB");
}

static void test_sum_up(void **state)
{
	struct progress_track t;
	char text[PROGRESS_TEXT_MAX];
	(void)state;
	advance(&t, "layer", 0, 3 * KIB, 2);
	progress_sum_up(&t, 3 * SEC, text);
	assert_string_equal(text, "layer: 6.0KiB in 2.0s");
	progress_sum_up(&t, SEC + 9 * SEC + SEC * 99 / 100, text);
	assert_string_equal(text, "layer: 6.0KiB in 9.9s");
	progress_sum_up(&t, 11 * SEC, text);
	assert_string_equal(text, "layer: 6.0KiB in 10s");
	progress_sum_up(&t, 7501 * SEC, text);
	assert_string_equal(text, "layer: 6.0KiB in 2h05m");
}

static void test_hostile_name(void **state)
{
	struct progress_track t;
	char line[PROGRESS_WIDTH_MAX + 1], text[PROGRESS_TEXT_MAX];
	(void)state;
	advance(&t, "a\033[2Jb\r\n\xc3\xa9\x9b", 10, 1, 0);
	assert_string_equal(t.what, "a?[2Jb??\xc3\xa9?");
	/* A line that is drawn over must have as many columns as are counted. */
	progress_draw(&t, 0, 40, line);
	assert_int_equal(strncmp(line, "a?[2Jb???? ", 11), 0);
	assert_true(strlen(line) <= 40);
	progress_sum_up(&t, 0, text);
	assert_int_equal(strncmp(text, "a?[2Jb??\xc3\xa9?: ", 13), 0);
}

/* Everything that was written to @fd. */
static const char *read_text(int fd)
{
	static char text[4096];
	size_t n = 0;
	ssize_t got;
	fd_set_nonblock(fd, true);
	while ((got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	return text;
}

static void show(struct progress *g, const char *what, uint64_t done, bool ended, bool failed)
{
	const struct fetch_progress p = {
		.what = what,
		.done = done,
		.total = 1000,
		.ended = ended,
		.failed = failed,
	};
	progress_show(g, &p);
}

static void test_no_terminal(void **state)
{
	int ends[2];
	struct progress g;
	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	progress_init(&g, ends[1], false);
	show(&g, "a", 10, false, false);
	show(&g, "b", 10, false, false);
	progress_note(&g, "quiet");
	assert_string_equal(read_text(ends[0]), "");
	show(&g, "a", 100, true, false);
	assert_string_equal(read_text(ends[0]), "a: 100B in 0.0s\n");
	show(&g, "b", 10, true, true);
	progress_clear(&g);
	assert_string_equal(read_text(ends[0]), "");
	progress_init(&g, ends[1], true);
	progress_note(&g, "a\nnote");
	assert_string_equal(read_text(ends[0]), "a?note\n");
	fd_close(ends[0]);
	fd_close(ends[1]);
}

/* A terminal of @columns that hands through what is written. */
static void open_terminal(int *ret_ours, int *ret_terminal, unsigned short columns)
{
	struct termios raw;
	const struct winsize size = { .ws_row = 10, .ws_col = columns };
	assert_int_equal(openpty(ret_ours, ret_terminal, NULL, NULL, &size), 0);
	assert_int_equal(tcgetattr(*ret_terminal, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(*ret_terminal, TCSANOW, &raw), 0);
}

static void test_terminal(void **state)
{
	int ours, terminal;
	struct progress g;
	(void)state;
	open_terminal(&ours, &terminal, 31);
	progress_init(&g, terminal, true);
	show(&g, "a", 10, false, false);
	assert_string_equal(read_text(ours), "\ra                1%  10B/1000B");
	/* Another one takes the line over. */
	show(&g, "bb", 500, false, false);
	assert_string_equal(read_text(ours), "\rbb             50%  500B/1000B");
	/* The terminal became narrower. */
	const struct winsize size = { .ws_row = 10, .ws_col = 11 };
	assert_int_equal(ioctl(ours, TIOCSWINSZ, &size), 0);
	show(&g, "bb", 600, false, false);
	assert_string_equal(read_text(ours), "\rbb     60%");
	progress_note(&g, "note");
	assert_string_equal(read_text(ours), "\r          \rnote\n");
	show(&g, "bb", 700, false, false);
	assert_string_equal(read_text(ours), "\rbb     70%");
	progress_clear(&g);
	assert_string_equal(read_text(ours), "\r          \r");
	progress_clear(&g);
	assert_string_equal(read_text(ours), "");
	show(&g, "bb", 800, false, false);
	show(&g, "bb", 1000, true, false);
	assert_string_equal(read_text(ours), "\rbb     80%\r          \rbb: 1000B in 0.0s\n");
	show(&g, "a", 20, false, false);
	show(&g, "a", 20, true, true);
	assert_string_equal(read_text(ours), "\ra       2%\r          \r");
	fd_close(ours);
	fd_close(terminal);
}

/* A terminal that does not tell its size; a line that becomes shorter. */
static void test_plain_terminal(void **state)
{
	int ours, terminal;
	struct progress g;
	(void)state;
	open_terminal(&ours, &terminal, 0);
	progress_init(&g, terminal, false);
	show(&g, "a", 10, false, false);
	assert_int_equal(strlen(read_text(ours)), 1 + 79);
	const struct winsize size = { .ws_row = 10, .ws_col = 7 };
	assert_int_equal(ioctl(ours, TIOCSWINSZ, &size), 0);
	show(&g, "a", 10, false, false);
	assert_string_equal(read_text(ours), "\r  1%  ");
	fd_close(ours);
	fd_close(terminal);
}

static void test_tracks_limit(void **state)
{
	int ends[2];
	struct progress g;
	char what[8];
	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	progress_init(&g, ends[1], false);
	for (size_t i = 0; i <= PROGRESS_TRACKS_MAX; i++) {
		snprintf(what, sizeof(what), "%zu", i);
		show(&g, what, 1, false, false);
	}
	show(&g, what, 1, true, false); /* one too many: nothing is said of it */
	assert_string_equal(read_text(ends[0]), "");
	show(&g, "0", 1, true, false);
	show(&g, what, 1, true, false);
	assert_string_equal(read_text(ends[0]), "0: 1B in 0.0s\n8: 1B in 0.0s\n");
	fd_close(ends[0]);
	fd_close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_widths),       fixture_test(test_width_limit),
		fixture_test(test_unknown),      fixture_test(test_time_left),
		fixture_test(test_rate),         fixture_test(test_sum_up),
		fixture_test(test_hostile_name), fixture_test(test_no_terminal),
		fixture_test(test_terminal),     fixture_test(test_plain_terminal),
		fixture_test(test_tracks_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
