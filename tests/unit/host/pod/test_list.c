/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "host/pod/pod.h"
#include "tests/support/fixture.h"

#define UUID_A "aaaaaaaa-0000-4000-8000-000000000001"
#define UUID_B "aaaaaaab-0000-4000-8000-000000000002"
#define UUID_C "cccccccc-0000-4000-8000-000000000003"

static struct pods *open_pods(void **state)
{
	struct pods *ps = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(pods_open(fixture_dir(state), true, &ps, &e), 0);
	return ps;
}

static void put(const struct pods *ps, enum pod_phase phase, const char *name)
{
	assert_int_equal(mkdirat(pods_phase_fd(ps, phase), name, 0750), 0);
}

static void test_sorted_and_filtered(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	struct err e = ERR_INIT;
	put(ps, POD_RUN, UUID_C);
	put(ps, POD_PREPARED, UUID_A);
	put(ps, POD_EXITED_GARBAGE, UUID_B);
	put(ps, POD_RUN, UUID_B); /* seen twice while it moved */
	put(ps, POD_RUN, "lost+found");
	put(ps, POD_EMBRYO, "dddddddd-0000-4000-8000-000000000004");
	put(ps, POD_GARBAGE, "eeeeeeee-0000-4000-8000-000000000005");
	assert_int_equal(pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &l, &e), 0);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.uuids[0].text, UUID_A);
	assert_string_equal(l.uuids[1].text, UUID_B);
	assert_string_equal(l.uuids[2].text, UUID_C);
}

static void test_resolve(void **state)
{
	static const struct {
		const char *prefix, *uuid, *error;
	} cases[] = {
		{ "", NULL, "UUID cannot be empty" },
		{ "c", UUID_C, NULL },
		{ "CCCC", UUID_C, NULL },
		{ UUID_A, UUID_A, NULL },
		{ "aaaaaaab", UUID_B, NULL },
		{ "aaaaaaa", NULL, "ambiguous uuid, 2 matches" },
		{ "d", NULL, "no matches found for \"d\"" },
		{ "..", NULL, "no matches found for \"..\"" },
		{ UUID_A "0", NULL, "no matches found for \"" UUID_A "0\"" },
		{ "c\n", NULL, "no matches found for \"c?\"" },
	};
	cleanup_pods struct pods *ps = open_pods(state);
	put(ps, POD_PREPARE, UUID_A);
	put(ps, POD_RUN, UUID_B);
	put(ps, POD_EXITED_GARBAGE, UUID_C);
	put(ps, POD_GARBAGE, "dddddddd-0000-4000-8000-000000000004");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		struct uuid uuid = { "untouched" };
		int r = pods_resolve(ps, cases[i].prefix, &uuid, &e);
		assert_int_equal(r == 0, cases[i].uuid != NULL);
		assert_string_equal(uuid.text, cases[i].uuid ? cases[i].uuid : "untouched");
		assert_string_equal(e.text, cases[i].error ? cases[i].error : "");
	}
}

/* Exactly the permitted number of pods is a listing; one more is an error. */
static void test_limit(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	struct pod_list less = POD_LIST_INIT;
	struct err e = ERR_INIT;
	put(ps, POD_RUN, UUID_A);
	put(ps, POD_RUN, UUID_B);
	put(ps, POD_PREPARED, UUID_C);
	assert_int_equal(pods_list(ps, POD_PHASES_VISIBLE, 3, &l, &e), 0);
	assert_int_equal(l.n, 3);
	assert_int_equal(pods_list(ps, POD_PHASES_VISIBLE, 2, &less, &e), -E2BIG);
	assert_null(less.uuids);
	assert_string_equal(e.text, "more than 2 pods in the data directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_sorted_and_filtered),
		fixture_test(test_resolve),
		fixture_test(test_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
