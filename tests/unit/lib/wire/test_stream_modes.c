/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/stream_modes.h"

#include <errno.h>

#include "tests/support/fixture.h"

static void test_names(void **state)
{
	(void)state;
	struct stream_modes m = { 0 };
	assert_null(stream_mode_name(STREAM_MODE_DEFAULT));
	for (int i = STREAM_MODE_LOG; i < STREAM_MODE_COUNT_; i++) {
		const char *name = stream_mode_name((enum stream_mode)i);
		assert_int_equal(stream_modes_set(&m, STREAM_ANN_STDOUT, name), 0);
		assert_int_equal(m.out, i);
		assert_int_equal(stream_modes_set(&m, STREAM_ANN_STDERR, name), 0);
		assert_int_equal(m.err, i);
		assert_int_equal(stream_modes_set(&m, STREAM_ANN_STDIN, name),
				 i == STREAM_MODE_LOG ? -EINVAL : 0);
	}
	assert_int_equal(stream_modes_set(&m, STREAM_ANN_STDOUT, ""), -EINVAL);
	assert_int_equal(stream_modes_set(&m, STREAM_ANN_STDOUT, "LOG"), -EINVAL);
	assert_int_equal(stream_modes_set(&m, "husk/other", "log"), -EINVAL);
}

static void test_combinations(void **state)
{
	(void)state;
	static const struct {
		struct stream_modes m;
		bool valid, tty, attach;
	} samples[] = {
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_DEFAULT, STREAM_MODE_DEFAULT },
		  true,
		  false,
		  false },
		{ { STREAM_MODE_NULL, STREAM_MODE_LOG, STREAM_MODE_NULL }, true, false, false },
		{ { STREAM_MODE_STREAM, STREAM_MODE_LOG, STREAM_MODE_NULL }, true, false, true },
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_STREAM, STREAM_MODE_DEFAULT },
		  true,
		  false,
		  true },
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_LOG, STREAM_MODE_STREAM }, true, false, true },
		{ { STREAM_MODE_TTY, STREAM_MODE_TTY, STREAM_MODE_TTY }, true, true, true },
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_TTY, STREAM_MODE_DEFAULT }, true, true, true },
		{ { STREAM_MODE_TTY, STREAM_MODE_LOG, STREAM_MODE_DEFAULT }, false, true, true },
		{ { STREAM_MODE_NULL, STREAM_MODE_TTY, STREAM_MODE_TTY }, false, true, true },
		{ { STREAM_MODE_STREAM, STREAM_MODE_DEFAULT, STREAM_MODE_TTY }, false, true, true },
		{ { STREAM_MODE_LOG, STREAM_MODE_DEFAULT, STREAM_MODE_DEFAULT },
		  false,
		  false,
		  false },
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const struct stream_modes *m = &samples[i].m;
		assert_int_equal(stream_modes_are_valid(m), samples[i].valid);
		assert_int_equal(stream_modes_have_tty(m), samples[i].tty);
		assert_int_equal(stream_modes_can_attach(m), samples[i].attach);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_names),
		fixture_test(test_combinations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
