/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/pod.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/pod/pod_rig.h"
#include "tests/unit/guest-agent/seam.h"

/* Everything may be asked for at once; it happens in order. */
static void test_pipelined(void **state)
{
	(void)state;
	begin();
	assert_int_equal(setup(1), POD_PENDING);
	assert_int_equal(add("a", 2), POD_PENDING);
	assert_int_equal(start("a", 3), POD_PENDING);
	expect_refused(start("a", 4), AGENT_E_STATE);
	assert_int_equal(seam_count(true), 1);
	assert_int_equal(seam_count(false), 0);
	end_job(0);
	expect_said("1ok ");
	assert_int_equal(seam_count(false), 1);
	assert_true(seam.children[0].released); /* it need not ask the agent again */
	end_mount(0);
	expect_said("2ok 3ok ");
	end_app(7 << 8);
	expect_said("exit:a:7:0 ");
	end();
}

/*
 * The program ends before the agent has heard that its root was mounted; or its process, before it
 * is released: what that has said counts, not that nobody is there.
 */
static void test_short_life(void **state)
{
	(void)state;
	begin_ready();
	add("a", 2);
	assert_int_equal(start("a", 3), POD_PENDING);
	expect_refused(start("a", 4), AGENT_E_STATE);
	assert_true(seam_mount_app(0));
	end_app(0);
	expect_said("2ok 3ok exit:a:0:0 ");
	end();
	begin_ready();
	seam.deaf = add("a", 2) == POD_PENDING;
	assert_int_equal(start("a", 3), POD_PENDING);
	end_mount(AGENT_E_USER);
	expect_said("2-32007 3-32007 ");
	end();
}

/* Who starts an app hears of it when its program runs; or behind its end, if it never ran. */
static void test_start_is_known(void **state)
{
	(void)state;
	begin_ready();
	seam.slow_exec = true;
	add("a", 2);
	end_mount(0);
	expect_said("2ok ");
	assert_int_equal(start("a", 3), POD_PENDING);
	expect_said("");
	expect_refused(start("a", 4), AGENT_E_STATE);
	seam_execute();
	assert_int_equal(loop_turn(&loop), 0);
	expect_said("3ok ");
	end_app(0);
	expect_said("exit:a:0:0 ");
	seam.slow_exec = true;
	assert_int_equal(start("a", 5), POD_PENDING); /* again, and all at once */
	end_mount(0);
	expect_said("");
	end_app(203 << 8);
	expect_said("exit:a:203:0 5ok ");
	seam.slow_exec = false;
	end();
}

/* A program ends before the agent has seen that it began: who started it hears of that first. */
static void test_start_is_known_first(void **state)
{
	(void)state;
	begin_ready();
	seam.slow_exec = true;
	add("a", 2);
	end_mount(0);
	assert_int_equal(start("a", 3), POD_PENDING);
	expect_said("2ok ");
	seam_execute();
	end_app(7 << 8);
	expect_said("3ok exit:a:7:0 ");
	seam.slow_exec = false;
	end();
}

/* A process can be killed at any moment; its app never runs then. */
static void test_lost_process(void **state)
{
	(void)state;
	begin_ready();
	add("a", 2);
	start("a", 3);
	end_app(SIGKILL);
	expect_said("2-32000 3-32000 ");
	add("b", 4);
	end_mount(0);
	end_app(SIGKILL);
	expect_said("4ok ");
	expect_refused(start("b", 5), AGENT_E_INTERNAL);
	expect_refused(send_signal("b", SIGTERM), AGENT_E_STATE);
	end();
}

static void test_failed_setup(void **state)
{
	(void)state;
	begin();
	expect_refused(add("a", 1), AGENT_E_STATE);
	assert_int_equal(setup(2), POD_PENDING);
	expect_refused(setup(3), AGENT_E_STATE);
	assert_int_equal(add("a", 4), POD_PENDING);
	assert_int_equal(start("a", 5), POD_PENDING);
	end_job(AGENT_E_DISK);
	expect_said("2-32006 4-32006 5-32006 ");
	assert_int_equal(setup(6), POD_PENDING); /* may be tried again */
	end();
}

