/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/timeline.h"

#include "lib/os/clock.h"

static const char *const mark_names[MARK_COUNT_] = {
	[MARK_STAGE1] = "stage1 started",
	[MARK_PLANNED] = "VM planned",
	[MARK_SPAWNED] = "QEMU spawned",
	[MARK_QMP] = "QMP up",
	[MARK_KERNEL] = "first kernel line",
	[MARK_AGENT] = "agent up",
	[MARK_APP_STARTED] = "app started",
	[MARK_APP_EXITED] = "app exited",
	[MARK_APP_OUTPUT] = "output delivered",
	[MARK_GUEST_DOWN] = "guest down",
	[MARK_VM_GONE] = "VM gone",
};

void timeline_init(struct timeline *t, int64_t start_ns)
{
	*t = (struct timeline){ .start_ns = start_ns };
}

void timeline_reach(struct timeline *t, enum timeline_mark mark)
{
	if (t->at_ns[mark] == 0)
		t->at_ns[mark] = clock_monotonic_ns();
}

static double ms(int64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

void timeline_print(const struct timeline *t, FILE *out)
{
	int64_t before = t->start_ns;
	fprintf(out, "timeline: %9s %9s  %s\n", "ms", "step", "event");
	for (int i = 0; i < MARK_COUNT_; i++) {
		if (t->at_ns[i] == 0)
			continue;
		fprintf(out, "timeline: %9.1f %9.1f  %s\n", ms(t->at_ns[i] - t->start_ns),
			ms(t->at_ns[i] - before), mark_names[i]);
		before = t->at_ns[i];
	}
}
