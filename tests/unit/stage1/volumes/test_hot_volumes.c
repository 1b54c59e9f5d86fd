/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test is the supervisor of a pod, and a child of it has the volumes: a directory on a tmpfs
 * that is read-only, in a mount namespace of its own, where another mount of it is for the test.
 */
#include "stage1/volumes/hot_volumes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"
#include "stage1/pod/podfiles.h"
#include "tests/support/fixture.h"

#define NAME "husk-keeps" /* of the process */

static struct pod {
	char root[256], dir[300]; /* the keeper's tmpfs, and the directory in there */
	char writable[300];       /* the same by the other mount */
	struct volume_keeper keeper;
	int lock, pidfd;
	pid_t child;
} pod;

static void keep(bool own_mounts, int ready)
{
	bool ok = prctl(PR_SET_NAME, NAME) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
	close(HOT_VOLUMES_IDS_FD); /* of the test's */
	if (own_mounts)
		ok = ok && unshare(CLONE_NEWNS) == 0 &&
		     mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		     mount("none", pod.root, "tmpfs", 0, NULL) == 0 && mkdir(pod.dir, 0755) == 0 &&
		     mount(pod.dir, pod.writable, NULL, MS_BIND, NULL) == 0 &&
		     mount(NULL, pod.root, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0;
	if (!ok || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static void start_keeper(bool own_mounts)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pod.child = fork();
	if (pod.child == 0)
		keep(own_mounts, ready[1]);
	fd_close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	fd_close(ready[0]);
	pod.pidfd = (int)syscall(SYS_pidfd_open, pod.child, 0);
	assert_true(pod.pidfd >= 0);
}

static void end_keeper(void)
{
	int status;
	kill(pod.child, SIGKILL);
	spawn_wait(pod.child, &status);
	pod.pidfd = fd_close(pod.pidfd);
}

/* The working directory becomes that of a pod that runs. */
static void make_pod(void **state)
{
	char pid[16];
	snprintf(pod.root, sizeof(pod.root), "%s/root", fixture_path(state));
	snprintf(pod.dir, sizeof(pod.dir), "%s/apps", pod.root);
	snprintf(pod.writable, sizeof(pod.writable), "%s/writable", fixture_path(state));
	pod.keeper = (struct volume_keeper){ .process = NAME,
					     .dir = pod.dir,
					     .ids_fd = HOT_VOLUMES_IDS_FD,
					     .otherwise = "nobody is there" };
	assert_int_equal(mkdirat(fixture_dir(state), "root", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "writable", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "pod", 0700), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "source", 0755), 0);
	fixture_write(state, "source/file", "x", 1);
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	fixture_write(state, "pod/" POD_FILE_PID, pid, strlen(pid));
	fixture_write(state, "pod/" POD_FILE_SECRET, "", 0);
	cleanup_fd int dir = openat(fixture_dir(state), "pod", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchdir(dir), 0);
	pod.lock = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(pod.lock, LOCK_EX), 0);
}

static void bring(void **state, struct pod_app *app, const char *source, bool read_only)
{
	CLEANUP(volume_deinit) struct volume v;
	char path[300], target[sizeof(v.name) + 1];
	volume_init(&v);
	snprintf(v.name, sizeof(v.name), "v%zu", app->volumes.n);
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), source);
	v.kind = VOLUME_HOST;
	assert_int_equal(volume_set_source(&v, path), 0);
	assert_int_equal(volumes_add(&app->volumes, &v), 0);
	snprintf(target, sizeof(target), "/%s", v.name);
	assert_int_equal(volume_mounts_add(&app->mounts, v.name, target, read_only), 0);
}

/* @path in the keeper's directory @dir, for the next call. */
static const char *there(const char *dir, const char *path)
{
	static char full[1024];
	snprintf(full, sizeof(full), "/proc/%d/root%s/%s", (int)pod.child, dir, path);
	return full;
}

/* Opens what the keeper has at @path. */
static int open_at_keeper(const char *path, int flags)
{
	int fd = open(there(pod.dir, path), flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The same in the directory of the app that is called "app". */
static int open_there(const char *path, int flags)
{
	char full[512];
	snprintf(full, sizeof(full), "app/%s", path);
	return open_at_keeper(full, flags);
}

/* How many places there are. */
static size_t n_places(void)
{
	size_t n = 0;
	cleanup_dir DIR *names = opendir(there(pod.dir, AGENT_HOST_SHARED));
	for (const struct dirent *de; names && (de = readdir(names));)
		n += de->d_name[0] != '.';
	return n;
}

/* How many mounts are below the directory. */
static size_t n_mounts(void)
{
	char path[64], line[4096];
	size_t n = 0;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pod.child);
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, pod.dir) && strstr(line, "/apps/");
	fclose(f);
	return n;
}