static void test_failed_add(void **state)
{
	(void)state;
	begin_ready();
	add("a", 2);
	expect_refused(add("a", 3), AGENT_E_STATE);
	start("a", 4);
	end_mount(AGENT_E_USER);
	expect_said("2-32007 4-32007 ");
	end_app(203 << 8); /* of an app that is not there any more */
	expect_said("");
	expect_refused(start("a", 5), AGENT_E_NO_APP);
	assert_int_equal(add("a", 6), POD_PENDING); /* the name is free again */
	end();
}

static void test_bad_parameters(void **state)
{
	(void)state;
	begin();
	struct agent_pod_setup m = { .hostname = "no spaces", .scratch_lun = -1 };
	expect_refused(pod_setup(pod, &m, caller(1), &fault), AGENT_E_PARAMS);
	assert_int_equal(seam.hostnames, 0);
	setup(2);
	expect_refused(add_with("a", 3, false, false, "novalue", ""), AGENT_E_PARAMS);
	expect_refused(add_with("a", 3, false, false, "=novalue", ""), AGENT_E_PARAMS);
	expect_refused(add_with("a", 3, false, false, "A=", "relative"), AGENT_E_PARAMS);
	assert_int_equal(add_with("a", 3, false, false, "A=", "/absolute"), POD_PENDING);
	end();
}

static void test_apps_limit(void **state)
{
	(void)state;
	char name[16];
	begin();
	setup(1);
	for (int i = 0; i < AGENT_APPS_MAX; i++) {
		snprintf(name, sizeof(name), "app%d", i);
		assert_int_equal(add(name, 2), POD_PENDING);
	}
	expect_refused(add("onemore", 3), AGENT_E_LIMIT);
	end();
}

/* An app that could not be added holds its place until its PID namespace has ended. */
static void test_gone_apps(void **state)
{
	(void)state;
	begin_ready();
	for (int i = 0; i < 2 * AGENT_APPS_MAX; i++) {
		assert_int_equal(add("a", i), POD_PENDING);
		end_mount(AGENT_E_USER);
		end_app(SIGKILL);
	}
	with_init = true;
	for (int i = 0; i < AGENT_APPS_MAX; i++) {
		assert_int_equal(add("a", i), POD_PENDING);
		assert_true(seam_mount_app(AGENT_E_USER));
		loop_turn(&loop);
	}
	assert_int_equal(seam.n_inits, AGENT_APPS_MAX);
	expect_refused(add("a", 50), AGENT_E_LIMIT);
	expect_refused(start("a", 51), AGENT_E_NO_APP);
	pod_reap(pod);
	assert_int_equal(seam.n_inits, 0);
	assert_int_equal(add("a", 52), POD_PENDING);
	with_init = false;
	end();
}

/* What confines the app is checked before anything is done for it. */
static void test_bad_confinement(void **state)
{
	(void)state;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	begin_ready();
	agent_app_add_init(&m);
	str_copy(m.app, sizeof(m.app), "a");
	strv_add(&m.process.exec, "/bin/true");
	strv_add(&m.confinement.groups, "wheel");
	expect_refused(pod_app_add(pod, &m, caller(1), &fault), AGENT_E_PARAMS);
	assert_string_equal(m.process.exec.v[0], "/bin/true"); /* still the caller's */
	assert_int_equal(seam.n_inits, 0);
	strv_deinit(&m.confinement.groups);
	m.confinement.memory_max = 1; /* nobody holds that here */
	assert_int_equal(pod_app_add(pod, &m, caller(2), &fault), POD_PENDING);
	expect_said("2-32000 ");
	end();
}

static void test_no_process(void **state)
{
	(void)state;
	begin_running();
	seam.no_fork = true;
	assert_int_equal(add("b", 4), POD_PENDING);
	expect_said("4-32000 ");
	seam.no_fork = false;
	add("b", 5);
	end_mount(0);
	assert_int_equal(start("b", 7), 0);
	end();
}

