/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/pod.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "tests/support/fixture.h"

#define SOME_UUID "12345678-1234-4123-8123-123456789abc"

static struct pods *open_pods(void **state)
{
	struct pods *ps = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(pods_open(fixture_dir(state), true, &ps, &e), 0);
	return ps;
}

static bool is_in(const struct pods *ps, enum pod_phase phase, const char *uuid)
{
	struct stat st;
	return fstatat(pods_phase_fd(ps, phase), uuid, &st, 0) == 0;
}

/* A pod of phase @phase, made by the transitions only, locked by us. */
static struct pod make_pod(struct pods *ps, enum pod_phase phase)
{
	struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	assert_int_equal(pod_create(ps, true, &p, &e), 0);
	if (phase == POD_PREPARED) {
		assert_int_equal(pod_finish_prepare(ps, &p, &e), 0);
		assert_int_equal(pod_try_lock(ps, &p, &e), 0);
	}
	if (phase == POD_RUN || phase == POD_EXITED_GARBAGE)
		assert_int_equal(pod_start(ps, &p, &e), 0);
	if (phase == POD_EXITED_GARBAGE)
		assert_int_equal(pod_mark_exited(ps, &p, &e), 0);
	if (phase == POD_GARBAGE)
		assert_int_equal(pod_discard(ps, &p, &e), 0);
	assert_int_equal(p.phase, phase);
	assert_true(is_in(ps, phase, p.uuid.text));
	return p;
}

static void test_table(void **state)
{
	(void)state;
	static const bool allowed[POD_PHASE_COUNT_][POD_PHASE_COUNT_] = {
		[POD_EMBRYO] = { [POD_PREPARE] = true, [POD_GARBAGE] = true },
		[POD_PREPARE] = { [POD_PREPARED] = true, [POD_RUN] = true, [POD_GARBAGE] = true },
		[POD_PREPARED] = { [POD_RUN] = true, [POD_GARBAGE] = true },
		[POD_RUN] = { [POD_EXITED_GARBAGE] = true },
	};
	for (enum pod_phase from = 0; from < POD_PHASE_COUNT_; from++)
		for (enum pod_phase to = 0; to < POD_PHASE_COUNT_; to++)
			assert_int_equal(pod_transition_allowed(from, to), allowed[from][to]);
}