static void test_comes_and_goes(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct err e = ERR_INIT;
	if (geteuid() != 0)
		skip();
	make_pod(state);
	start_keeper(true);
	pod_app_init(&app);
	snprintf(app.name, sizeof(app.name), "app");
	assert_int_equal(hot_volumes_attach(&pod.keeper, &app, &e), 0); /* nothing */
	assert_int_equal(open_there("", O_RDONLY), -ENOENT);
	bring(state, &app, "source", false);
	bring(state, &app, "source/file", true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hot_volumes_attach(&pod.keeper, &app, &e), 0);
		cleanup_fd int written = open_there("0/file", O_WRONLY);
		assert_true(written >= 0);
		assert_int_equal(open_there("1", O_WRONLY), -EROFS);
		assert_int_equal(hot_volumes_attach(&pod.keeper, &app, &e), -EEXIST);
		assert_non_null(strstr(e.text, "app \"app\": cannot mount them"));
		for (int k = 0; k < 2; k++)
			assert_int_equal(hot_volumes_detach(&pod.keeper, &app, &e), 0);
		assert_int_equal(open_there("", O_RDONLY), -ENOENT);
	}
	bring(state, &app, "nowhere", false);
	assert_int_equal(hot_volumes_attach(&pod.keeper, &app, &e), -ENOENT);
	assert_non_null(strstr(e.text, "nowhere\": No such file"));
	assert_int_equal(open_there("", O_RDONLY), -ENOENT);
	end_keeper();
	fd_close(pod.lock);
}

static struct pod_app apps[4];

/* Several apps of a pod that runs, without volumes as yet. */
static void begin_apps(void **state)
{
	make_pod(state);
	start_keeper(true);
	for (size_t i = 0; i < ARRAY_SIZE(apps); i++) {
		pod_app_init(&apps[i]);
		snprintf(apps[i].name, sizeof(apps[i].name), "app%zu", i);
	}
}

static void end_apps(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(apps); i++)
		pod_app_deinit(&apps[i]);
	end_keeper();
	fd_close(pod.lock);
}

static void attach(size_t i)
{
	struct err e = ERR_INIT;
	if (hot_volumes_attach(&pod.keeper, &apps[i], &e) != 0)
		fail_msg("%s", e.text);
}

static void detach(size_t i)
{
	struct err e = ERR_INIT;
	if (hot_volumes_detach(&pod.keeper, &apps[i], &e) != 0)
		fail_msg("%s", e.text);
}

/* What is the same is mounted once, as long as somebody has it. */
static void test_shared(void **state)
{
	if (geteuid() != 0)
		skip();
	begin_apps(state);
	bring(state, &apps[0], "source", false);
	bring(state, &apps[0], "source", true);
	bring(state, &apps[1], "source", false);
	bring(state, &apps[1], "source/file", false);
	bring(state, &apps[2], "source", true);
	attach(0);
	assert_int_equal(n_places(), 2); /* the same, but one of them read-only */
	attach(1);
	assert_int_equal(n_places(), 3);
	attach(2);
	assert_int_equal(n_places(), 3);
	assert_int_equal(n_mounts(), 3);
	cleanup_fd int written = open_at_keeper("app1/0/file", O_WRONLY);
	cleanup_fd int read = open_at_keeper("app2/0/file", O_RDONLY);
	assert_true(written >= 0 && read >= 0);
	assert_int_equal(open_at_keeper("app2/0/file", O_WRONLY), -EROFS);
	detach(0);
	assert_int_equal(n_places(), 3);
	cleanup_fd int again = open_at_keeper("app1/0/file", O_WRONLY);
	assert_true(again >= 0);
	detach(2);
	assert_int_equal(n_places(), 2);
	detach(1);
	assert_int_equal(n_places(), 0);
	assert_int_equal(n_mounts(), 0);
	end_apps();
}

