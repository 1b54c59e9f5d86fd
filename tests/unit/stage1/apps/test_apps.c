/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/apps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/apps/waiters.h"
#include "tests/unit/stage1/apps/rig.h"

static void test_life(void **state)
{
	struct ctx c;
	setup(state, &c);
	assert_false(apps_all_exited(c.apps));
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	not_told(&c, t);
	assert_false(exists(POD_DIR_STATUS "/web-created"));
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL);
	assert_true(exists(POD_DIR_STATUS "/web-created"));
	refused(&c, APP_VERB_ADD, "web", -EEXIST, "error: multiple apps with name web");
	refused(&c, APP_VERB_STOP, "web", -ESRCH, "app \"web\" is not running");
	start(&c, "web");
	assert_true(exists(POD_DIR_STATUS "/web-started"));
	struct err e = ERR_INIT;
	assert_int_equal(ask_with_grace(&c, APP_VERB_START, "web", 0, &e), 0); /* it runs */
	t = begin(&c, APP_VERB_STOP, "web");
	assert_true(exists(POD_DIR_STATUS "/web-stopping"));
	refused(&c, APP_VERB_START, "web", -EBUSY,
		"app \"web\" is being added, stopped or removed");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	agent_agrees(&c);
	not_told(&c, t);
	app_exits(&c, "web", 0, SIGTERM);
	assert_int_equal(c.exited_result, 0);
	told(&c, t, NULL);
	assert_true(c.exit_on_request);
	assert_int_equal(c.exit_status, SIGTERM);
	assert_true(exists(POD_DIR_STATUS "/web"));
	assert_false(exists(POD_DIR_STATUS "/web-stopping"));
	assert_true(apps_all_exited(c.apps));
	t = begin(&c, APP_VERB_RM, "web");
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL);
	assert_false(apps_all_exited(c.apps)); /* there are none */
	assert_int_equal(ask_with_grace(&c, APP_VERB_RM, "web", 0, &e), 0);
	add(&c, "web"); /* the name is free again, and the LUN */
	teardown(&c);
}

static void test_unknown(void **state)
{
	struct ctx c;
	setup(state, &c);
	refused(&c, APP_VERB_START, "none", -ENOENT, "error: nonexistent app \"none\"");
	refused(&c, APP_VERB_STOP, "none", -ENOENT, "error: nonexistent app \"none\"");
	refused(&c, APP_VERB_RM, "none", 0, ""); /* one that never came so far */
	refused(&c, APP_VERB_ADD, "none", -ENOENT,
		"app \"none\": the pod manifest has none of that name");
	assert_int_equal(unlink(POD_DIR_APPS "/web/" POD_FILE_ROOTFS), 0);
	refused(&c, APP_VERB_ADD, "web", -ENOENT,
		"app \"web\": its image \"apps/web/rootfs\": No such file or directory");
	c.pod.is_early = true;
	refused(&c, APP_VERB_ADD, "other", -ENOTCONN,
		"app \"other\": cannot plug its disk: Transport endpoint is not connected");
	c.pod.is_early = false;
	add(&c, "other"); /* nothing of it was left */
	teardown(&c);
}

static void test_backend_refuses_add(void **state)
{
	struct ctx c;
	setup(state, &c);
	c.refuses_plug = true;
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	told(&c, t, "refused");
	expect_no_call(&c);
	c.refuses_plug = false;
	add(&c, "web");
	teardown(&c);
}

/* A slot in which something may be left is not used again: the fake aborts if it is. */
static void test_slot_is_lost(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	c.refuses_unplug = true;
	uint64_t t = begin(&c, APP_VERB_RM, "web");
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL); /* the app is gone */
	refused(&c, APP_VERB_RM, "web", 0, "");
	add(&c, "web");
	c.refuses_plug = true;
	t = begin(&c, APP_VERB_ADD, "other");
	told(&c, t, "refused");
	c.refuses_plug = false;
	add(&c, "other");
	start(&c, "other");
	app_exits(&c, "other", 0, 0);
	assert_false(apps_all_exited(c.apps)); /* web was never started */
	teardown(&c);
}