static void test_state_names(void **state)
{
	(void)state;
	static const struct {
		enum pod_phase phase;
		const char *unlocked, *locked;
	} names[] = {
		{ POD_EMBRYO, "embryo", "embryo" },
		{ POD_PREPARE, "aborted prepare", "preparing" },
		{ POD_PREPARED, "prepared", "prepared" },
		{ POD_RUN, "exited", "running" },
		{ POD_EXITED_GARBAGE, "exited garbage", "exited deleting" },
		{ POD_GARBAGE, "garbage", "deleting" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_string_equal(pod_state_name(pod_state_of(names[i].phase, false)),
				    names[i].unlocked);
		assert_string_equal(pod_state_name(pod_state_of(names[i].phase, true)),
				    names[i].locked);
	}
}

static void test_create(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	cleanup_pod struct pod p = make_pod(ps, POD_PREPARE);
	struct stat st;
	assert_true(uuid_is_valid(p.uuid.text));
	assert_true(p.locked && p.lock_is_ours);
	assert_int_equal(fstat(p.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777 & ~0750, 0);
	assert_false(is_in(ps, POD_EMBRYO, p.uuid.text));
}

static void test_open_finds_and_probes(void **state)
{
	static const struct {
		enum pod_phase phase;
		enum pod_state locked, unlocked;
	} cases[] = {
		{ POD_PREPARE, POD_STATE_PREPARING, POD_STATE_ABORTED_PREPARE },
		{ POD_PREPARED, POD_STATE_PREPARED, POD_STATE_PREPARED },
		{ POD_RUN, POD_STATE_RUNNING, POD_STATE_EXITED },
		{ POD_EXITED_GARBAGE, POD_STATE_EXITED_DELETING, POD_STATE_EXITED_GARBAGE },
		{ POD_GARBAGE, POD_STATE_DELETING, POD_STATE_GARBAGE },
	};
	cleanup_pods struct pods *ps = open_pods(state);
	struct err e = ERR_INIT;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pod p = make_pod(ps, cases[i].phase);
		struct uuid uuid = p.uuid;
		cleanup_pod struct pod locked = POD_INIT;
		assert_int_equal(pod_open(ps, uuid.text, &locked, &e), 0);
		assert_int_equal(pod_state_of(locked.phase, locked.locked), cases[i].locked);
		assert_int_equal(pod_try_lock(ps, &locked, &e), POD_BUSY);
		pod_deinit(&p);
		cleanup_pod struct pod unlocked = POD_INIT;
		assert_int_equal(pod_open(ps, uuid.text, &unlocked, &e), 0);
		assert_int_equal(pod_state_of(unlocked.phase, unlocked.locked), cases[i].unlocked);
		/* The probe took nothing away: the lock is free. */
		assert_int_equal(pod_try_lock(ps, &unlocked, &e), 0);
	}
	struct pod none = POD_INIT;
	assert_int_equal(pod_open(ps, SOME_UUID, &none, &e), POD_GONE);
	assert_int_equal(pod_open(ps, "../prepare", &none, &e), POD_GONE);
	assert_int_equal(none.fd, -EBADF);
}

typedef int (*transition_fn)(struct pods *, struct pod *, struct err *);

/* From every phase: the transition works exactly where the table allows it. */
static void check_transition(void **state, transition_fn fn, enum pod_phase to)
{
	cleanup_pods struct pods *ps = open_pods(state);
	for (enum pod_phase from = POD_PREPARE; from < POD_PHASE_COUNT_; from++) {
		struct err e = ERR_INIT;
		cleanup_pod struct pod p = make_pod(ps, from);
		int r = fn(ps, &p, &e);
		if (pod_transition_allowed(from, to)) {
			assert_int_equal(r, 0);
			assert_int_equal(p.phase, to);
			assert_true(is_in(ps, to, p.uuid.text));
			assert_false(is_in(ps, from, p.uuid.text));
			assert_int_equal(p.lock_is_ours, to != POD_PREPARED);
		} else {
			char want[ERR_TEXT_MAX];
			snprintf(want, sizeof(want), "pod \"%s\" cannot go from phase %s to %s",
				 p.uuid.text, pod_phase_name(from), pod_phase_name(to));
			assert_int_equal(r, -EINVAL);
			assert_string_equal(e.text, want);
			assert_true(is_in(ps, from, p.uuid.text));
		}
	}
}

static void test_finish_prepare(void **state)
{
	check_transition(state, pod_finish_prepare, POD_PREPARED);
}

static void test_start(void **state)
{
	check_transition(state, pod_start, POD_RUN);
}

static void test_mark_exited(void **state)
{
	check_transition(state, pod_mark_exited, POD_EXITED_GARBAGE);
}

static void test_discard(void **state)
{
	check_transition(state, pod_discard, POD_GARBAGE);
}

static void test_transition_needs_lock(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	struct err e = ERR_INIT;
	struct pod p = make_pod(ps, POD_RUN);
	struct uuid uuid = p.uuid;
	pod_deinit(&p);
	cleanup_pod struct pod unlocked = POD_INIT;
	assert_int_equal(pod_open(ps, uuid.text, &unlocked, &e), 0);
	assert_int_equal(pod_mark_exited(ps, &unlocked, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not locked by this process"));
	assert_true(is_in(ps, POD_RUN, uuid.text));
}

/* Somebody else moved the pod on: whoever comes second hears POD_GONE and changes nothing. */
static void test_loser_of_a_race(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	struct err e = ERR_INIT;
	cleanup_pod struct pod p = make_pod(ps, POD_RUN);
	assert_int_equal(renameat(pods_phase_fd(ps, POD_RUN), p.uuid.text,
				  pods_phase_fd(ps, POD_EXITED_GARBAGE), p.uuid.text),
			 0);
	assert_int_equal(pod_mark_exited(ps, &p, &e), POD_GONE);
	assert_int_equal(p.phase, POD_RUN);
	assert_true(is_in(ps, POD_EXITED_GARBAGE, p.uuid.text));
}

/* Between looking and locking the pod was moved: the lock is given back. */
static void test_lock_checks_place(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	struct err e = ERR_INIT;
	struct pod p = make_pod(ps, POD_RUN);
	cleanup_pod struct pod late = POD_INIT;
	assert_int_equal(pod_open(ps, p.uuid.text, &late, &e), 0);
	assert_int_equal(pod_mark_exited(ps, &p, &e), 0);
	struct uuid uuid = p.uuid;
	pod_deinit(&p);
	assert_int_equal(pod_try_lock(ps, &late, &e), POD_GONE);
	assert_false(late.lock_is_ours);
	cleanup_pod struct pod again = POD_INIT;
	assert_int_equal(pod_open(ps, uuid.text, &again, &e), 0);
	assert_int_equal(pod_try_lock(ps, &again, &e), 0);
}

/* The lock belongs to the description, so a duplicate keeps it: as a child that inherited it. */
static void test_lock_lives_with_any_holder(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	struct err e = ERR_INIT;
	struct pod p = make_pod(ps, POD_RUN);
	struct uuid uuid = p.uuid;
	int inherited = dup(p.fd);
	pod_deinit(&p);
	cleanup_pod struct pod seen = POD_INIT;
	assert_int_equal(pod_open(ps, uuid.text, &seen, &e), 0);
	assert_true(seen.locked);
	close(inherited);
	cleanup_pod struct pod ended = POD_INIT;
	assert_int_equal(pod_open(ps, uuid.text, &ended, &e), 0);
	assert_false(ended.locked);
}

static void test_delete(void **state)
{
	cleanup_pods struct pods *ps = open_pods(state);
	for (enum pod_phase phase = POD_PREPARE; phase < POD_PHASE_COUNT_; phase++) {
		struct err e = ERR_INIT;
		cleanup_pod struct pod p = make_pod(ps, phase);
		assert_int_equal(mkdirat(p.fd, "apps", 0750), 0);
		bool garbage = phase == POD_EXITED_GARBAGE || phase == POD_GARBAGE;
		int r = pod_delete(ps, &p, &e);
		assert_int_equal(r, garbage ? 0 : -EINVAL);
		assert_int_equal(is_in(ps, phase, p.uuid.text), !garbage);
		if (garbage) /* once more, as after a crash */
			assert_int_equal(pod_delete(ps, &p, &e), 0);
	}
}

static void test_missing_directories(void **state)
{
	cleanup_pods struct pods *ps = NULL;
	struct err e = ERR_INIT;
	struct pod p = POD_INIT;
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	assert_int_equal(pods_open(fixture_dir(state), false, &ps, &e), 0);
	assert_int_equal(pods_list(ps, POD_PHASES_VISIBLE, POD_LIST_MAX, &l, &e), 0);
	assert_int_equal(l.n, 0);
	assert_int_equal(pod_open(ps, SOME_UUID, &p, &e), POD_GONE);
}

/* A link in the place of a phase directory is not followed. */
static void test_phase_is_a_link(void **state)
{
	struct pods *ps = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(mkdirat(fixture_dir(state), "pods", 0750), 0);
	assert_int_equal(symlinkat("/tmp", fixture_dir(state), "pods/run"), 0);
	assert_true(pods_open(fixture_dir(state), true, &ps, &e) < 0);
	assert_null(ps);
	assert_non_null(strstr(e.text, "pods/run"));
}

/* Nor one in the place of a pod: what is deleted is in the data directory. */
static void test_pod_is_a_link(void **state)
{
	cleanup_pods struct pods *ps = NULL;
	struct err e = ERR_INIT;
	struct pod p = POD_INIT;
	assert_int_equal(pods_open(fixture_dir(state), true, &ps, &e), 0);
	assert_int_equal(symlinkat("/tmp", pods_phase_fd(ps, POD_RUN), SOME_UUID), 0);
	assert_int_equal(pod_open(ps, SOME_UUID, &p, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, SOME_UUID));
}

static void test_deinit(void **state)
{
	(void)state;
	pod_deinit(NULL);
	pods_free(NULL);
	pod_list_deinit(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_table),
		fixture_test(test_state_names),
		fixture_test(test_create),
		fixture_test(test_open_finds_and_probes),
		fixture_test(test_finish_prepare),
		fixture_test(test_start),
		fixture_test(test_mark_exited),
		fixture_test(test_discard),
		fixture_test(test_transition_needs_lock),
		fixture_test(test_loser_of_a_race),
		fixture_test(test_lock_checks_place),
		fixture_test(test_lock_lives_with_any_holder),
		fixture_test(test_delete),
		fixture_test(test_missing_directories),
		fixture_test(test_phase_is_a_link),
		fixture_test(test_pod_is_a_link),
		fixture_test(test_deinit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
