/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that leave the states of pod and apps alone: guest-agent/pod/requests.c. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/guest-agent/pod/pod_rig.h"
#include "tests/unit/guest-agent/seam.h"

static int ask_stats(const char *name, int64_t id)
{
	struct agent_app_ref m;
	str_copy(m.app, sizeof(m.app), name);
	return pod_app_stats(pod, &m, caller(id), &fault);
}

static int attach(const char *name, enum agent_stream stream)
{
	return attach_to(name, 0, stream);
}

static void test_attach(void **state)
{
	(void)state;
	begin();
	setup(1);
	add_with("a", 2, false, false, "A=", "");
	assert_int_equal(attach("a", AGENT_STREAM_STDOUT), 0); /* before the app is there */
	expect_refused(attach("a", AGENT_STREAM_STDOUT), AGENT_E_STATE);
	expect_refused(attach("a", AGENT_STREAM_STDIN), AGENT_E_STATE);
	expect_refused(attach("a", AGENT_STREAM_TTY), AGENT_E_STATE);
	expect_refused(attach("b", AGENT_STREAM_STDOUT), AGENT_E_NO_APP);
	assert_int_equal(attach("a", AGENT_STREAM_STDERR), 0);
	struct agent_app_resize m = { .app = "a", .rows = 1, .cols = 1 };
	expect_refused(pod_app_resize(pod, &m, &fault), AGENT_E_STATE);
	end();
}

/* For connection @owner; yields the number of the process or the code of the fault. */
static int64_t exec_in(const char *app, uint64_t owner)
{
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	int64_t number = 0;
	agent_app_exec_init(&m);
	str_copy(m.app, sizeof(m.app), app);
	strv_add(&m.process.exec, "/bin/true");
	m.process.with_stdin = true;
	if (pod_app_exec(pod, &m, owner, &number, &fault) == 0)
		return number;
	return fault.code;
}

static int signal_exec(int64_t number, uint64_t owner)
{
	const struct agent_exec_signal m = { .exec = number, .signal = SIGUSR2 };
	return pod_exec_signal(pod, &m, owner, &fault);
}

/* The child that was started as number @i, the app "a" being the first. */
static struct seam_child *child(size_t i)
{
	for (size_t k = 0; k < seam.n_children; k++)
		if (seam.children[k].pid == seam.children[0].pid + (pid_t)i)
			return &seam.children[k];
	fail_msg("child %zu has gone", i);
	return &seam.reaped;
}

/* Without control groups the main process is all that is known of an app. */
static void test_whole_app(void **state)
{
	(void)state;
	begin_running();
	const struct agent_app_signal all = { .app = "a", .signal = SIGUSR1, .all = true };
	assert_int_equal(pod_app_signal(pod, &all, &fault), 0);
	assert_int_equal(child(0)->signal, SIGUSR1);
	const struct agent_app_freeze here = { .app = "a", .frozen = true }, other = { .app = "b" };
	expect_refused(pod_app_freeze(pod, &here, &fault), AGENT_E_STATE);
	expect_refused(pod_app_freeze(pod, &other, &fault), AGENT_E_NO_APP);
	end();
}

static void test_exec(void **state)
{
	(void)state;
	begin_running();
	assert_int_equal(exec_in("b", 7), AGENT_E_NO_APP);
	assert_int_equal(exec_in("a", 7), 1);
	assert_int_equal(exec_in("a", 8), 2);
	expect_refused(signal_exec(1, 8), AGENT_E_NO_APP);
	expect_refused(signal_exec(3, 8), AGENT_E_NO_APP);
	assert_int_equal(signal_exec(1, 7), 0);
	assert_int_equal(child(1)->signal, SIGUSR2);
	const struct agent_exec_resize m = { .exec = 1, .rows = 1, .cols = 1 };
	expect_refused(pod_exec_resize(pod, &m, 8, &fault), AGENT_E_NO_APP);
	expect_refused(pod_exec_resize(pod, &m, 7, &fault), AGENT_E_STATE); /* no terminal */
	child(1)->ended = true;
	child(1)->status = 9 << 8;
	pod_reap(pod); /* and nobody has seen its program begin */
	expect_said("started:7:1 exec:7:1:9:0 ");
	seam_execute();
	assert_int_equal(loop_turn(&loop), 0);
	expect_said("started:8:2 ");
	expect_refused(signal_exec(1, 7), AGENT_E_STATE);
	assert_int_equal(attach_to("a", 1, AGENT_STREAM_STDOUT), 0); /* what it left to read */
	pod_conn_closed(pod, 7);
	expect_refused(attach_to("a", 1, AGENT_STREAM_STDERR), AGENT_E_NO_APP);
	assert_int_equal(child(2)->signal, 0);
	pod_conn_closed(pod, 8);
	assert_int_equal(child(2)->signal, SIGKILL);
	end();
}