static void test_agent_refuses_add(void **state)
{
	struct ctx c;
	setup(state, &c);
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	refused(&c, APP_VERB_RM, "web", -EBUSY, "app \"web\" is being added or started");
	refused(&c, APP_VERB_START, "web", -EBUSY,
		"app \"web\" is being added, stopped or removed");
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	agent_refuses(&c, "no such user");
	told(&c, t, "no such user");
	assert_false(exists(POD_DIR_STATUS "/web-created"));
	refused(&c, APP_VERB_RM, "web", 0, "");
	add(&c, "web");
	assert_int_equal(c.failures, 0);
	teardown(&c);
}

/* Removes "web", whose disk is not out yet when that is answered. */
static void remove_web(struct ctx *c)
{
	uint64_t t = begin(c, APP_VERB_RM, "web");
	expect_call(c, AGENT_APP_REMOVE, "web", 0);
	c->is_silent = true;
	agent_agrees(c);
	told(c, t, NULL);
	refused(c, APP_VERB_START, "web", -ENOENT, "error: nonexistent app \"web\"");
}

/* An app is gone when the agent says so; its disk is nobody's affair any more but the slot's. */
static void test_rm_while_unplugging(void **state)
{
	struct ctx c;
	setup(state, &c);
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	c.is_silent = true;
	agent_refuses(&c, "no");
	told(&c, t, "no");
	refused(&c, APP_VERB_RM, "web", 0, "");
	c.is_silent = false;
	add(&c, "web");
	remove_web(&c);
	c.is_silent = false;
	add(&c, "web");
	teardown(&c);
}

/* As many apps as a pod may have, "web" among them. */
static void fill(struct ctx *c)
{
	char name[16];
	add(c, "web");
	add(c, "other");
	for (int i = 3; i < AGENT_APPS_MAX; i++) {
		snprintf(name, sizeof(name), "app%d", i);
		add(c, name);
	}
	add(c, "late");
}

static void no_room(struct ctx *c)
{
	refused(c, APP_VERB_ADD, "one-more", -E2BIG,
		"app \"one-more\": the pod has room for 32 apps (remove one)");
}

/* In a full pod the next app waits until the slot of a removed one has no disk; one, not two. */
static void test_add_while_unplugging(void **state)
{
	struct ctx c;
	setup(state, &c);
	fill(&c);
	remove_web(&c);
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	no_room(&c);
	refused(&c, APP_VERB_ADD, "web", -EEXIST, "error: multiple apps with name web");
	refused(&c, APP_VERB_RM, "web", -EBUSY, "app \"web\" is being added or started");
	not_told(&c, t);
	c.is_silent = false;
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	not_told(&c, t);
	agent_agrees(&c);
	told(&c, t, NULL);
	start(&c, "web");
	teardown(&c);
}

/* Nor is it plugged where something was left. */
static void test_awaited_slot_is_lost(void **state)
{
	struct ctx c;
	setup(state, &c);
	fill(&c);
	remove_web(&c);
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	c.is_silent = false;
	c.refuses_unplug = true;
	turns(&c);
	told(&c, t, "app \"web\": its slot has kept the disk of another (try again)");
	no_room(&c);
	teardown(&c);
}

static void test_agent_refuses_start(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	uint64_t t = begin(&c, APP_VERB_START, "web");
	uint64_t also = begin(&c, APP_VERB_START, "web");
	refused(&c, APP_VERB_STOP, "web", -EBUSY, "app \"web\" is being started");
	expect_call(&c, AGENT_APP_START, "web", 0);
	expect_no_call(&c); /* once for both */
	agent_refuses(&c, "not now");
	told(&c, t, "not now");
	told(&c, also, "not now");
	assert_false(exists(POD_DIR_STATUS "/web-started"));
	assert_false(apps_all_exited(c.apps)); /* it has never run */
	start(&c, "web");
	teardown(&c);
}