static void test_signal(void **state)
{
	(void)state;
	begin_running();
	expect_refused(send_signal("b", SIGTERM), AGENT_E_NO_APP);
	assert_int_equal(send_signal("a", SIGUSR1), 0);
	assert_int_equal(seam.children[0].signal, SIGUSR1);
	end_app(SIGTERM);
	expect_said("exit:a:0:15 ");
	expect_refused(send_signal("a", SIGTERM), AGENT_E_STATE);
	expect_refused(add("a", 9), AGENT_E_STATE);
	end();
}

/* An app that has ended can be started again; what fails then leaves it as it was. */
static void test_restart(void **state)
{
	(void)state;
	begin_running();
	expect_refused(start("a", 4), AGENT_E_STATE);
	end_app(7 << 8);
	expect_said("exit:a:7:0 ");
	assert_int_equal(start("a", 5), POD_PENDING);
	expect_refused(start("a", 6), AGENT_E_STATE);
	expect_refused(send_signal("a", SIGTERM), AGENT_E_STATE);
	end_mount(0);
	expect_said("5ok ");
	assert_int_equal(send_signal("a", SIGTERM), 0);
	end_app(SIGTERM);
	expect_said("exit:a:0:15 ");

	assert_int_equal(start("a", 7), POD_PENDING);
	end_mount(AGENT_E_USER);
	expect_said("7-32007 ");
	end_app(203 << 8);
	expect_said("");
	assert_int_equal(start("a", 8), POD_PENDING); /* and its process is lost */
	end_app(SIGKILL);
	expect_said("8-32000 ");
	seam.no_fork = true;
	assert_int_equal(start("a", 9), POD_PENDING);
	expect_said("9-32000 ");
	seam.no_fork = false;
	assert_int_equal(start("a", 10), POD_PENDING);
	end_mount(0);
	expect_said("10ok ");
	end();
}

static int remove_app(const char *name, int64_t id)
{
	struct agent_app_ref m;
	str_copy(m.app, sizeof(m.app), name);
	return pod_app_remove(pod, &m, caller(id), &fault);
}

/* The name is free again; what was only added goes, too. */
static void test_remove(void **state)
{
	(void)state;
	begin_running();
	expect_refused(remove_app("b", 4), AGENT_E_NO_APP);
	expect_refused(remove_app("a", 4), AGENT_E_STATE);
	end_app(0);
	assert_int_equal(remove_app("a", 5), POD_PENDING);
	expect_refused(remove_app("a", 6), AGENT_E_STATE);
	expect_refused(start("a", 6), AGENT_E_STATE);
	expect_refused(add("a", 6), AGENT_E_STATE);
	end_job(0);
	expect_said("exit:a:0:0 5ok ");
	expect_refused(start("a", 7), AGENT_E_NO_APP);

	add("a", 8);
	expect_refused(remove_app("a", 9), AGENT_E_STATE); /* it is not there yet */
	end_mount(0);
	assert_int_equal(remove_app("a", 10), POD_PENDING);
	assert_int_equal(seam_count(true), 0);
	pod_reap(pod);
	assert_int_equal(seam_count(true), 1);
	end_job(0);
	expect_said("8ok 10ok ");
	end();
}

static void test_failed_remove(void **state)
{
	(void)state;
	begin_running();
	end_app(0);
	assert_int_equal(remove_app("a", 4), POD_PENDING);
	end_job(AGENT_E_INTERNAL);
	expect_said("exit:a:0:0 4-32000 ");
	seam.no_fork = true;
	assert_int_equal(remove_app("a", 5), POD_PENDING);
	expect_said("5-32000 ");
	seam.no_fork = false;
	assert_int_equal(remove_app("a", 6), POD_PENDING); /* may be tried again */
	end_job(0);
	expect_said("6ok ");
	end();
}

static void count(void *ctx, const struct agent_app_exited *m)
{
	(void)m;
	++*(int *)ctx;
}

