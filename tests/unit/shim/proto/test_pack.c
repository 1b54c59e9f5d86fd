/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/proto/pack.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"

static void test_time(void **state)
{
	Task__Timestamp t = proto_timestamp(INT64_C(1700000000123456789));
	(void)state;
	assert_int_equal(t.seconds, 1700000000);
	assert_int_equal(t.nanos, 123456789);
}

/* What is packed is read again; an empty message is no bytes, and some memory all the same. */
static void test_messages(void **state)
{
	Task__WaitResponse m;
	Task__Timestamp t = proto_timestamp(5);
	size_t len = 1;
	(void)state;
	task__wait_response__init(&m);
	uint8_t *bytes = proto_pack(&m.base, &len);
	assert_non_null(bytes);
	assert_int_equal(len, 0);
	free(bytes);
	m.exit_status = 7;
	m.exited_at = &t;
	bytes = proto_pack(&m.base, &len);
	assert_non_null(bytes);
	Task__WaitResponse *back = task__wait_response__unpack(NULL, len, bytes);
	assert_non_null(back);
	assert_int_equal(back->exit_status, 7);
	assert_int_equal(back->exited_at->nanos, 5);
	task__wait_response__free_unpacked(back, NULL);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_time),
		fixture_test(test_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
