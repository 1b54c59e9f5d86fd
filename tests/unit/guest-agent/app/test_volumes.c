/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes below a run directory of the test's own, in the root of an app that is a directory. */
#include "guest-agent/app/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "guest-agent/app/appfs.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static char base[256], run_dir[300], root[300];
static const struct rootfs_config config = { .run_dir = run_dir };
static struct fault fault;

static const char *in(const char *name)
{
	static char path[2][512];
	static unsigned next;
	char *p = path[next++ % 2];
	snprintf(p, sizeof(path[0]), "%s/%s", base, name);
	return p;
}

static int begin(void **state)
{
	static const char *const dirs[] = { "run",           "run/scratch",   "run/apps",
					    "run/apps/a",    "run/scratch/a", "run/apps/b",
					    "run/scratch/b", "root",          "root/real",
					    "outside" };
	if (fixture_setup(state) != 0)
		return -1;
	fault = (struct fault){ 0 };
	snprintf(base, sizeof(base), "%s", fixture_path(state));
	snprintf(run_dir, sizeof(run_dir), "%s/run", base);
	snprintf(root, sizeof(root), "%s/root", base);
	if (mount("tmpfs", base, "tmpfs", 0, NULL) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(in(dirs[i]), 0755) < 0)
			return -1;
	return 0;
}

static int end(void **state)
{
	umount2(base, MNT_DETACH);
	return fixture_teardown(state);
}

static struct agent_mount volume(const char *name, const char *path)
{
	struct agent_mount m = { .kind = AGENT_VOLUME_EMPTY, .mode = 0755 };
	snprintf(m.volume, sizeof(m.volume), "%s", name);
	snprintf(m.path, sizeof(m.path), "%s", path);
	return m;
}

static int show_on(const struct rootfs_config *c, const struct agent_mounts *list)
{
	CLEANUP(volumes_close) struct volume_fds v = VOLUME_FDS_INIT;
	fault = (struct fault){ 0 };
	int r = volumes_open(c, "a", list, &v, &fault);
	return r == 0 ? volumes_attach(&v, list, false, root, &fault) : r;
}

static void must_show_on(const struct rootfs_config *c, const struct agent_mounts *list)
{
	if (show_on(c, list) != 0)
		fail_msg("%s", fault.text);
}

/* Mounts one volume in the root directory, which stays so until the end of the test. */
static int show(const char *app, struct agent_mount *m)
{
	const struct agent_mounts list = { m, 1 };
	CLEANUP(volumes_close) struct volume_fds v = VOLUME_FDS_INIT;
	fault = (struct fault){ 0 };
	int r = volumes_open(&config, app, &list, &v, &fault);
	return r == 0 ? volumes_attach(&v, &list, false, root, &fault) : r;
}

static void must_show(const char *app, struct agent_mount m)
{
	if (show(app, &m) != 0)
		fail_msg("%s", fault.text);
}