static void test_exec_streams(void **state)
{
	(void)state;
	begin_running();
	assert_int_equal(exec_in("a", 7), 1);
	assert_int_equal(attach_to("a", 1, AGENT_STREAM_STDIN), 0);
	expect_refused(attach_to("a", 1, AGENT_STREAM_STDIN), AGENT_E_STATE);
	expect_refused(attach_to("a", 1, AGENT_STREAM_TTY), AGENT_E_STATE);
	expect_refused(attach_to("a", 2, AGENT_STREAM_STDOUT), AGENT_E_NO_APP);
	assert_int_equal(add("b", 4), POD_PENDING);
	expect_refused(attach_to("b", 1, AGENT_STREAM_STDOUT), AGENT_E_NO_APP);
	assert_int_equal(attach("a", AGENT_STREAM_STDOUT), 0);
	end();
}

/* The end of the app's process ends its PID namespace, and so what was started in the app. */
static void test_exec_ends_with_app(void **state)
{
	(void)state;
	with_init = true;
	begin_running();
	with_init = false;
	assert_int_equal(exec_in("a", 7), 1);
	assert_int_equal(seam.n_inits, 1);
	end_app(0);
	expect_said("exit:a:0:0 ");
	assert_int_equal(seam.n_inits, 0);
	assert_int_equal(exec_in("a", 7), AGENT_E_STATE);
	end_app(SIGKILL);
	expect_said("started:7:1 exec:7:1:0:9 ");
	end();
}

static void test_exec_refused(void **state)
{
	(void)state;
	begin_ready();
	add("a", 2);
	end_mount(0);
	assert_int_equal(exec_in("a", 7), AGENT_E_STATE); /* not started */
	start("a", 3);
	for (int i = 1; i <= AGENT_EXECS_MAX; i++)
		assert_int_equal(exec_in("a", 7), i);
	assert_int_equal(exec_in("a", 8), AGENT_E_LIMIT);
	pod_conn_closed(pod, 7);
	seam.no_fork = true;
	assert_int_equal(exec_in("a", 8), AGENT_E_INTERNAL);
	seam.no_fork = false;
	assert_int_equal(exec_in("a", 8), AGENT_EXECS_MAX + 1);
	shut_down(1000, 9);
	assert_int_equal(exec_in("a", 8), AGENT_E_STATE);
	end();
}

static void test_stats(void **state)
{
	(void)state;
	begin_running();
	expect_refused(ask_stats("b", 4), AGENT_E_NO_APP);
	assert_int_equal(add("b", 4), POD_PENDING);
	expect_refused(ask_stats("b", 5), AGENT_E_STATE);
	assert_string_equal(fault.text, "app \"b\" is not running");
	assert_int_equal(ask_stats("a", 6), POD_PENDING);
	assert_int_equal(ask_stats("a", 7), POD_PENDING);
	end_job(0);
	end_job(AGENT_E_INTERNAL);
	expect_said("6stats 7-32000 ");
	assert_int_equal(ask_stats("a", 8), POD_PENDING);
	end_app(0);
	expect_said("exit:a:0:0 ");
	end_job(0); /* as it was */
	expect_said("8stats ");
	expect_refused(ask_stats("a", 9), AGENT_E_STATE);
	end();
}

/* A read that never ends is nobody else's business. */
static void test_stats_hang(void **state)
{
	(void)state;
	begin_running();
	assert_int_equal(ask_stats("a", 4), POD_PENDING);
	assert_int_equal(send_signal("a", SIGUSR1), 0);
	assert_int_equal(seam.children[0].signal, SIGUSR1);
	assert_int_equal(add("b", 5), POD_PENDING);
	end_mount(0);
	assert_int_equal(start("b", 6), 0);
	expect_said("5ok ");
	assert_int_equal(shut_down(1000, 7), POD_PENDING);
	assert_int_equal(seam.children[0].signal, SIGTERM);
	expect_refused(ask_stats("a", 8), AGENT_E_STATE);
	end_app(0);
	end_app(0);
	assert_non_null(strstr(said, "4-32000 ")); /* killed with all that is left */
	said[0] = '\0';
	end_job(0);
	expect_said("7ok off ");
	end();
}

static void test_stats_limit(void **state)
{
	(void)state;
	begin_running();
	for (int i = 0; i < AGENT_STATS_MAX; i++)
		assert_int_equal(ask_stats("a", 4), POD_PENDING);
	expect_refused(ask_stats("a", 5), AGENT_E_LIMIT);
	pod_conn_closed(pod, 2);
	assert_int_equal(seam.children[1].signal, 0);
	pod_conn_closed(pod, 1);
	assert_int_equal(seam.children[1].signal, SIGKILL);
	expect_refused(ask_stats("a", 6), AGENT_E_LIMIT); /* until they are gone */
	end_job(0);
	assert_int_equal(ask_stats("a", 7), POD_PENDING);
	seam.no_fork = true;
	end_job(0);
	expect_refused(ask_stats("a", 8), AGENT_E_INTERNAL);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_attach),
		fixture_test(test_whole_app),
		fixture_test(test_exec),
		fixture_test(test_exec_streams),
		fixture_test(test_exec_ends_with_app),
		fixture_test(test_exec_refused),
		fixture_test(test_stats),
		fixture_test(test_stats_hang),
		fixture_test(test_stats_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
