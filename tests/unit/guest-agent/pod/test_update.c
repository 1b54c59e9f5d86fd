/* SPDX-License-Identifier: Apache-2.0 */
/* With real processes; files stand for those of the kernel. */
#include "guest-agent/pod/update.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/cgroup.h"
#include "tests/support/fixture.h"

static struct cgroup_dir groups;
static struct cgroup_limits limits;
static struct updated app = { &groups, 0, &limits };
static struct update update;
static struct fault fault;

static void put_group(void **state, const char *number, const char *used)
{
	static const char *const files[] = { "memory.max", "memory.swap.max", "memory.high",
					     "pids.max" };
	char name[64];
	assert_int_equal(mkdirat(fixture_dir(state), number, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(name, sizeof(name), "%s/%s", number, files[i]);
		fixture_write(state, name, "", 0);
	}
	snprintf(name, sizeof(name), "%s/memory.current", number);
	fixture_write(state, name, used, strlen(used));
}

static void begin(void **state, unsigned cgroup)
{
	put_group(state, "1", "4096");
	put_group(state, "2", "4096");
	groups.path = fixture_path(state);
	app.cgroup = cgroup;
	limits = (struct cgroup_limits){ 0 };
	update = UPDATE_INIT;
	fault = (struct fault){ 0 };
}

static int64_t limit_of(unsigned cgroup)
{
	struct agent_app_stats m;
	cgroup_stats(&groups, cgroup, &m);
	return m.memory_limit;
}

static int start(int64_t memory, int64_t pids)
{
	const struct agent_app_update m = { .app = "a", .memory_max = memory, .pids_max = pids };
	return update_start(&update, &app, &m, (struct pod_caller){ 1, 7 }, &fault);
}

/* Waits for the process that is at work. */
static bool finish(void)
{
	int status;
	assert_int_equal(waitpid(update.job.pid, &status, 0), update.job.pid);
	return update_finish(&update, &app, &fault);
}

static void test_done(void **state)
{
	begin(state, 1);
	assert_int_equal(start(8192, 3), UPDATE_PENDING);
	assert_int_equal(update.caller.id, 7);
	assert_int_equal(limits.memory_max, 0); /* not yet */
	assert_true(finish());
	assert_int_equal(fault.code, 0);
	assert_int_equal(update.job.pid, 0);
	assert_int_equal(limits.memory_max, 8192);
	assert_int_equal(limits.pids_max, 3);
	assert_int_equal(limit_of(1), 8192);
	assert_int_equal(limit_of(2), -1);
}

static void test_refused(void **state)
{
	begin(state, 1);
	limits.memory_max = 16384;
	assert_int_equal(start(4095, 3), UPDATE_PENDING);
	assert_true(finish());
	assert_int_equal(fault.code, AGENT_E_STATE);
	assert_int_equal(limits.memory_max, 16384);
	assert_int_equal(limits.pids_max, 0);
}

/* One that does not run: what it gets when it is started. */
static void test_without_group(void **state)
{
	begin(state, 0);
	assert_int_equal(start(8192, 3), 0);
	assert_int_equal(limits.memory_max, 8192);
	assert_int_equal(update.job.pid, 0);
	assert_int_equal(limit_of(1), -1);
}

/* It ends meanwhile, and may be started again, with what it had until then. */
static void test_restarted(void **state)
{
	begin(state, 1);
	assert_int_equal(start(8192, 3), UPDATE_PENDING);
	app.cgroup = 2;
	assert_false(finish());
	assert_true(finish());
	assert_int_equal(fault.code, 0);
	assert_int_equal(limit_of(2), 8192);
	assert_int_equal(limits.memory_max, 8192);
	assert_int_equal(start(9000, 3), UPDATE_PENDING);
	app.cgroup = 0;
	assert_true(finish());
	assert_int_equal(fault.code, 0);
	assert_int_equal(limits.memory_max, 9000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_done),
		fixture_test(test_refused),
		fixture_test(test_without_group),
		fixture_test(test_restarted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
