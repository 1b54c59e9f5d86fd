/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/info.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "tests/support/fixture.h"

#define MANIFEST                                                                 \
	"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":["        \
	"{\"name\":\"one\",\"image\":{\"id\":\"sha256-11\",\"name\":\"img:1\"}," \
	"\"app\":{\"exec\":[\"a\"]}},"                                           \
	"{\"name\":\"two\",\"image\":{\"id\":\"sha256-22\"},\"app\":{\"exec\":[\"b\"]}}]}"

static struct pod fixture_pod(void **state, enum pod_phase phase, bool locked)
{
	return (struct pod){ .uuid = { "12345678-1234-4123-8123-123456789abc" },
			     .phase = phase,
			     .locked = locked,
			     .fd = fixture_dir(state) };
}

/* Writes @name and gives it the mtime @seconds. */
static void put(void **state, const char *name, const char *text, time_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };
	fixture_write(state, name, text, strlen(text));
	assert_int_equal(utimensat(fixture_dir(state), name, times, 0), 0);
}

static void put_pod(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "status", 0750), 0);
	put(state, "pod", MANIFEST, 1000);
	put(state, "pod-created", "", 1001);
}

static struct pod_info read_info(void **state, enum pod_phase phase, bool locked)
{
	struct pod_info info = POD_INFO_INIT;
	struct pod p = fixture_pod(state, phase, locked);
	assert_int_equal(pod_info_read(NULL, &p, &info), 0);
	return info;
}

static void test_running(void **state)
{
	put_pod(state);
	put(state, "pid", "4711\n", 1002);
	put(state, "status/one-created", "", 1003);
	put(state, "status/one-started", "", 1004);
	put(state, "status/two-created", "", 1005);
	cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, true);
	assert_int_equal(info.problem.code, 0);
	assert_int_equal(info.state, POD_STATE_RUNNING);
	assert_int_equal(info.created_ns, 1001 * NS_PER_SEC);
	assert_int_equal(info.started_ns, 1002 * NS_PER_SEC);
	assert_int_equal(info.pid, 4711);
	assert_int_equal(info.n_apps, 2);
	assert_string_equal(info.apps[0].name, "one");
	assert_string_equal(info.apps[0].image_name, "img:1");
	assert_string_equal(info.apps[0].image_id, "sha256-11");
	assert_int_equal(info.apps[0].state, APP_STATE_RUNNING);
	assert_int_equal(info.apps[0].created_ns, 1003 * NS_PER_SEC);
	assert_int_equal(info.apps[0].started_ns, 1004 * NS_PER_SEC);
	assert_false(info.apps[0].has_exit_code);
	assert_int_equal(info.apps[1].state, APP_STATE_CREATED);
	assert_ptr_equal(pod_info_find(&info, "two"), &info.apps[1]);
	assert_null(pod_info_find(&info, "tw"));
}

static void test_exited(void **state)
{
	put_pod(state);
	put(state, "status/one-started", "", 1004);
	put(state, "status/one-oom", "", 1009);
	put(state, "status/one", "7", 1010);
	cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, false);
	assert_int_equal(info.state, POD_STATE_EXITED);
	assert_int_equal(info.pid, 0);
	assert_int_equal(info.started_ns, 0);
	assert_int_equal(info.apps[0].state, APP_STATE_EXITED);
	assert_true(info.apps[0].has_exit_code);
	assert_int_equal(info.apps[0].exit_code, 7);
	assert_int_equal(info.apps[0].finished_ns, 1010 * NS_PER_SEC);
	assert_int_equal(info.apps[1].state, APP_STATE_EXITED); /* the pod ended */
	assert_false(info.apps[1].has_exit_code);
	assert_true(info.apps[0].oom);
	assert_false(info.apps[1].oom);
}

#define MUTABLE_MANIFEST                                                         \
	"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"annotations\":[" \
	"{\"name\":\"husk/mutable\",\"value\":\"true\"}],\"apps\":["             \
	"{\"name\":\"one\",\"image\":{\"id\":\"sha256-11\"},\"app\":{\"exec\":[\"a\"]}}]}"

static void expect_state(void **state, bool locked, enum app_state want, const char *name)
{
	cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, locked);
	assert_true(info.is_mutable);
	assert_int_equal(info.n_apps, 1);
	assert_int_equal(info.apps[0].state, want);
	assert_string_equal(app_state_name(info.apps[0].state), name);
}