static void test_exits_are_kept(void **state)
{
	(void)state;
	int n = 0;
	begin_running();
	pod_each_exited(pod, count, &n);
	assert_int_equal(n, 0);
	end_app(0);
	pod_each_exited(pod, count, &n);
	assert_int_equal(n, 1);
	end();
}

static void test_shutdown(void **state)
{
	(void)state;
	begin_running();
	assert_int_equal(shut_down(60000, 5), POD_PENDING);
	assert_int_equal(seam.children[0].signal, SIGTERM);
	assert_int_equal(seam.kills, 0);
	expect_refused(add("b", 6), AGENT_E_STATE);
	expect_refused(setup(6), AGENT_E_STATE);
	expect_refused(start("a", 6), AGENT_E_STATE);
	assert_int_equal(send_signal("a", SIGHUP), 0);
	end_app(0);
	expect_said("exit:a:0:0 ");
	assert_int_equal(seam.kills, 1); /* whatever the apps left behind */
	assert_int_equal(seam_count(true), 1);
	end_job(0);
	expect_said("5ok off ");
	assert_int_equal(shut_down(0, 7), 0); /* it is off already */
	end();
}

/* Runs the loop until something is said. */
static void await_said(const char *text)
{
	while (!said[0])
		assert_int_equal(loop_turn(&loop), 0);
	expect_said(text);
}

/* Who has attached an output reads it to its end before the pod is gone, if it is to wait. */
static void test_shutdown_drains(void **state)
{
	int host;
	(void)state;
	begin_running();
	assert_int_equal(attach_open("a", 0, AGENT_STREAM_STDOUT, &host), 0);
	assert_int_equal(shut_down_drained(0, AGENT_DRAIN_MS_MAX, 5), POD_PENDING);
	expect_said("exit:a:0:9 ");
	end_job(0);
	for (int i = 0; i < 5; i++) /* the end of the output, and looks at it */
		assert_int_equal(loop_turn(&loop), 0);
	expect_said("");
	fd_close(host);
	await_said("5ok off ");
	end();
}

/* Not for ever, not for those who do not wait, and not for nobody. */
static void test_shutdown_of_reader(void **state)
{
	int host;
	(void)state;
	for (int64_t drain_ms = 0; drain_ms <= 30; drain_ms += 30) {
		begin_running();
		assert_int_equal(attach_open("a", 0, AGENT_STREAM_STDERR, &host), 0);
		assert_int_equal(shut_down_drained(0, drain_ms, 5), POD_PENDING);
		expect_said("exit:a:0:9 ");
		end_job(0);
		if (drain_ms == 0)
			expect_said("5ok off ");
		else
			await_said("5ok off ");
		fd_close(host);
		end();
	}
	begin_running();
	assert_int_equal(shut_down_drained(0, AGENT_DRAIN_MS_MAX, 5), POD_PENDING);
	expect_said("exit:a:0:9 ");
	end_job(0);
	expect_said("5ok off ");
	end();
}

/* A second call can shorten the time to drain, too, also when it runs. */
static void test_drain_is_shortened(void **state)
{
	int host;
	(void)state;
	begin_running();
	assert_int_equal(attach_open("a", 0, AGENT_STREAM_STDOUT, &host), 0);
	assert_int_equal(shut_down_drained(0, AGENT_DRAIN_MS_MAX, 5), POD_PENDING);
	expect_said("exit:a:0:9 ");
	end_job(0);
	expect_said("");
	assert_int_equal(shut_down_drained(0, 0, 6), POD_PENDING);
	await_said("5ok 6ok off ");
	fd_close(host);
	end();
	begin_running();
	assert_int_equal(attach_open("a", 0, AGENT_STREAM_STDOUT, &host), 0);
	assert_int_equal(shut_down_drained(0, 0, 5), POD_PENDING);
	assert_int_equal(shut_down_drained(0, AGENT_DRAIN_MS_MAX, 6), POD_PENDING);
	expect_said("exit:a:0:9 ");
	end_job(0);
	expect_said("5ok 6ok off ");
	fd_close(host);
	end();
}