/* Two directories with the same names, and one that has become another with what is below. */
static void test_not_the_same(void **state)
{
	char path[300];
	if (geteuid() != 0)
		skip();
	begin_apps(state);
	snprintf(path, sizeof(path), "%s/source/with blank", fixture_path(state));
	assert_int_equal(mkdirat(fixture_dir(state), "other", 0755), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	bring(state, &apps[0], "source", false);
	bring(state, &apps[1], "other", false);
	bring(state, &apps[2], "source", false);
	bring(state, &apps[3], "source/with blank", false);
	attach(0);
	attach(1);
	assert_int_equal(n_places(), 2);
	assert_int_equal(mount("none", path, "tmpfs", 0, NULL), 0);
	fixture_write(state, "source/with blank/below", "x", 1);
	attach(2);
	attach(3);
	assert_int_equal(n_places(), 4);
	cleanup_fd int below = open_at_keeper("app2/0/with blank/below", O_RDONLY);
	cleanup_fd int itself = open_at_keeper("app3/0/below", O_RDONLY);
	assert_true(below >= 0 && itself >= 0);
	assert_int_equal(open_at_keeper("app0/0/with blank/below", O_RDONLY), -ENOENT);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	for (size_t i = 0; i < ARRAY_SIZE(apps); i++)
		detach(i);
	assert_int_equal(n_places(), 0);
	end_apps();
}

/* Whoever was killed leaves places without links, links without places, directories. */
static void test_remnants(void **state)
{
	struct err e = ERR_INIT;
	if (geteuid() != 0)
		skip();
	begin_apps(state);
	bring(state, &apps[0], "source", false);
	bring(state, &apps[1], "source/file", false);
	bring(state, &apps[2], "source", false);
	attach(0);
	assert_int_equal(unlink(there(pod.writable, "app0/0")), 0);
	assert_int_equal(mkdir(there(pod.writable, AGENT_HOST_SHARED "/empty"), 0755), 0);
	attach(1);
	assert_int_equal(n_places(), 1);
	assert_int_equal(n_mounts(), 1);
	assert_int_equal(hot_volumes_attach(&pod.keeper, &apps[0], &e), -EEXIST);
	assert_int_equal(symlink("../" AGENT_HOST_SHARED "/none", there(pod.writable, "app0/0")),
			 0);
	detach(0);
	attach(0);
	attach(2);
	assert_int_equal(n_places(), 2);
	detach(0);
	assert_int_equal(unlink(there(pod.writable, "app2/0")), 0);
	detach(1);
	assert_int_equal(n_places(), 0);
	detach(2);
	attach(2);
	cleanup_fd int file = open_at_keeper("app2/0/file", O_RDONLY);
	assert_true(file >= 0);
	end_apps();
}

/* One at a time, and nobody waits for ever. */
static void test_turns(void **state)
{
	struct err e = ERR_INIT;
	if (geteuid() != 0)
		skip();
	begin_apps(state);
	pod.keeper.turn_ms = 20;
	bring(state, &apps[0], "source", false);
	int held = open(POD_FILE_SECRET, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX), 0);
	assert_int_equal(hot_volumes_attach(&pod.keeper, &apps[0], &e), -EBUSY);
	assert_string_equal(e.text, "volumes: somebody else has been adding or removing an app of "
				    "this pod for 0.02 s (try again)");
	assert_int_equal(n_mounts(), 0);
	assert_int_equal(hot_volumes_detach(&pod.keeper, &apps[0], &e), -EBUSY);
	fd_close(held);
	attach(0);
	detach(0);
	assert_int_equal(n_places(), 0);
	end_apps();
}

static void refused(const struct pod_app *app, int r, const char *text)
{
	struct err e = ERR_INIT;
	assert_int_equal(hot_volumes_attach(&pod.keeper, app, &e), r);
	if (!strstr(e.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, e.text);
}

/* Not where a mount would be the host's, nor for whom somebody else says what is mounted. */
static void test_refused(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	struct err e = ERR_INIT;
	make_pod(state);
	pod_app_init(&app);
	snprintf(app.name, sizeof(app.name), "app");
	bring(state, &app, "source", false);
	refused(&app, -EOPNOTSUPP, "nobody is there");
	assert_int_equal(hot_volumes_detach(&pod.keeper, &app, &e), 0);
	start_keeper(false);
	refused(&app, -EXDEV, "namespaces of " NAME);
	assert_int_equal(hot_volumes_detach(&pod.keeper, &app, &e), -EXDEV);
	end_keeper();
	assert_int_equal(fchmod(pod.lock, 0770), 0);
	refused(&app, -EPERM, "only its owner");
	assert_int_equal(hot_volumes_detach(&pod.keeper, &app, &e), -EPERM);
	assert_int_equal(fchmod(pod.lock, 0700), 0);
	fd_close(pod.lock);
	refused(&app, -ESRCH, "the pod has ended");
	assert_int_equal(hot_volumes_detach(&pod.keeper, &app, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_comes_and_goes), fixture_test(test_shared),
		fixture_test(test_not_the_same),   fixture_test(test_remnants),
		fixture_test(test_turns),          fixture_test(test_refused),
	};
	if (geteuid() == 0 &&
	    (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