static void test_agent_refuses_remove(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	uint64_t t = begin(&c, APP_VERB_RM, "web");
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	agent_refuses(&c, "in use");
	told(&c, t, "in use");
	t = begin(&c, APP_VERB_RM, "web");
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL);
	teardown(&c);
}

/* A signal that comes too late is refused; the news of the end counts. */
static void test_agent_refuses_signal(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	uint64_t t = begin(&c, APP_VERB_STOP, "web");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	agent_refuses(&c, "is not running");
	not_told(&c, t);
	app_exits(&c, "web", 3, 0);
	told(&c, t, NULL);
	teardown(&c);
}

/* The status of an app that is started, and ends. */
static int status_of_end(struct ctx *c, int code, int sig, bool oom)
{
	start(c, "web");
	app_ends(c, "web", code, sig, oom);
	end_streams(c);
	assert_int_equal(c->exited_result, 0);
	return c->exit_status;
}

/* What is killed because another app has failed is 0; what ends otherwise meanwhile is not. */
static void test_end_after_failure(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	assert_int_equal(status_of_end(&c, 0, SIGTERM, false), SIGTERM);
	apps_end_after_failure(c.apps);
	assert_int_equal(status_of_end(&c, 0, SIGTERM, false), 0);
	assert_int_equal(status_of_end(&c, 0, SIGKILL, false), 0);
	assert_int_equal(status_of_end(&c, 0, SIGKILL, true), SIGKILL); /* by the kernel */
	assert_int_equal(status_of_end(&c, 0, SIGSEGV, false), SIGSEGV);
	assert_int_equal(status_of_end(&c, 6, 0, false), 6);
	teardown(&c);
}

/* What an app that does not run is said to have done is not a message of the protocol. */
static void test_exit_of_what_does_not_run(void **state)
{
	struct ctx c;
	setup(state, &c);
	app_exits(&c, "web", 0, 0);
	assert_int_equal(c.exited_result, -EPROTO);
	begin(&c, APP_VERB_ADD, "web");
	app_exits(&c, "web", 0, 0);
	assert_int_equal(c.exited_result, -EPROTO);
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	agent_agrees(&c);
	app_exits(&c, "web", 0, 0);
	assert_int_equal(c.exited_result, -EPROTO);
	begin(&c, APP_VERB_START, "web");
	app_exits(&c, "web", 0, 0);
	assert_int_equal(c.exited_result, -EPROTO);
	expect_call(&c, AGENT_APP_START, "web", 0);
	agent_agrees(&c);
	app_exits(&c, "web", 7, 0);
	assert_int_equal(c.exited_result, 0);
	assert_int_equal(c.exit_status, 7);
	assert_false(c.exit_on_request);
	app_exits(&c, "web", 7, 0);
	assert_int_equal(c.exited_result, -EPROTO);
	begin(&c, APP_VERB_RM, "web");
	app_exits(&c, "web", 7, 0);
	assert_int_equal(c.exited_result, -EPROTO);
	assert_int_equal(c.exits, 1);
	teardown(&c);
}

/* Started again as soon as what it wrote before has been read. */
static void test_restart(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	app_exits(&c, "web", 1, 0);
	assert_true(exists(POD_DIR_STATUS "/web"));
	uint64_t t = begin(&c, APP_VERB_START, "web");
	expect_no_call(&c);
	refused(&c, APP_VERB_STOP, "web", -EBUSY, "app \"web\" is being started");
	refused(&c, APP_VERB_RM, "web", -EBUSY, "app \"web\" is being added or started");
	assert_int_equal(write(c.streams[0], "last words\n", 11), 11);
	end_streams(&c);
	expect_call(&c, AGENT_APP_START, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL);
	assert_false(exists(POD_DIR_STATUS "/web"));
	char text[256] = "";
	cleanup_fd int fd = open(POD_DIR_LOGS "/web", O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "last words"));
	teardown(&c);
}

