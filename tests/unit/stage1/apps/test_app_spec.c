/* SPDX-License-Identifier: Apache-2.0 */
/* As apps_request() uses it: new limits of an app that is there. */
#include "stage1/apps/app_spec.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "lib/wire/stage1.h"
#include "tests/unit/stage1/apps/rig.h"

/* The manifest as stage0 has rewritten it: with limits of "web". */
static void put_limits(void **state, const char *isolators)
{
	cleanup_buf struct buf b;
	buf_init(&b, 4096);
	buf_printf(
		&b,
		"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":[{\"name\":\"web\","
		"\"image\":{\"id\":\"sha256-00\"},\"app\":{\"exec\":[\"/bin/true\"],"
		"\"workingDirectory\":\"/\",\"isolators\":[%s]}}]}",
		isolators);
	fixture_write(state, POD_FILE_MANIFEST, buf_data(&b), buf_len(&b));
}

/* The limits that the agent is asked for. */
static struct agent_app_update last_update(struct ctx *c)
{
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	struct agent_app_update m;
	expect_message(c, AGENT_APP_UPDATE, &msg);
	assert_int_equal(agent_app_update_decode(msg.body, &m), 0);
	assert_string_equal(m.app, "web");
	return m;
}

static void test_update(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	put_limits(state, "{\"name\":\"resource/memory\",\"value\":{\"limit\":\"64Mi\"}},"
			  "{\"name\":\"husk/pids-limit\",\"value\":9}");
	uint64_t t = begin(&c, APP_VERB_UPDATE, "web");
	struct agent_app_update m = last_update(&c);
	assert_int_equal(m.memory_max, 64 << 20);
	assert_int_equal(m.pids_max, 9);
	assert_int_equal(m.cpu_millis, 0);
	not_told(&c, t);
	agent_agrees(&c);
	told(&c, t, NULL);
	/* Also while it is started, and its refusal is nobody else's. */
	uint64_t s = begin(&c, APP_VERB_START, "web");
	expect_call(&c, AGENT_APP_START, "web", 0);
	agent_agrees(&c);
	told(&c, s, NULL);
	t = begin(&c, APP_VERB_UPDATE, "web");
	last_update(&c);
	agent_refuses(&c, "too little");
	told(&c, t, "app \"web\": too little");
	uint64_t stop = begin(&c, APP_VERB_STOP, "web");
	expect_call(&c, AGENT_APP_SIGNAL, "web", SIGTERM);
	t = begin(&c, APP_VERB_UPDATE, "web");
	last_update(&c);
	agent_refuses(&c, "too late");
	not_told(&c, stop);
	time_passes(&c); /* the end of its grace: a refusal does not take it away */
	assert_int_equal(c.loop.timers != NULL, true);
	teardown(&c);
}

static void test_update_refused(void **state)
{
	struct ctx c;
	setup(state, &c);
	refused(&c, APP_VERB_UPDATE, "web", -ENOENT, "error: nonexistent app \"web\"");
	uint64_t t = begin(&c, APP_VERB_ADD, "web");
	refused(&c, APP_VERB_UPDATE, "web", -EBUSY, "app \"web\" is being added or removed");
	expect_call(&c, AGENT_APP_ADD, "web", 0);
	agent_agrees(&c);
	told(&c, t, NULL);
	put_limits(state, "");
	t = begin(&c, APP_VERB_UPDATE, "web");
	last_update(&c);
	agent_agrees(&c);
	told(&c, t, NULL);
	teardown(&c);
}

/* Who asked has left, and the next asks: what the manifest has last is what counts. */
static void test_update_of_update(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	put_limits(state, "{\"name\":\"husk/pids-limit\",\"value\":9}");
	uint64_t first = begin(&c, APP_VERB_UPDATE, "web");
	assert_int_equal(last_update(&c).pids_max, 9);
	apps_forget(c.apps, first);
	put_limits(state, "{\"name\":\"husk/pids-limit\",\"value\":8}");
	uint64_t second = begin(&c, APP_VERB_UPDATE, "web");
	expect_no_call(&c);
	agent_refuses(&c, "too little");
	not_told(&c, first);
	not_told(&c, second);
	assert_int_equal(last_update(&c).pids_max, 8);
	agent_agrees(&c);
	told(&c, second, NULL);
	/* The manifest cannot be read then. */
	begin(&c, APP_VERB_UPDATE, "web");
	last_update(&c);
	uint64_t third = begin(&c, APP_VERB_UPDATE, "web");
	assert_int_equal(unlinkat(fixture_dir(state), POD_FILE_MANIFEST, 0), 0);
	agent_agrees(&c);
	assert_int_equal(c.told[third].code, -ENOENT);
	expect_no_call(&c);
	teardown(&c);
}

/* Whoever waits for one that the agent never answers is not taken for the next of that slot. */
static void test_update_of_removed(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	uint64_t t = begin(&c, APP_VERB_UPDATE, "web");
	last_update(&c);
	uint64_t rm = begin(&c, APP_VERB_RM, "web");
	expect_call(&c, AGENT_APP_REMOVE, "web", 0);
	agent_agrees(&c);
	told(&c, rm, NULL);
	told(&c, t, "app \"web\" was removed");
	teardown(&c);
}

/* Others are not for a pod whose apps stay as they are. */
static void test_immutable(void **state)
{
	struct ctx c;
	setup(state, &c);
	add(&c, "web");
	c.plan.is_mutable = false;
	for (int verb = 0; verb < APP_VERB_COUNT_; verb++)
		if (verb < APP_VERB_UPDATE)
			refused(&c, (enum app_verb)verb, "web", -EPERM, "immutable pod");
	for (int verb = APP_VERB_SIGNAL; verb < APP_VERB_COUNT_; verb++)
		refused(&c, (enum app_verb)verb, "web", -ESRCH, "app \"web\" is not running");
	uint64_t t = begin(&c, APP_VERB_UPDATE, "web");
	last_update(&c);
	agent_agrees(&c);
	told(&c, t, NULL);
	teardown(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_update),           fixture_test(test_update_refused),
		fixture_test(test_update_of_update), fixture_test(test_update_of_removed),
		fixture_test(test_immutable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
