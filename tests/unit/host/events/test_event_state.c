/* SPDX-License-Identifier: Apache-2.0 */
#include "host/events/event_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define BIT(n) (1U << (n))
#define NOW    1000 /* the time of every look, in the unit of the tests */

/* One pod: what is seen of it, what was told, and the events as a text. */
struct subject {
	struct pod_seen seen;
	struct pod_told told;
	struct pod_event_batch batch;
	char text[4096];
};

static struct subject subject;

static struct subject *new_subject(void)
{
	struct subject *s = &subject;
	pod_told_deinit(&s->told);
	memset(s, 0, sizeof(*s));
	s->seen.there = true;
	s->seen.now_ns = NOW;
	s->seen.phases = BIT(POD_RUN);
	s->seen.created_ns = 10;
	s->seen.changed_ns = 15;
	return s;
}

/* "TIME[/APP]:EVENT[=CODE][!][~SIGNAL]", separated by blanks; ! is an oom kill. */
static void add_text(char *text, size_t size, const struct pod_event *ev)
{
	size_t n = strlen(text);
	n += (size_t)snprintf(text + n, size - n, "%s%lld%s%s:%s", n ? " " : "",
			      (long long)ev->time_ns, ev->app[0] ? "/" : "", ev->app,
			      pod_event_name(ev->kind));
	if (ev->has_exit_code)
		n += (size_t)snprintf(text + n, size - n, "=%d", ev->exit_code);
	if (ev->end == APP_END_OOM_KILLED)
		n += (size_t)snprintf(text + n, size - n, "!");
	if (ev->signal > 0)
		snprintf(text + n, size - n, "~%d", ev->signal);
}

static const char *look(struct subject *s)
{
	s->text[0] = '\0';
	assert_int_equal(pod_told_update(&s->told, &s->seen, &s->batch), 0);
	for (size_t i = 0; i < s->batch.n; i++)
		add_text(s->text, sizeof(s->text), &s->batch.v[i]);
	s->seen.phases = BIT(POD_RUN);
	return s->text;
}

static struct app_seen *app(struct subject *s, const char *name)
{
	struct app_seen *a = pod_seen_app(&s->seen, name);
	assert_non_null(a);
	return a;
}

static void test_life(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	s->seen.phases = BIT(POD_PREPARED);
	s->seen.moved_ns = 11;
	assert_string_equal(look(s), "10:created 11:prepared");
	s->seen.phases = BIT(POD_PREPARED);
	assert_string_equal(look(s), "");
	assert_string_equal(look(s), "");
	s->seen.started_ns = 20;
	assert_string_equal(look(s), "20:started");
	app(s, "a")->started_ns = 30;
	assert_string_equal(look(s), "30/a:started");
	app(s, "b")->started_ns = 31;
	s->seen.ready_ns = 32;
	assert_string_equal(look(s), "31/b:started 32:ready");
	app(s, "a")->exited_ns = 40;
	app(s, "a")->exit_code = 7;
	assert_string_equal(look(s), "40/a:exited=7");
	app(s, "b")->exited_ns = 41;
	s->seen.over = true;
	assert_string_equal(look(s), "41/b:exited=0 1000:exited");
	assert_string_equal(look(s), "");
	assert_null(s->told.apps);
	s->seen.phases = BIT(POD_EXITED_GARBAGE);
	s->seen.moved_ns = 50;
	assert_string_equal(look(s), "50:marked");
	s->seen.there = false;
	assert_string_equal(look(s), "1000:removed");
	assert_string_equal(look(s), "");
	pod_told_deinit(&s->told);
}

/* A pod that is seen for the first time tells its life. */
static void fill_life(struct subject *s)
{
	s->seen.started_ns = 20;
	s->seen.ready_ns = 32;
	*app(s, "b") = (struct app_seen){ "b", 21, 31, 0, 40, 3, 0, 0 };
	*app(s, "a") = (struct app_seen){ "a", 22, 30, 50, 51, 9, APP_END_OOM_KILLED, 9 };
}

#define LIFE                                                                        \
	"10:created 20:started 21/b:created 22/a:created 30/a:started 31/b:started" \
	" 32:ready 40/b:exited=3 50/a:oom 51/a:exited=9!~9"

static void test_first_look(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	fill_life(s);
	assert_string_equal(look(s), LIFE);
	s = new_subject();
	fill_life(s);
	s->seen.over = true;
	assert_string_equal(look(s), LIFE " 51:exited");
	s = new_subject();
	fill_life(s);
	s->seen.over = true;
	s->seen.changed_ns = 60; /* a socket that was removed at the end */
	s->seen.moved_ns = 70;
	s->seen.phases = BIT(POD_EXITED_GARBAGE);
	assert_string_equal(look(s), LIFE " 60:exited 70:marked");
	pod_told_deinit(&s->told);
}