/* A process that the app has left behind may hold its output open: that is not waited for long. */
static void test_restart_without_end_of_output(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	app_exits(&c, "web", 1, 0);
	uint64_t t = begin(&c, APP_VERB_START, "web");
	expect_no_call(&c);
	time_passes(&c);
	expect_call(&c, AGENT_APP_START, "web", 0);
	agent_refuses(&c, "no");
	told(&c, t, "no");
	assert_true(apps_all_exited(c.apps));
	teardown(&c);
}

static void test_kill_after_grace(void **state)
{
	struct ctx c;
	struct err e = ERR_INIT;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	assert_int_equal(ask_with_grace(&c, APP_VERB_STOP, "web", 200, &e), APPS_PENDING);
	uint64_t t = c.last_token;
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	agent_agrees(&c);
	do /* the time passes; more than noting the stop takes on a busy disk */
		assert_int_equal(loop_turn(&c.loop), 0);
	while (c.loop.timers->deadline_ns - clock_monotonic_ns() < NS_PER_SEC);
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGKILL);
	agent_agrees(&c);
	not_told(&c, t);
	time_passes(&c);
	told(&c, t, "app \"web\": it did not end, although it was killed");
	/* Who asks again is not left waiting for ever: it is killed again. */
	t = begin(&c, APP_VERB_STOP, "web");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGKILL);
	agent_agrees(&c);
	app_exits(&c, "web", 0, SIGKILL);
	told(&c, t, NULL);
	teardown(&c);
}

/* Its own signal asks an app to end, and is what it ends of on request. */
static void test_stop_signal(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "late");
	start(&c, "late");
	uint64_t t = begin(&c, APP_VERB_STOP, "late");
	expect_call(&c, AGENT_APP_SIGNAL, "late", SIGQUIT);
	agent_agrees(&c);
	app_exits(&c, "late", 0, SIGQUIT);
	told(&c, t, NULL);
	assert_int_equal(c.exit_status, SIGQUIT);
	apps_end_after_failure(c.apps);
	end_streams(&c);
	start(&c, "late");
	app_exits(&c, "late", 0, SIGTERM);
	assert_int_equal(c.exit_status, SIGTERM);
	end_streams(&c);
	start(&c, "late");
	app_exits(&c, "late", 0, SIGQUIT);
	assert_int_equal(c.exit_status, 0);
	teardown(&c);
}

/*
 * A second stop can only make the end come sooner. A signal waits for the reply to the one before.
 */
static void test_shorter_grace(void **state)
{
	struct ctx c;
	struct err e = ERR_INIT;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	uint64_t one = begin(&c, APP_VERB_STOP, "web");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	assert_int_equal(ask_with_grace(&c, APP_VERB_STOP, "web", 0, &e), APPS_PENDING);
	uint64_t two = c.last_token;
	uint64_t three = begin(&c, APP_VERB_STOP, "web");
	expect_no_call(&c);
	agent_agrees(&c);
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGKILL);
	agent_agrees(&c);
	expect_no_call(&c);
	app_exits(&c, "web", 0, SIGKILL);
	told(&c, one, NULL);
	told(&c, two, NULL);
	told(&c, three, NULL);
	teardown(&c);
}

/* Asks for a signal, for all processes if it is negative, which is answered at once. */
static int ask_signal(struct ctx *c, int number, struct err *e)
{
	struct app_request q = {
		.verb = APP_VERB_SIGNAL, .app = "web", .signal = abs(number), .all = number < 0
	};
	int r = apps_request(c->apps, &q, ++c->last_token, e);
	turns(c);
	return r;
}

/*
 * Signals that come while one is under way are sent afterwards, each of them once. Who has ended
 * gets none, those that waited for him neither.
 */
