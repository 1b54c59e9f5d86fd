/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/volumes/host_volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/support/pods.h"

static void add_volume(struct pod_manifest *m, const char *name, const char *path)
{
	CLEANUP(volume_deinit) struct volume v;
	volume_init(&v);
	snprintf(v.name, sizeof(v.name), "%s", name);
	v.kind = path ? VOLUME_HOST : VOLUME_EMPTY;
	v.recursive = strcmp(name, "flat") != 0;
	if (path)
		assert_int_equal(volume_set_source(&v, path), 0);
	assert_int_equal(volumes_add(&m->volumes, &v), 0);
}

/* Only those that an app has; read-only if no app can write. */
static void test_args(void **state)
{
	static const char *const expected[] = { "-v1:rw:all:/a:b", "-v3:ro:one:/c" };
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	CLEANUP(strv_deinit) struct strv argv;
	(void)state;
	pod_make(&m, 2, "x");
	add_volume(&m, "empty", NULL);
	add_volume(&m, "data", "/a:b");
	add_volume(&m, "unused", "/b");
	add_volume(&m, "flat", "/c");
	assert_int_equal(volume_mounts_add(&m.apps[0].mounts, "data", "/d", true), 0);
	assert_int_equal(volume_mounts_add(&m.apps[1].mounts, "data", "/d", false), 0);
	assert_int_equal(volume_mounts_add(&m.apps[1].mounts, "flat", "/f", true), 0);
	strv_init(&argv, 8);
	assert_int_equal(host_volumes_args(&m, "-v", &argv), 0);
	assert_int_equal(argv.n, ARRAY_SIZE(expected));
	for (size_t i = 0; i < argv.n; i++) {
		struct host_volume v;
		assert_string_equal(argv.v[i], expected[i]);
		assert_int_equal(host_volume_parse(argv.v[i] + 2, &v), 0);
		assert_string_equal(v.name, i == 0 ? "1" : "3");
		assert_string_equal(v.path, i == 0 ? "/a:b" : "/c");
		assert_true(v.read_only == (i == 1) && v.recursive == (i == 0));
	}
}

static void add_own(struct pod_app *app, const char *name, const char *path, bool mount_read_only)
{
	struct pod_manifest m;
	pod_manifest_init(&m);
	m.volumes = app->volumes;
	add_volume(&m, name, path);
	app->volumes = m.volumes;
	assert_int_equal(volume_mounts_add(&app->mounts, name, name[0] == 'r' ? "/r" : "/w",
					   mount_read_only),
			 0);
}

/*
 * By their numbers among all that the app has; read-only if it cannot write to any of its mounts.
 */
static void test_of_app(void **state)
{
	struct host_volume v[AGENT_VOLUME_SLOTS];
	CLEANUP(pod_app_deinit) struct pod_app app;
	(void)state;
	pod_app_init(&app);
	assert_int_equal(host_volumes_of_app(&app, v), 0);
	add_own(&app, "r", "/a", true);
	add_own(&app, "w", "/b", false);
	assert_int_equal(volume_mounts_add(&app.mounts, "w", "/again", true), 0);
	struct pod_manifest m;
	pod_manifest_init(&m);
	m.volumes = app.volumes;
	add_volume(&m, "empty", NULL);
	for (size_t i = 3; i < VOLUMES_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "v%zu", i);
		add_volume(&m, name, "/c");
	}
	app.volumes = m.volumes;
	assert_int_equal(host_volumes_of_app(&app, v), VOLUMES_MAX - 1);
	assert_true(v[0].read_only && v[0].recursive && !v[1].read_only);
	assert_string_equal(v[0].name, "0");
	assert_string_equal(v[1].path, "/b");
	assert_string_equal(v[2].name, "3");
	assert_string_equal(v[VOLUMES_MAX - 2].name, "63");
}

static void test_bad_args(void **state)
{
	static const char *const bad[] = { "",
					   "1",
					   ":rw:all:/a",
					   "1:rw:all:",
					   "1:rw:all:a",
					   "1:rx:all:/a",
					   "1:rw:/a",
					   "1:r:all:/a",
					   "1000:rw:all:/a",
					   "../1:rw:all:/a" };
	struct host_volume v;
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(host_volume_parse(bad[i], &v), -EINVAL);
}

/* A directory and a file, where only the mount that leads there is read-only. */
static void test_mounts(void **state)
{
	struct host_volume dir = { .name = "0", .read_only = true, .recursive = true };
	struct host_volume file = { .name = "1", .recursive = true };
	char paths[2][256];
	struct err e = ERR_INIT;
	struct stat st;
	if (geteuid() != 0)
		skip();
	snprintf(paths[0], sizeof(paths[0]), "%s/source", fixture_path(state));
	snprintf(paths[1], sizeof(paths[1]), "%s/source/file", fixture_path(state));
	assert_int_equal(mkdirat(fixture_dir(state), "source", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "target", 0755), 0);
	fixture_write(state, "source/file", "x", 1);
	dir.path = paths[0];
	file.path = paths[1];
	cleanup_fd int target =
		openat(fixture_dir(state), "target", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int first = host_volume_mount(&dir, NULL, &e);
	cleanup_fd int second = host_volume_mount(&file, NULL, &e);
	assert_true(target >= 0 && first >= 0 && second >= 0);
	assert_int_equal(host_volume_attach(first, target, "0"), -ENOENT);
	assert_int_equal(host_volume_make_place(first, target, "0"), 0);
	assert_int_equal(host_volume_make_place(second, target, "1"), 0);
	assert_int_equal(host_volume_make_place(second, target, "1"), -EEXIST);
	assert_int_equal(host_volume_attach(first, target, "0"), 0);
	assert_int_equal(host_volume_attach(second, target, "1"), 0);
	assert_int_equal(fstatat(target, "0/file", &st, 0), 0);
	assert_true(openat(target, "0/file", O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
	cleanup_fd int written = openat(target, "1", O_WRONLY | O_CLOEXEC);
	assert_true(written >= 0);
	snprintf(paths[0], sizeof(paths[0]), "%s/target/0", fixture_path(state));
	snprintf(paths[1], sizeof(paths[1]), "%s/target/1", fixture_path(state));
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(umount2(paths[i], MNT_DETACH), 0);
	dir.path = "/nowhere";
	assert_int_equal(host_volume_mount(&dir, NULL, &e), -ENOENT);
	assert_string_equal(e.text, "volume of \"/nowhere\": No such file or directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_args),
		fixture_test(test_of_app),
		fixture_test(test_bad_args),
		fixture_test(test_mounts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
