/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QEMU's side of QMP, in pieces: the first byte says how many bytes go in at once. Whatever comes
 * out satisfies its limits, and nothing grows.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "stage1-kvm/vmm/qemu/qmp.h"

/* A limit that does not hold is a crash, so that the fuzzer sees it. */
#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_message(const struct qmp_msg *m)
{
	MUST(m->kind <= QMP_EVENT);
	MUST(m->id >= -1 && m->id <= QMP_ID_MAX);
	MUST(memchr(m->name, '\0', sizeof(m->name)));
	MUST(memchr(m->text, '\0', sizeof(m->text)));
	MUST(m->kind != QMP_EVENT || m->name[0] != '\0');
	MUST(m->kind != QMP_RETURN || m->id >= 0);
}

/* Takes out all complete messages. False if the connection is useless. */
static int drain(struct qmp *q)
{
	for (;;) {
		CLEANUP(qmp_msg_deinit) struct qmp_msg m = { 0 };
		int r = qmp_next(q, &m);

		if (r == QMP_INCOMPLETE)
			return 1;
		if (r < 0)
			return 0;
		check_message(&m);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(qmp_deinit) struct qmp q;
	size_t step;

	qmp_init(&q);
	if (size == 0)
		return 0;
	step = data[0] ? data[0] : 1;
	for (size_t at = 1; at < size;) {
		size_t n = MIN(step, size - at);

		n = MIN(n, qmp_room(&q));
		MUST(n > 0);
		MUST(qmp_feed(&q, data + at, n) == 0);
		at += n;
		if (!drain(&q))
			break;
	}
	MUST(q.in.alloc <= QMP_LINE_MAX + 1);
	return 0;
}
