/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/timeline.h"

#include <string.h>

#include "lib/os/clock.h"

void timeline_init(struct timeline *t, int64_t start_ns)
{
	*t = (struct timeline){ .start_ns = start_ns };
}

void timeline_reach(struct timeline *t, const char *name)
{
	for (size_t i = 0; i < t->n_marks; i++)
		if (strcmp(t->marks[i].name, name) == 0)
			return;
	if (t->n_marks == TIMELINE_MARKS_MAX)
		return;
	t->marks[t->n_marks].name = name;
	t->marks[t->n_marks].at_ns = clock_monotonic_ns();
	t->n_marks++;
}

static double ms(int64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

void timeline_print(const struct timeline *t, FILE *out)
{
	int64_t before = t->start_ns;
	fprintf(out, "timeline: %9s %9s  %s\n", "ms", "step", "event");
	for (size_t i = 0; i < t->n_marks; i++) {
		int64_t at = t->marks[i].at_ns;
		fprintf(out, "timeline: %9.1f %9.1f  %s\n", ms(at - t->start_ns), ms(at - before),
			t->marks[i].name);
		before = at;
	}
}