/* What passed between two looks is told as far as it was noticed. */
static void test_fast_pods(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	s->seen.phases = BIT(POD_PREPARED) | BIT(POD_RUN);
	assert_string_equal(look(s), "10:created 1000:prepared");
	s->seen.started_ns = 20;
	app(s, "a")->started_ns = 30;
	assert_string_equal(look(s), "20:started 30/a:started");
	s->seen.phases = BIT(POD_EXITED_GARBAGE);
	s->seen.there = false; /* what the files say is not known any more */
	s->seen.n_apps = 0;
	assert_string_equal(look(s), "1000/a:exited 1000:exited 1000:marked 1000:removed");

	s = new_subject(); /* what is heard of too late is not told behind what followed */
	s->seen.started_ns = 20;
	assert_string_equal(look(s), "10:created 20:started");
	s->seen.phases = BIT(POD_PREPARED) | BIT(POD_RUN);
	assert_string_equal(look(s), "");

	s = new_subject();
	s->seen.there = false;
	assert_string_equal(look(s), "");

	s = new_subject(); /* prepared, and given up */
	s->seen.phases = BIT(POD_PREPARED);
	s->seen.moved_ns = 11;
	assert_string_equal(look(s), "10:created 11:prepared");
	s->seen.phases = 0;
	s->seen.there = false;
	assert_string_equal(look(s), "1000:removed");

	s = new_subject(); /* its supervisor did not even write its number */
	s->seen.over = true;
	assert_string_equal(look(s), "10:created 15:exited");
	pod_told_deinit(&s->told);
}

static void test_restarts(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	s->seen.started_ns = 20;
	*app(s, "a") = (struct app_seen){ "a", 0, 30, 0, 40, 1, 0, 0 };
	assert_string_equal(look(s), "10:created 20:started 30/a:started 40/a:exited=1");
	*app(s, "a") =
		(struct app_seen){ "a", 0, 30, 0, 0, 0, 0, 0 }; /* about to be started again */
	assert_string_equal(look(s), "");
	app(s, "a")->started_ns = 50;
	assert_string_equal(look(s), "50/a:started");
	app(s, "a")->oom_ns = 60;
	assert_string_equal(look(s), "60/a:oom");
	app(s, "a")->exited_ns = 61;
	app(s, "a")->exit_code = 9;
	app(s, "a")->end = APP_END_OOM_KILLED;
	assert_string_equal(look(s), "61/a:exited=9!");
	*app(s, "a") =
		(struct app_seen){ "a", 0, 70, 0, 71, 9, 0, 0 }; /* unlinked, started, ended */
	assert_string_equal(look(s), "70/a:started 71/a:exited=9");
	*app(s, "a") = (struct app_seen){ "a", 0, 80, 0, 0, 0, 0, 0 };
	assert_string_equal(look(s), "80/a:started");
	*app(s, "a") = (struct app_seen){ "a", 0, 90, 0, 0, 0, 0, 0 }; /* how it ended was missed */
	assert_string_equal(look(s), "90/a:exited 90/a:started");
	pod_told_deinit(&s->told);
}

static void test_added_and_removed(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	s->seen.started_ns = 20;
	*app(s, "a") = (struct app_seen){ "a", 21, 0, 0, 0, 0, 0, 0 };
	assert_string_equal(look(s), "10:created 20:started 21/a:created");
	*app(s, "a") = (struct app_seen){ "a", 21, 30, 0, 0, 0, 0, 0 };
	assert_string_equal(look(s), "30/a:started");
	*app(s, "a") =
		(struct app_seen){ "a", 41, 0, 0, 0, 0, 0, 0 }; /* another of the same name */
	assert_string_equal(look(s), "41/a:exited 41/a:removed 41/a:created");
	*app(s, "a") = (struct app_seen){ "a", 41, 50, 0, 60, 4, 0, 0 };
	assert_string_equal(look(s), "50/a:started 60/a:exited=4");
	*app(s, "a") =
		(struct app_seen){ "a", 41, 0, 0, 0, 0, 0, 0 }; /* its files go, one by one */
	assert_string_equal(look(s), "");
	*app(s, "a") = (struct app_seen){ "a", 0, 0, 0, 0, 0, 0, 0 };
	assert_string_equal(look(s), "1000/a:removed");
	*app(s, "b") = (struct app_seen){ "b", 70, 71, 0, 0, 0, 0, 0 };
	assert_string_equal(look(s), "70/b:created 71/b:started");
	s->seen.n_apps = 0;
	assert_string_equal(look(s), "1000/b:exited 1000/b:removed");
	*app(s, "c") =
		(struct app_seen){ "c", 0, 72, 0, 0, 0, 0, 0 }; /* of the pod from the beginning */
	assert_string_equal(look(s), "72/c:started");
	s->seen.n_apps = 0;
	assert_string_equal(look(s), "1000/c:exited");
	pod_told_deinit(&s->told);
}

