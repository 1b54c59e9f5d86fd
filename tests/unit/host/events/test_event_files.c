/* SPDX-License-Identifier: Apache-2.0 */
#include "host/events/event_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static struct pod_seen seen;

/* Writes @name and gives it the mtime @seconds. */
static void put(void **state, const char *name, const char *text, time_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	fixture_write(state, name, text, strlen(text));
	assert_int_equal(utimensat(fixture_dir(state), name, times, 0), 0);
}

static void observe(void **state, bool over)
{
	memset(&seen, 0, sizeof(seen));
	seen.over = over;
	assert_int_equal(pod_observe(fixture_dir(state), &seen), 0);
}

/* The app of that name, which has been seen. */
static const struct app_seen *app(const char *name)
{
	size_t i = 0;
	while (i < seen.n_apps && strcmp(seen.apps[i].name, name) != 0)
		i++;
	assert_true(i < seen.n_apps);
	return &seen.apps[i];
}

static void test_empty(void **state)
{
	struct stat st;
	observe(state, false);
	assert_int_equal(seen.n_apps, 0);
	assert_int_equal(seen.created_ns, 0);
	assert_int_equal(seen.started_ns, 0);
	assert_int_equal(seen.ready_ns, 0);
	assert_string_equal(seen.ips, "");
	assert_int_equal(fstat(fixture_dir(state), &st), 0);
	assert_int_equal(seen.changed_ns, st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec);
	assert_int_equal(seen.moved_ns, st.st_ctim.tv_sec * NS_PER_SEC + st.st_ctim.tv_nsec);
	assert_true(seen.now_ns >= seen.changed_ns);
}

static void test_times(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "status", 0750), 0);
	put(state, "pod", "{}", 99);
	observe(state, false);
	assert_int_equal(seen.created_ns, 99 * NS_PER_SEC);
	put(state, "pod-created", "", 100);
	put(state, "pid", "17\n", 101);
	put(state, "ready", "", 105);
	put(state, POD_FILE_NET_INFO,
	    "[{\"netName\":\"a\",\"ifName\":\"eth0\",\"ips\":[\"fd00::1/64\",\"10.0.0.1/24\"]}]",
	    105);
	put(state, "status/web-created", "", 102);
	put(state, "status/web-started", "", 103);
	put(state, "status/web-oom", "", 106);
	put(state, "status/web-reason", "9\nkilled\n", 106);
	put(state, "status/web", "9\n", 107);
	put(state, "status/cut", "15\n", 107);
	put(state, "status/cut-reason", "15\n", 107);
	put(state, "status/db-1-started", "", 104);
	/* What is not an app's. */
	put(state, "status/.web.0123456789abcdef", "7\n", 108);
	put(state, "status/Web", "7\n", 108);
	put(state, "status/-started", "", 108);
	put(state, "status/x--", "", 108);
	observe(state, false);
	assert_int_equal(seen.created_ns, 100 * NS_PER_SEC);
	assert_int_equal(seen.started_ns, 101 * NS_PER_SEC);
	assert_int_equal(seen.ready_ns, 105 * NS_PER_SEC);
	assert_string_equal(seen.ips, "10.0.0.1 fd00::1");
	assert_int_equal(seen.n_apps, 3);
	assert_int_equal(app("web")->created_ns, 102 * NS_PER_SEC);
	assert_int_equal(app("web")->started_ns, 103 * NS_PER_SEC);
	assert_int_equal(app("web")->oom_ns, 106 * NS_PER_SEC);
	assert_int_equal(app("web")->exited_ns, 107 * NS_PER_SEC);
	assert_int_equal(app("web")->exit_code, 9);
	assert_int_equal(app("web")->end, APP_END_OOM_KILLED);
	assert_int_equal(app("web")->signal, 9);
	assert_int_equal(app("cut")->end, APP_END_SIGNALED);
	assert_int_equal(app("cut")->signal, 15);
	assert_int_equal(app("db-1")->end, APP_END_NONE);
	assert_int_equal(app("db-1")->created_ns, 0);
	assert_int_equal(app("db-1")->started_ns, 104 * NS_PER_SEC);
	assert_int_equal(app("db-1")->exited_ns, 0);
}

/* A status file that has no number yet is waited for; that of a dead writer is not. */
static void test_incomplete(void **state)
{
	static const char *const texts[] = { "", "x", "256", "-1", "7 8" };
	assert_int_equal(mkdirat(fixture_dir(state), "status", 0750), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		put(state, "status/a", texts[i], 107);
		observe(state, false);
		assert_int_equal(app("a")->exited_ns, 0);
		observe(state, true);
		assert_int_equal(app("a")->exited_ns, 107 * NS_PER_SEC);
		assert_int_equal(app("a")->exit_code, 1);
	}
}

static void test_hostile(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "status", 0750), 0);
	assert_int_equal(symlinkat("/etc/passwd", dir, "status/link"), 0);
	assert_int_equal(mkfifoat(dir, "status/fifo", 0600), 0);
	assert_int_equal(mkdirat(dir, "status/dir", 0700), 0);
	observe(state, false);
	assert_int_equal(seen.n_apps, 3);
	for (size_t i = 0; i < seen.n_apps; i++)
		assert_int_equal(seen.apps[i].exited_ns, 0);
	observe(state, true);
	for (size_t i = 0; i < seen.n_apps; i++)
		assert_int_equal(seen.apps[i].exit_code, 1);
}

static void test_status_is_a_link(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "elsewhere", 0750), 0);
	put(state, "elsewhere/one", "7", 107);
	assert_int_equal(symlinkat("elsewhere", dir, "status"), 0);
	observe(state, true);
	assert_int_equal(seen.n_apps, 0);
}

static void test_limit_of_apps(void **state)
{
	char name[64];
	assert_int_equal(mkdirat(fixture_dir(state), "status", 0750), 0);
	for (size_t i = 0; i < POD_SEEN_APPS_MAX; i++) {
		snprintf(name, sizeof(name), "status/app-%zu-started", i);
		put(state, name, "", 103);
	}
	observe(state, false);
	assert_int_equal(seen.n_apps, POD_SEEN_APPS_MAX);
	put(state, "status/one-more", "0\n", 104);
	assert_int_equal(pod_observe(fixture_dir(state), &seen), OBSERVE_APPS);
	assert_int_equal(seen.n_apps, POD_SEEN_APPS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_empty),
		fixture_test(test_times),
		fixture_test(test_incomplete),
		fixture_test(test_hostile),
		fixture_test(test_status_is_a_link),
		fixture_test(test_limit_of_apps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