/* A second call can only shorten the grace period; no grace at all is SIGKILL at once. */
static void test_forced_shutdown(void **state)
{
	(void)state;
	begin_running();
	assert_int_equal(shut_down(60000, 5), POD_PENDING);
	assert_int_equal(shut_down(90000, 6), POD_PENDING);
	assert_int_equal(seam.kills, 0);
	assert_int_equal(shut_down(0, 7), POD_PENDING);
	assert_int_equal(seam.kills, 1);
	expect_said("exit:a:0:9 ");
	end_job(0);
	expect_said("5ok 6ok 7ok off ");
	end();
}

static void test_grace_ends(void **state)
{
	(void)state;
	begin_running();
	assert_int_equal(shut_down(1, 5), POD_PENDING);
	while (seam.kills == 0)
		assert_int_equal(loop_turn(&loop), 0);
	pod_reap(pod);
	expect_said("exit:a:0:9 ");
	end();
}

static void test_waiters_limit(void **state)
{
	(void)state;
	begin_running();
	for (int i = 0; i < POD_SHUTDOWN_WAITERS_MAX; i++)
		assert_int_equal(shut_down(60000, 10 + i), POD_PENDING);
	expect_refused(shut_down(60000, 99), AGENT_E_LIMIT);
	end();
}

/* Jobs in flight are killed with everything else, and their requests are answered. */
static void test_shutdown_during_setup(void **state)
{
	(void)state;
	begin();
	setup(1);
	add("a", 2);
	start("a", 3);
	assert_int_equal(shut_down(1000, 4), POD_PENDING);
	assert_int_equal(seam.kills, 1);
	expect_said("1-32000 2-32000 3-32000 ");
	end_job(0);
	expect_said("4ok off ");
	end();
}

/* An app that was only added has no end to tell of; one that comes to run gets its SIGTERM. */
static void test_shutdown_during_add(void **state)
{
	(void)state;
	begin_running();
	add("b", 4);
	end_mount(0);
	expect_said("4ok ");
	add("c", 5);
	start("c", 6);
	assert_int_equal(shut_down(60000, 7), POD_PENDING);
	assert_int_equal(seam.children[2].signal, 0);
	end_mount(0);
	expect_said("5ok 6ok ");
	assert_int_equal(seam.children[2].signal, SIGTERM);
	end_app(0); /* a, the first */
	end_app(0); /* c, which has its place now */
	expect_said("exit:a:0:0 exit:c:0:0 ");
	assert_int_equal(seam.kills, 1);
	end_job(0);
	expect_said("7ok off ");
	end();
}

/* Even if the job that unmounts cannot be started, the pod ends. */
static void test_shutdown_of_nothing(void **state)
{
	(void)state;
	for (int no_fork = 0; no_fork <= 1; no_fork++) {
		begin();
		seam.no_fork = no_fork;
		assert_int_equal(shut_down(no_fork ? 0 : 1000, 4), POD_PENDING);
		if (!no_fork)
			end_job(0);
		expect_said("4ok off ");
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_pipelined),
		fixture_test(test_start_is_known),
		fixture_test(test_start_is_known_first),
		fixture_test(test_short_life),
		fixture_test(test_lost_process),
		fixture_test(test_failed_setup),
		fixture_test(test_failed_add),
		fixture_test(test_bad_parameters),
		fixture_test(test_apps_limit),
		fixture_test(test_gone_apps),
		fixture_test(test_bad_confinement),
		fixture_test(test_no_process),
		fixture_test(test_signal),
		fixture_test(test_restart),
		fixture_test(test_remove),
		fixture_test(test_failed_remove),
		fixture_test(test_exits_are_kept),
		fixture_test(test_shutdown),
		fixture_test(test_shutdown_drains),
		fixture_test(test_shutdown_of_reader),
		fixture_test(test_drain_is_shortened),
		fixture_test(test_forced_shutdown),
		fixture_test(test_grace_ends),
		fixture_test(test_waiters_limit),
		fixture_test(test_shutdown_during_setup),
		fixture_test(test_shutdown_during_add),
		fixture_test(test_shutdown_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
