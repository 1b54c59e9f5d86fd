/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/common/options.h"

#include <string.h>

#include "lib/base/err.h"
#include "lib/os/clock.h"
#include "tests/support/cmocka.h"

struct heard {
	uint64_t done;
	unsigned calls;
	bool ended;
	size_t len;
};

static void hear_progress(void *ctx, const struct fetch_progress *p)
{
	struct heard *h = ctx;
	h->done = p->done;
	h->calls++;
	h->ended = p->ended;
}

static void hear_note(void *ctx, const char *text)
{
	struct heard *h = ctx;
	h->len = strlen(text);
}

static void test_heard(void **state)
{
	(void)state;
	struct heard h = { 0 };
	const struct fetch_options o = { .progress = hear_progress, .note = hear_note, .ctx = &h };
	char text[ERR_TEXT_MAX + 1];
	fetch_tell(&o, &(struct fetch_progress){ .what = "x", .done = 7 });
	assert_int_equal(h.done, 7);
	fetch_note(&o, "%d bytes", 12);
	assert_int_equal(h.len, strlen("image: 12 bytes"));
	memset(text, 'x', ERR_TEXT_MAX);
	text[ERR_TEXT_MAX] = '\0';
	fetch_note(&o, "%s", text);
	assert_int_equal(h.len, ERR_TEXT_MAX - 1);
}

/* However often something is done, it is told ten times a second, and its end. */
static void test_meter(void **state)
{
	(void)state;
	struct heard h = { 0 };
	const struct fetch_options o = { .progress = hear_progress, .ctx = &h };
	struct fetch_meter m;
	fetch_meter_begin(&m, &o, "layer", 100000);
	int64_t start = clock_monotonic_ns();
	for (uint64_t i = 0; i < 100000; i++)
		fetch_meter_update(&m, i);
	int64_t took = clock_monotonic_ns() - start;
	assert_true(h.calls <= (uint64_t)(took * 10 / NS_PER_SEC) + 1);
	m.told_ns -= NS_PER_SEC;
	fetch_meter_update(&m, 7);
	assert_int_equal(h.done, 7);
	assert_false(h.ended);
	fetch_meter_end(&m);
	assert_true(h.ended);
	assert_int_equal(h.done, 7);
}

static void test_nobody_listens(void **state)
{
	(void)state;
	const struct fetch_options o = { 0 };
	fetch_tell(&o, &(struct fetch_progress){ .what = "x" });
	fetch_note(&o, "%s", "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heard),
		cmocka_unit_test(test_meter),
		cmocka_unit_test(test_nobody_listens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