/* A removed app whose other files go later is not started again by that. */
static void test_removed_in_another_order(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	*app(s, "a") = (struct app_seen){ "a", 21, 30, 0, 40, 5, 0, 0 };
	assert_string_equal(look(s), "10:created 21/a:created 30/a:started 40/a:exited=5");
	*app(s, "a") = (struct app_seen){ "a", 0, 30, 0, 40, 5, 0, 0 };
	assert_string_equal(look(s), "1000/a:removed");
	*app(s, "a") = (struct app_seen){ "a", 0, 30, 0, 0, 0, 0, 0 };
	assert_string_equal(look(s), "");
	s->seen.n_apps = 0;
	assert_string_equal(look(s), "");
	pod_told_deinit(&s->told);
}

/* The clock was set back between events; what follows from another comes behind it all the same. */
static void test_clock_set_back(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	s->seen.created_ns = 500;
	s->seen.started_ns = 20;
	s->seen.ready_ns = 5;
	*app(s, "a") = (struct app_seen){ "a", 21, 400, 0, 3, 0, 0, 0 };
	s->seen.over = true;
	assert_string_equal(look(s), "500:created 20:started 21/a:created 400/a:started "
				     "3/a:exited=0 5:ready 400:exited");
	pod_told_deinit(&s->told);
}

static void test_limit_of_apps(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	char name[AGENT_NAME_MAX + 2];
	for (size_t i = 0; i < POD_SEEN_APPS_MAX; i++) {
		snprintf(name, sizeof(name), "old-%zu", i);
		struct app_seen *a = app(s, name);
		a->created_ns = 20;
		a->started_ns = 21;
	}
	assert_null(pod_seen_app(&s->seen, "one-more"));
	assert_non_null(pod_seen_app(&s->seen, "old-0"));
	assert_int_equal(pod_told_update(&s->told, &s->seen, &s->batch), 0);
	assert_int_equal(s->batch.n, 1 + 2 * POD_SEEN_APPS_MAX);

	/* All of them go and others come, which is the longest batch that can be. */
	s->seen.n_apps = 0;
	s->seen.over = true;
	s->seen.started_ns = s->seen.ready_ns = 25;
	for (size_t i = 0; i < POD_SEEN_APPS_MAX; i++) {
		snprintf(name, sizeof(name), "new-%zu", i);
		struct app_seen *a = app(s, name);
		a->created_ns = a->started_ns = a->oom_ns = 30;
	}
	assert_int_equal(pod_told_update(&s->told, &s->seen, &s->batch), 0);
	assert_int_equal(s->batch.n, 3 + (2 + 4) * POD_SEEN_APPS_MAX);
	assert_true(s->batch.n <= POD_EVENTS_MAX);

	s->seen.n_apps = 0;
	memset(name, 'x', AGENT_NAME_MAX + 1);
	name[AGENT_NAME_MAX + 1] = '\0';
	assert_null(pod_seen_app(&s->seen, name));
	assert_int_equal(s->seen.n_apps, 0);
	pod_told_deinit(&s->told);
}

static int two_looks(void *ctx)
{
	struct subject *s = new_subject();
	(void)ctx;
	fill_life(s);
	int r = pod_told_update(&s->told, &s->seen, &s->batch);
	if (r < 0) { /* nothing was noted: all of it is told at the next success */
		assert_int_equal(s->told.kinds, 0);
		assert_int_equal(pod_told_update(&s->told, &s->seen, &s->batch), 0);
		assert_int_equal(s->batch.n, 10);
	}
	pod_told_deinit(&s->told);
	return r;
}

static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(two_looks, NULL);
}

static void test_deinit(void **state)
{
	(void)state;
	pod_told_deinit(NULL);
	pod_told_deinit(&(struct pod_told){ 0 });
}

/* As often as it happens, also when it is full again before anybody has looked. */
static void test_disk_full(void **state)
{
	(void)state;
	struct subject *s = new_subject();
	s->seen.started_ns = 20;
	look(s);
	s->seen.full_ns = 30;
	assert_string_equal(look(s), "30:disk-full");
	assert_string_equal(look(s), "");
	s->seen.full_ns = 40;
	assert_string_equal(look(s), "40:disk-room 40:disk-full");
	s->seen.full_ns = 0;
	assert_string_equal(look(s), "1000:disk-room");
	assert_string_equal(look(s), "");
	s->seen.suspended_ns = 45;
	assert_string_equal(look(s), "45:suspended");
	assert_string_equal(look(s), "");
	s->seen.suspended_ns = 0;
	assert_string_equal(look(s), "1000:resumed");
	s->seen.full_ns = 50; /* left by a supervisor that was killed */
	s->seen.over = true;
	assert_string_equal(look(s), "1000:exited");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_life),
		fixture_test(test_first_look),
		fixture_test(test_fast_pods),
		fixture_test(test_restarts),
		fixture_test(test_added_and_removed),
		fixture_test(test_removed_in_another_order),
		fixture_test(test_clock_set_back),
		fixture_test(test_disk_full),
		fixture_test(test_limit_of_apps),
		fixture_test(test_short_of_memory),
		fixture_test(test_deinit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