static void test_signals(void **state)
{
	struct ctx c;
	struct err e = ERR_INIT;
	setup(state, &c);
	assert_int_equal(ask_signal(&c, SIGHUP, &e), -ENOENT);
	add(&c, "web");
	assert_int_equal(ask_signal(&c, SIGHUP, &e), -ESRCH);
	assert_string_equal(e.text, "app \"web\" is not running");
	start(&c, "web");
	assert_int_equal(ask_signal(&c, SIGTERM, &e), 0);
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	assert_int_equal(ask_signal(&c, AGENT_SIGNAL_MAX, &e), 0);
	assert_int_equal(ask_signal(&c, SIGHUP, &e), 0);
	assert_int_equal(ask_signal(&c, SIGHUP, &e), 0);
	assert_int_equal(ask_signal(&c, -SIGHUP, &e), 0);
	expect_no_call(&c);
	agent_agrees(&c);
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGHUP);
	agent_agrees(&c);
	expect_call(&c, AGENT_APP_SIGNAL, "web", AGENT_SIGNAL_MAX);
	agent_agrees(&c);
	expect_call(&c, AGENT_APP_SIGNAL, "web", -SIGHUP);
	assert_int_equal(ask_signal(&c, SIGUSR1, &e), 0);
	app_exits(&c, "web", 0, AGENT_SIGNAL_MAX);
	agent_agrees(&c);
	expect_no_call(&c);
	assert_int_equal(ask_signal(&c, SIGHUP, &e), -ESRCH);
	teardown(&c);
}

/* Whether it stands still the agent says; one who asks meanwhile hears that he has to wait. */
static void test_pause(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	refused(&c, APP_VERB_PAUSE, "web", -ESRCH, "app \"web\" is not running");
	start(&c, "web");
	uint64_t t = begin(&c, APP_VERB_PAUSE, "web");
	expect_call(&c, AGENT_APP_FREEZE, "web", 0);
	not_told(&c, t);
	refused(&c, APP_VERB_RESUME, "web", -EBUSY,
		"app \"web\": cannot ask the agent to pause it: Device or resource busy");
	agent_agrees(&c);
	told(&c, t, NULL);
	t = begin(&c, APP_VERB_RESUME, "web");
	expect_call(&c, AGENT_APP_FREEZE, "web", 0);
	agent_refuses(&c, "no");
	told(&c, t, "no");
	t = begin(&c, APP_VERB_PAUSE, "web"); /* who ends meanwhile will not stand still */
	expect_call(&c, AGENT_APP_FREEZE, "web", 0);
	app_exits(&c, "web", 0, SIGKILL);
	told(&c, t, "app \"web\" is not running");
	teardown(&c);
}

/* rm of an app that runs stops it first; so does one of an app that is being stopped. */
static void test_rm_of_running(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	uint64_t stop = begin(&c, APP_VERB_STOP, "web");
	uint64_t rm = begin(&c, APP_VERB_RM, "web");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	agent_agrees(&c);
	app_exits(&c, "web", 0, SIGTERM);
	told(&c, stop, NULL);
	not_told(&c, rm);
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	uint64_t again = begin(&c, APP_VERB_RM, "web");
	expect_no_call(&c);
	agent_agrees(&c);
	told(&c, rm, NULL);
	told(&c, again, NULL);
	teardown(&c);
}

/*
 * The agent does not answer: whoever asked is told, also who asks later, and a late answer counts.
 */
static void test_silent_agent(void **state)
{
	static const char silence[] = "app \"web\": the agent does not answer";
	struct ctx c;
	setup(state, &c);
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	time_passes(&c);
	told(&c, t, silence);
	agent_agrees(&c);
	t = begin(&c, APP_VERB_START, "web");
	expect_call(&c, AGENT_APP_START, "web", 0);
	time_passes(&c);
	told(&c, t, silence);
	t = begin(&c, APP_VERB_START, "web");
	not_told(&c, t);
	expect_no_call(&c);
	time_passes(&c);
	told(&c, t, silence);
	agent_agrees(&c);
	app_exits(&c, "web", 0, 0);
	assert_int_equal(c.exited_result, 0);
	for (int i = 0; i < 2; i++) {
		t = begin(&c, APP_VERB_RM, "web");
		time_passes(&c);
		told(&c, t, silence);
	}
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	agent_agrees(&c);
	refused(&c, APP_VERB_RM, "web", 0, "");
	teardown(&c);
}