/* The life of an app of a mutable pod, as its status files tell it. */
static void test_mutable(void **state)
{
	int dir = fixture_dir(state);
	put_pod(state);
	put(state, "pod", MUTABLE_MANIFEST, 1000);
	expect_state(state, true, APP_STATE_PREPARING, "preparing");
	put(state, "status/one-created", "", 1003);
	expect_state(state, true, APP_STATE_CREATED, "created");
	put(state, "status/one-stopping", "", 1003); /* of what was never started: nothing */
	expect_state(state, true, APP_STATE_CREATED, "created");
	put(state, "status/one-started", "", 1004);
	expect_state(state, true, APP_STATE_STOPPING, "stopping");
	assert_int_equal(unlinkat(dir, "status/one-stopping", 0), 0);
	expect_state(state, true, APP_STATE_RUNNING, "running");
	put(state, "status/one", "0\n", 1005);
	expect_state(state, true, APP_STATE_EXITED, "exited");
	/* Started again. */
	assert_int_equal(unlinkat(dir, "status/one", 0), 0);
	put(state, "status/one-started", "", 1006);
	expect_state(state, true, APP_STATE_RUNNING, "running");
	expect_state(state, false, APP_STATE_EXITED, "exited"); /* with its pod */
	put(state, "status/one-deleting", "", 1007);
	expect_state(state, true, APP_STATE_DELETING, "deleting");
	expect_state(state, false, APP_STATE_DELETING, "deleting");
}

static void test_damaged_status(void **state)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{ "0", 0 },   { "255\n", 255 },
		{ "256", 1 }, { "", 1 },
		{ "-1", 1 },  { "abc", 1 },
		{ "7 8", 1 }, { "000000000000000000000000000000007", 1 },
	};
	put_pod(state);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put(state, "status/one", cases[i].text, 1010);
		cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, true);
		assert_true(info.apps[0].has_exit_code);
		assert_int_equal(info.apps[0].exit_code, cases[i].code);
	}
}

static void test_hostile_files(void **state)
{
	int dir = fixture_dir(state);
	put_pod(state);
	put(state, "pid", "99999999999999999999", 1002);
	assert_int_equal(symlinkat("/etc/passwd", dir, "status/one"), 0);
	assert_int_equal(mkfifoat(dir, "status/two", 0600), 0);
	cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, true);
	assert_int_equal(info.pid, 0);
	assert_int_equal(info.apps[0].exit_code, 1);
	assert_int_equal(info.apps[1].exit_code, 1);
}

static void test_status_is_a_link(void **state)
{
	int dir = fixture_dir(state);
	put(state, "pod", MANIFEST, 1000);
	assert_int_equal(mkdirat(dir, "elsewhere", 0750), 0);
	put(state, "elsewhere/one", "7", 1000);
	assert_int_equal(symlinkat("elsewhere", dir, "status"), 0);
	cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, true);
	assert_int_equal(info.created_ns,
			 1000 * NS_PER_SEC); /* the manifest's, as there is no other */
	assert_false(info.apps[0].has_exit_code);
	assert_int_equal(info.apps[0].state, APP_STATE_UNKNOWN);
}

static void test_manifest_problems(void **state)
{
	cleanup_pod_info struct pod_info missing = read_info(state, POD_RUN, false);
	assert_int_equal(missing.problem.code, -ENOENT);
	assert_string_equal(missing.problem.text,
			    "cannot read the pod manifest: No such file or directory");
	/* During preparation it may be missing. */
	cleanup_pod_info struct pod_info young = read_info(state, POD_PREPARE, true);
	assert_int_equal(young.problem.code, 0);
	assert_int_equal(young.state, POD_STATE_PREPARING);

	put(state, "pod", "{\"acKind\":\"PodManifest\",\"apps\":[{\"name\":\"../x\"}]}", 1000);
	cleanup_pod_info struct pod_info bad = read_info(state, POD_RUN, true);
	assert_int_equal(bad.n_apps, 0);
	assert_int_equal(bad.state, POD_STATE_RUNNING);
	assert_string_equal(bad.problem.text, "pod manifest: app 0: \"../x\" is not an app name");
}

/* Who reads one that was once open to a group closes it, if it is his; what he has closed stays. */
static void test_manifest_mode(void **state)
{
	static const struct {
		mode_t was, is;
	} cases[] = {
		{ 0640, 0600 }, { 0604, 0600 }, { 0660, 0600 }, { 0600, 0600 }, { 0400, 0400 }
	};
	struct stat st;
	put_pod(state);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(fchmodat(fixture_dir(state), "pod", cases[i].was, 0), 0);
		cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, true);
		assert_int_equal(info.problem.code, 0);
		assert_int_equal(fstatat(fixture_dir(state), "pod", &st, 0), 0);
		assert_int_equal(st.st_mode & 07777, cases[i].is);
	}
}

static void test_manifest_size(void **state)
{
	int dir = fixture_dir(state);
	put(state, "pod", MANIFEST, 1000);
	int fd = openat(dir, "pod", O_WRONLY);
	assert_int_equal(ftruncate(fd, POD_MANIFEST_SIZE_MAX + 1), 0);
	close(fd);
	cleanup_pod_info struct pod_info info = read_info(state, POD_RUN, true);
	assert_string_equal(info.problem.text, "cannot read the pod manifest: File too large");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_running),
		fixture_test(test_mutable),
		fixture_test(test_exited),
		fixture_test(test_damaged_status),
		fixture_test(test_hostile_files),
		fixture_test(test_status_is_a_link),
		fixture_test(test_manifest_problems),
		fixture_test(test_manifest_mode),
		fixture_test(test_manifest_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