static void put(const char *name)
{
	cleanup_fd int fd = open(in(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
}

static bool is_there(const char *name)
{
	return access(in(name), F_OK) == 0;
}

static void test_made_once(void **state)
{
	struct agent_mount m = volume("v", "/x/y/z");
	struct stat st;
	(void)state;
	m.mode = 01770;
	m.uid = 5;
	m.gid = 6;
	assert_int_equal(mkdir(in("run/scratch/+volumes"), 0755), 0);
	assert_int_equal(mkdir(in("run/scratch/+volumes/+new"), 0700), 0); /* of one killed */
	must_show("a", m);
	assert_int_equal(stat(in("root/x/y/z"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01770);
	assert_int_equal(st.st_uid, 5);
	assert_int_equal(st.st_gid, 6);
	put("root/x/y/z/file");
	assert_true(is_there("run/scratch/+volumes/v/file"));
	assert_false(is_there("run/scratch/+volumes/+new"));
	m = volume("v", "/other");
	m.read_only = true;
	must_show("b", m);
	assert_true(is_there("root/other/file"));
	assert_int_equal(stat(in("root/other"), &st), 0);
	assert_int_equal(st.st_uid, 5);
	assert_true(mkdir(in("root/other/dir"), 0755) < 0 && errno == EROFS);
}

static void test_flags(void **state)
{
	struct agent_mount m = volume("v", "/x");
	struct statvfs of;
	(void)state;
	must_show("a", m);
	assert_int_equal(statvfs(in("root/x"), &of), 0);
	assert_int_equal(of.f_flag & (ST_NOEXEC | ST_NOSUID | ST_NODEV), ST_NODEV);
	m = volume("v", "/exec");
	m.no_exec = true;
	must_show("b", m);
	assert_int_equal(statvfs(in("root/exec"), &of), 0);
	assert_int_equal(of.f_flag & (ST_NOEXEC | ST_NOSUID | ST_NODEV), ST_NOEXEC | ST_NODEV);
	m = volume("v", "/suid");
	m.no_suid = true;
	must_show("c", m);
	assert_int_equal(statvfs(in("root/suid"), &of), 0);
	assert_int_equal(of.f_flag & (ST_NOEXEC | ST_NOSUID | ST_NODEV), ST_NOSUID | ST_NODEV);
}

static void test_own(void **state)
{
	struct agent_mount m = volume("v", "/x");
	(void)state;
	m.is_own = true;
	must_show("a", m);
	put("root/x/file");
	assert_true(is_there("run/scratch/a/volumes/v/file"));
	must_show("b", m);
	assert_false(is_there("root/x/file"));
}

/* Without a VM what the host has is there already: directories, and files. */
static void test_host(void **state)
{
	static const struct rootfs_config without_vm = { .run_dir = run_dir, .disk_dir = "/disks" };
	struct agent_mount m = volume("v", "/x");
	const struct agent_mounts list = { &m, 1 };
	(void)state;
	m.kind = AGENT_VOLUME_HOST;
	assert_int_equal(mkdir(in("run/host"), 0755), 0);
	assert_int_equal(mkdir(in("run/host/3"), 0755), 0);
	put("run/host/3/file");
	put("run/host/4");
	put("root/there");
	m.slot = 3;
	must_show_on(&without_vm, &list);
	m.slot = 4;
	m.read_only = true;
	snprintf(m.path, sizeof(m.path), "/new/name");
	must_show_on(&without_vm, &list);
	snprintf(m.path, sizeof(m.path), "/there");
	must_show_on(&without_vm, &list);
	snprintf(m.path, sizeof(m.path), "/real");
	assert_int_equal(show_on(&without_vm, &list), FAULT_SET);
	assert_non_null(strstr(fault.text, "is a file, and /real is a directory"));
	assert_true(is_there("root/x/file"));
	put("root/x/more");
	assert_true(is_there("run/host/3/more"));
	assert_int_equal(mkdir(in("run/host/apps"), 0755), 0); /* of an app's own */
	assert_int_equal(mkdir(in("run/host/apps/a"), 0755), 0);
	assert_int_equal(mkdir(in("run/host/apps/+shared"), 0755), 0);
	assert_int_equal(mkdir(in("run/host/apps/+shared/key"), 0755), 0);
	assert_int_equal(symlink("../+shared/key", in("run/host/apps/a/3")), 0);
	put("run/host/apps/+shared/key/own");
	m.slot = 3;
	m.is_own = true;
	snprintf(m.path, sizeof(m.path), "/own");
	must_show_on(&without_vm, &list);
	assert_true(is_there("root/own/own"));
	volumes_look_anew(&without_vm, "b"); /* makes no directories */
	assert_false(is_there("run/host/apps/b"));
	assert_int_equal(symlink("../+shared/key", in("run/host/5")), 0); /* none of the pod's is */
	m.slot = 5;
	m.is_own = false;
	assert_int_equal(show_on(&without_vm, &list), FAULT_SET);
	m.is_own = true;
	m.slot = 4;
	assert_int_equal(show_on(&without_vm, &list), FAULT_SET);
	assert_non_null(strstr(fault.text, "volume \"v\": cannot mount it"));
	assert_true(open(in("root/new/name"), O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
}

/* What the host has instead of an image, with what is mounted below it. */
static void test_root(void **state)
{
	static const struct rootfs_config without_vm = { .run_dir = run_dir, .disk_dir = "/disks" };
	struct agent_mount m[] = { volume("v", "/"), volume("w", "/x") };
	const struct agent_mounts list = { m, ARRAY_SIZE(m) };
	CLEANUP(volumes_close) struct volume_fds v = VOLUME_FDS_INIT;
	char path[ROOTFS_PATH_MAX];
	struct statvfs of;
	(void)state;
	m[0].kind = AGENT_VOLUME_HOST;
	m[0].no_suid = true;
	assert_int_equal(mkdir(in("run/host"), 0755), 0);
	assert_int_equal(mkdir(in("run/host/0"), 0755), 0);
	assert_int_equal(mkdir(in("run/host/0/below"), 0755), 0);
	put("run/host/1");
	assert_int_equal(mount("tmpfs", in("run/host/0/below"), "tmpfs", 0, NULL), 0);
	assert_int_equal(rootfs_make_app(&without_vm, "a", &fault), 0);
	assert_int_equal(volumes_mount_root(&without_vm, "a", m, false, &fault), 0);
	rootfs_app_path(&without_vm, "a", path);
	assert_int_equal(volumes_open(&without_vm, "a", &list, &v, &fault), 0);
	assert_int_equal(volumes_attach(&v, &list, false, path, &fault), 0);
	assert_true(is_there("run/host/0/x"));
	put("run/apps/a/root/x/file");
	put("run/apps/a/root/below/file");
	assert_false(is_there("run/host/0/x/file"));
	assert_true(is_there("run/scratch/+volumes/w/file"));
	assert_int_equal(statvfs(in("run/apps/a/root"), &of), 0);
	assert_int_equal(of.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV), ST_NOSUID | ST_NODEV);
	rootfs_discard_app(&without_vm, "a");
	assert_false(is_there("run/apps/a"));
	assert_true(is_there("run/host/0/x"));
	assert_true(is_there("run/host/0/below/file"));
	/* One that is to be read-only is so at once, and with it what is mounted below. */
	assert_int_equal(rootfs_make_app(&without_vm, "a", &fault), 0);
	assert_int_equal(volumes_mount_root(&without_vm, "a", m, true, &fault), 0);
	assert_true(mkdir(in("run/apps/a/root/new"), 0755) < 0 && errno == EROFS);
	assert_true(mkdir(in("run/apps/a/root/below/new"), 0755) < 0 && errno == EROFS);
	rootfs_unmount_root(&without_vm, "a");
	m[0].read_only = true;
	assert_int_equal(volumes_mount_root(&without_vm, "a", m, false, &fault), 0);
	assert_true(mkdir(in("run/apps/a/root/new"), 0755) < 0 && errno == EROFS);
	rootfs_unmount_root(&without_vm, "a");
	assert_false(is_there("run/apps/a/root/x"));
	/* And one that is a file, or not there. */
	m[0].slot = 1;
	assert_int_equal(volumes_mount_root(&without_vm, "a", m, false, &fault), FAULT_SET);
	assert_string_equal(fault.text, "volume \"v\" is a file, and / is a directory");
	m[0].slot = 2;
	assert_int_equal(volumes_mount_root(&without_vm, "a", m, false, &fault), FAULT_SET);
	assert_non_null(strstr(fault.text, "volume \"v\": cannot mount it at /"));
}

static void test_memory(void **state)
{
	struct agent_mount m = volume("v", "/x");
	struct statvfs st;
	(void)state;
	m.kind = AGENT_VOLUME_MEMORY;
	m.size = 64 << 10;
	must_show("a", m);
	put("root/x/file");
	assert_int_equal(statvfs(in("root/x"), &st), 0);
	assert_int_equal(st.f_blocks * st.f_frsize, 64 << 10);
	assert_true(st.f_flag & ST_NODEV);
	snprintf(m.path, sizeof(m.path), "/y");
	must_show("b", m);
	assert_true(is_there("root/y/file"));
	m.is_own = true;
	must_show("b", m);
	assert_false(is_there("root/y/file"));
}

/* The app's own directory stays writable when its root is not. */
static void test_of_image(void **state)
{
	struct agent_mount m = volume("v", "/real");
	(void)state;
	assert_int_equal(mount(root, root, NULL, MS_BIND, NULL), 0);
	put("root/real/file");
	m.kind = AGENT_VOLUME_IMAGE;
	must_show("a", m);
	assert_int_equal(mount(NULL, root, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_true(mkdir(in("root/new"), 0755) < 0 && errno == EROFS);
	assert_int_equal(mkdir(in("root/real/new"), 0755), 0);
	assert_true(is_there("root/real/file"));
}

static void test_links(void **state)
{
	char up[600];
	(void)state;
	snprintf(up, sizeof(up), "../../../../../../../..%s/outside", base);
	assert_int_equal(symlink("/real", in("root/absolute")), 0);
	assert_int_equal(symlink("../../../../../real", in("root/relative")), 0);
	assert_int_equal(symlink(up, in("root/up")), 0);
	assert_int_equal(symlink(".", in("root/self")), 0);
	assert_int_equal(symlink("/proc/1/root", in("root/magic")), 0);
	put("root/file");
	must_show("a", volume("v", "/absolute/one"));
	assert_true(is_there("root/real/one"));
	must_show("a", volume("v", "/relative/two"));
	assert_true(is_there("root/real/two"));
	must_show("a", volume("v", "/up/three")); /* below the root */
	assert_false(is_there("outside/three"));
	must_show("a", volume("v", "/magic/four"));
	assert_true(is_there("root/proc/1/root/four"));
	struct agent_mount m = volume("v", "/self");
	assert_true(show("a", &m) != 0);
	m = volume("v", "/file");
	assert_true(show("a", &m) != 0);
	assert_int_equal(fault.code, AGENT_E_PARAMS);
	assert_string_equal(fault.text, "volume \"v\": /file is no directory");
}

/* Images have links to what only a system that has been booted has: it is made there. */
static void test_links_to_nowhere(void **state)
{
	char name[32], to[32];
	(void)state;
	assert_int_equal(mkdir(in("root/sub"), 0755), 0);
	assert_int_equal(symlink("/one/two", in("root/sub/absolute")), 0);
	assert_int_equal(symlink("../up/there/", in("root/sub/relative")), 0);
	assert_int_equal(symlink("sub/absolute/three", in("root/behind")), 0);
	must_show("a", volume("v", "/sub/relative/x"));
	assert_true(is_there("root/up/there/x"));
	must_show("a", volume("v", "/behind/y"));
	assert_true(is_there("root/one/two/three/y"));
	for (int i = 0; i < 10; i++) {
		snprintf(to, sizeof(to), "link%d", i + 1);
		snprintf(name, sizeof(name), "root/link%d", i);
		assert_int_equal(symlink(to, in(name)), 0);
	}
	struct agent_mount m = volume("v", "/link1/z"); /* nine of them */
	assert_true(show("a", &m) != 0);
	assert_string_equal(fault.text,
			    "volume \"v\": cannot mount it at /link1/z: Too many levels "
			    "of symbolic links");
	must_show("a", volume("v", "/link2/z"));
	assert_true(is_there("root/link10/z"));
	m = volume("v", "/sub/loop");
	assert_int_equal(symlink("loop", in("root/sub/loop")), 0);
	assert_true(show("a", &m) != 0);
	/* A file, such as /etc/localtime. */
	cleanup_fd int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlink("../zones/utc", in("root/sub/time")), 0);
	assert_int_equal(symlink("../sub/", in("root/sub/dir")), 0);
	cleanup_fd int file = appfs_make_file(dir, "/sub/time");
	assert_true(file >= 0 && is_there("root/zones/utc"));
	assert_int_equal(appfs_make_file(dir, "/sub/dir"), -EISDIR);
}

/* Each is for one of the two times. */
static void test_in_dev(void **state)
{
	struct agent_mount m[] = { volume("in", "/dev/words"), volume("out", "/device"),
				   volume("up", "/dev/up/etc/x") };
	const struct agent_mounts list = { m, ARRAY_SIZE(m) };
	CLEANUP(volumes_close) struct volume_fds v = VOLUME_FDS_INIT;
	(void)state;
	must_show_on(&config, &list);
	assert_true(is_there("root/device"));
	assert_false(is_there("root/dev/words"));
	assert_int_equal(volumes_open(&config, "a", &list, &v, &fault), 0);
	assert_int_equal(mkdir(in("root/dev"), 0755), 0);
	assert_int_equal(symlink("/../..", in("root/dev/up")), 0);
	assert_int_equal(volumes_attach(&v, &list, true, in("root/dev"), &fault), 0);
	assert_true(is_there("root/dev/words"));
	assert_true(is_there("root/dev/etc/x"));
	assert_false(is_there("root/etc"));
}

static void test_none(void **state)
{
	static const struct agent_mounts none;
	CLEANUP(volumes_close) struct volume_fds v = VOLUME_FDS_INIT;
	(void)state;
	assert_int_equal(volumes_open(&config, "a", &none, &v, &fault), 0);
	assert_int_equal(volumes_attach(&v, &none, false, "/nowhere", &fault), 0);
	assert_false(is_there("run/scratch/+volumes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made_once, begin, end),
		cmocka_unit_test_setup_teardown(test_flags, begin, end),
		cmocka_unit_test_setup_teardown(test_own, begin, end),
		cmocka_unit_test_setup_teardown(test_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_host, begin, end),
		cmocka_unit_test_setup_teardown(test_root, begin, end),
		cmocka_unit_test_setup_teardown(test_of_image, begin, end),
		cmocka_unit_test_setup_teardown(test_links, begin, end),
		cmocka_unit_test_setup_teardown(test_links_to_nowhere, begin, end),
		cmocka_unit_test_setup_teardown(test_in_dev, begin, end),
		cmocka_unit_test_setup_teardown(test_none, begin, end),
	};
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