static void test_agent_is_gone(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	add(&c, "other");
	start(&c, "other");
	control_close(&c.control);
	uint64_t t = begin(&c, APP_VERB_STOP, "other");
	told(&c, t,
	     "app \"other\": cannot ask the agent to stop it: Transport endpoint is not "
	     "connected");
	for (int i = 0; i < 2; i++) { /* the app stays as it was */
		t = begin(&c, APP_VERB_START, "web");
		told(&c, t,
		     "app \"web\": cannot ask the agent for its start: Transport endpoint "
		     "is not connected");
		t = begin(&c, APP_VERB_RM, "web");
		told(&c, t,
		     "app \"web\": cannot ask the agent to remove it: Transport endpoint is "
		     "not connected");
	}
	t = begin(&c, APP_VERB_ADD, "late");
	told(&c, t,
	     "app \"late\": cannot ask the agent for it: Transport endpoint is not "
	     "connected");
	teardown(&c);
}

/* Who has left is not counted among those who wait. */
static void test_waiters(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	uint64_t first = begin(&c, APP_VERB_STOP, "web");
	for (int i = 1; i < WAITERS_MAX; i++)
		begin(&c, APP_VERB_STOP, "web");
	refused(&c, APP_VERB_STOP, "web", -EAGAIN,
		"app \"web\": 32 requests wait already (try again)");
	refused(&c, APP_VERB_ADD, "other", -EAGAIN,
		"app \"other\": 32 requests wait already (try again)");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	apps_forget(c.apps, first);
	uint64_t last = begin(&c, APP_VERB_STOP, "web");
	app_exits(&c, "web", 0, 0);
	not_told(&c, first);
	told(&c, last, NULL);
	apps_forget(c.apps, last);
	add(&c, "other");
	teardown(&c);
}

static void test_most_apps(void **state)
{
	struct ctx c;
	setup(state, &c);
	fill(&c);
	no_room(&c);
	teardown(&c);
}

static void test_abort(void **state)
{
	struct ctx c;
	struct err e = ERR_INIT;
	setup(state, &c);
	add(&c, "web");
	start(&c, "web");
	uint64_t tokens[] = { begin(&c, APP_VERB_ADD, "other"), begin(&c, APP_VERB_STOP, "web"),
			      begin(&c, APP_VERB_RM, "web") };
	err_set(&e, -ESHUTDOWN, "the pod is shutting down");
	apps_abort(c.apps, &e);
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++)
		told(&c, tokens[i], "the pod is shutting down");
	app_exits(&c, "web", 0, 0); /* nobody is told again */
	teardown(&c);
}

/* A stream that breaks is the trouble of one app, not of the pod. */
static void test_stream_breaks(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	uint64_t t = begin(&c, APP_VERB_START, "web");
	expect_call(&c, AGENT_APP_START, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL);
	fd_close(accept4(c.listener, NULL, NULL, SOCK_CLOEXEC));
	turns(&c);
	assert_int_equal(c.stream_errors, 0);
	assert_int_equal(c.failures, 0);
	teardown(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_life),

		fixture_test(test_unknown),
		fixture_test(test_backend_refuses_add),
		fixture_test(test_slot_is_lost),
		fixture_test(test_agent_refuses_add),
		fixture_test(test_rm_while_unplugging),
		fixture_test(test_add_while_unplugging),
		fixture_test(test_awaited_slot_is_lost),
		fixture_test(test_agent_refuses_start),
		fixture_test(test_agent_refuses_remove),
		fixture_test(test_agent_refuses_signal),
		fixture_test(test_end_after_failure),
		fixture_test(test_exit_of_what_does_not_run),
		fixture_test(test_restart),
		fixture_test(test_restart_without_end_of_output),
		fixture_test(test_kill_after_grace),
		fixture_test(test_stop_signal),
		fixture_test(test_shorter_grace),
		fixture_test(test_signals),
		fixture_test(test_pause),
		fixture_test(test_rm_of_running),
		fixture_test(test_silent_agent),
		fixture_test(test_agent_is_gone),
		fixture_test(test_waiters),
		fixture_test(test_most_apps),
		fixture_test(test_abort),
		fixture_test(test_stream_breaks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
