/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"

#define BAR_COLUMNS 20
#define LINE_MAX_   256 /* a wide terminal; wider ones are not filled */

void progress_init(struct progress *p, unsigned total)
{
	*p = (struct progress){ .terminal = isatty(STDERR_FILENO) == 1,
				.start_ns = clock_monotonic_ns(),
				.total = MAX(total, 1U) };
}

void progress_format(const struct progress *p, int64_t elapsed_s, const char *text,
		     unsigned columns, char *out, unsigned size)
{
	char bar[BAR_COLUMNS + 1], left[48] = "";
	unsigned done = MIN(p->done, p->total);
	for (unsigned i = 0; i < BAR_COLUMNS; i++)
		bar[i] = i * p->total < done * BAR_COLUMNS ? '#' : '.';
	bar[BAR_COLUMNS] = '\0';
	if (done > 0 && elapsed_s >= 1) {
		int64_t s = elapsed_s * (p->total - done) / done;
		snprintf(left, sizeof(left), ", %lld min %02lld s left", (long long)(s / 60),
			 (long long)(s % 60));
	}
	snprintf(out, MIN(size, columns), "[%s] %3u %%%s: %s", bar, 100 * done / p->total, left,
		 text);
}

void progress_say(const struct progress *p, const char *text)
{
	char line[LINE_MAX_];
	struct winsize window = { 0 };
	unsigned columns = 80;
	if (!p->terminal) {
		fprintf(stderr, "husk-bench: %3u %%: %s\n", 100 * p->done / p->total, text);
		return;
	}
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
		columns = window.ws_col;
	progress_format(p, (clock_monotonic_ns() - p->start_ns) / NS_PER_SEC, text, columns, line,
			sizeof(line));
	fprintf(stderr, "\r\033[K%s", line);
}

void progress_add(struct progress *p, unsigned weight)
{
	p->done = MIN(p->done + weight, p->total);
}

void progress_end(const struct progress *p)
{
	if (p->terminal)
		fputs("\r\033[K", stderr);
}
