/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/pod_logs.h"

#include "tests/support/fixture.h"

static void add(struct pod_tags *t, const char *text)
{
	assert_int_equal(pod_tags_add(&t->notes, text, NULL), 0);
}

/* All three, or nothing; what only begins like one of them is another. */
static void test_place(void **state)
{
	(void)state;
	CLEANUP(pod_tags_deinit) struct pod_tags pod, app;
	pod_tags_init(&pod);
	pod_tags_init(&app);
	assert_null(pod_log_place(&pod, &app).dir);
	add(&pod, POD_LOGS_ANN_DIR "=/var/log/pods");
	add(&pod, POD_LOGS_ANN_MODE "x=k8s-plain");
	assert_null(pod_log_place(&pod, &app).dir);
	add(&app, POD_LOGS_ANN_PATH "=a/0.log");
	assert_null(pod_log_place(&pod, &app).dir);
	add(&pod, POD_LOGS_ANN_MODE "=k8s-plain");
	assert_string_equal(pod_log_place(&pod, &app).dir, "/var/log/pods");
	assert_string_equal(pod_log_place(&pod, &app).path, "a/0.log");
	assert_null(pod_log_place(&pod, &pod).dir);
}

static void test_other_mode(void **state)
{
	(void)state;
	CLEANUP(pod_tags_deinit) struct pod_tags pod;
	pod_tags_init(&pod);
	add(&pod, POD_LOGS_ANN_MODE "=none");
	add(&pod, POD_LOGS_ANN_DIR "=/x");
	add(&pod, POD_LOGS_ANN_PATH "=y");
	assert_null(pod_log_place(&pod, &pod).dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_place),
		fixture_test(test_other_mode),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
