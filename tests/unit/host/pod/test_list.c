/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/os/file.h"
#include "lib/wire/stage1.h"
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

/* What pods_read_all() told: the first letter of each pod. */
struct seen {
	char letters[8], problems[8];
	size_t n, n_problems;
	int result;
};

static int see(void *ctx, const struct pod_info *info)
{
	struct seen *s = ctx;
	s->letters[s->n++] = info->uuid.text[0];
	return s->result;
}

static void see_problem(void *ctx, const struct uuid *uuid, const struct err *e)
{
	struct seen *s = ctx;
	assert_true(e->code < 0);
	s->problems[s->n_problems++] = uuid->text[0];
}

static void set_created(const struct pods *ps, enum pod_phase phase, const char *uuid, time_t when)
{
	const struct timespec times[2] = { { .tv_sec = when }, { .tv_sec = when } };
	char path[64];
	snprintf(path, sizeof(path), "%s/" POD_FILE_CREATED, uuid);
	assert_int_equal(file_touch_at(pods_phase_fd(ps, phase), path, 0640), 0);
	assert_int_equal(utimensat(pods_phase_fd(ps, phase), path, times, 0), 0);
}

/* The newest first, and those of which that is not known before them. */
static void test_read_all(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	struct err e = ERR_INIT;
	struct seen s = { .result = 0 };
	const struct pods_reader reader = { .pod = see, .problem = see_problem, .ctx = &s };
	assert_int_equal(pods_read_all(ps, &reader, &e), 0);
	assert_int_equal(s.n, 0);
	put(ps, POD_RUN, UUID_A);
	put(ps, POD_PREPARED, UUID_C);
	put(ps, POD_RUN, "bbbbbbbb-0000-4000-8000-000000000004");
	put(ps, POD_GARBAGE, "eeeeeeee-0000-4000-8000-000000000005");
	assert_int_equal(file_touch_at(pods_phase_fd(ps, POD_RUN),
				       "ffffffff-0000-4000-8000-000000000006", 0640),
			 0);
	set_created(ps, POD_RUN, UUID_A, 1000);
	set_created(ps, POD_PREPARED, UUID_C, 2000);
	assert_int_equal(pods_read_all(ps, &reader, &e), 0);
	assert_string_equal(s.letters, "bca");
	assert_string_equal(s.problems, "f");
	s = (struct seen){ .result = -EPIPE };
	assert_int_equal(pods_read_all(ps, &reader, &e), -EPIPE);
	assert_string_equal(s.letters, "b");
	assert_string_equal(e.text, "cannot list pods: Broken pipe");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_sorted_and_filtered),
		fixture_test(test_resolve),
		fixture_test(test_limit),
		fixture_test(test_read_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
