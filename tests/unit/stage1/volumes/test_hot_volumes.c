/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test is the supervisor of a pod, and a child of it has the volumes: a directory on a tmpfs
 * that is read-only, in a mount namespace of its own.
 */
#include "stage1/volumes/hot_volumes.h"

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
#include "tests/support/fixture.h"

#define NAME "husk-keeps" /* of the process */

static struct pod {
	char root[256], dir[300]; /* the keeper's tmpfs, and the directory in there */
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
	pod.keeper = (struct volume_keeper){ .process = NAME,
					     .dir = pod.dir,
					     .ids_fd = HOT_VOLUMES_IDS_FD,
					     .otherwise = "nobody is there" };
	assert_int_equal(mkdirat(fixture_dir(state), "root", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "pod", 0700), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "source", 0755), 0);
	fixture_write(state, "source/file", "x", 1);
	snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	fixture_write(state, "pod/" POD_FILE_PID, pid, strlen(pid));
	cleanup_fd int dir = openat(fixture_dir(state), "pod", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchdir(dir), 0);
	pod.lock = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(pod.lock, LOCK_EX), 0);
}

static void bring(void **state, struct pod_app *app, const char *source, bool read_only)
{
	CLEANUP(volume_deinit) struct volume v;
	char path[300];
	volume_init(&v);
	snprintf(v.name, sizeof(v.name), "v%zu", app->volumes.n);
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), source);
	v.kind = VOLUME_HOST;
	assert_int_equal(volume_set_source(&v, path), 0);
	assert_int_equal(volumes_add(&app->volumes, &v), 0);
	assert_int_equal(volume_mounts_add(&app->mounts, v.name, path, read_only), 0);
}

/* Opens what the keeper has at @path in the app's directory. */
static int open_there(const char *path, int flags)
{
	char full[512];
	snprintf(full, sizeof(full), "/proc/%d/root%s/app/%s", (int)pod.child, pod.dir, path);
	int fd = open(full, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
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
		fixture_test(test_comes_and_goes),
		fixture_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
