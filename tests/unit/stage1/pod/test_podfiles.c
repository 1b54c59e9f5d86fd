/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/podfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static const char manifest[] =
	"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":[{\"name\":\"a\","
	"\"image\":{\"id\":\"sha256-00\"},\"app\":{\"exec\":[\"/bin/true\"]}}]}";

static void test_manifest(void **state)
{
	struct err e = ERR_INIT;
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	pod_manifest_init(&m);
	int dir = fixture_dir(state);
	assert_int_equal(podfiles_read_manifest(dir, &m, &e), -ENOENT);
	assert_non_null(strstr(e.text, "pod manifest"));
	fixture_write(state, POD_FILE_MANIFEST, manifest, strlen(manifest) - 1);
	assert_true(podfiles_read_manifest(dir, &m, &e) < 0);
	fixture_write(state, POD_FILE_MANIFEST, manifest, strlen(manifest));
	assert_int_equal(podfiles_read_manifest(dir, &m, &e), 0);
	assert_int_equal(m.n_apps, 1);
}

static void test_secret(void **state)
{
	struct err e = ERR_INIT;
	int dir = fixture_dir(state);
	char one[AGENT_SECRET_LEN + 1], two[AGENT_SECRET_LEN + 1];
	assert_int_equal(podfiles_make_secret(dir, one, &e), 0);
	assert_int_equal(strlen(one), AGENT_SECRET_LEN);
	struct stat st;
	assert_int_equal(fstatat(dir, POD_FILE_SECRET, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(podfiles_make_secret(dir, two, &e), 0);
	assert_string_not_equal(one, two);
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(dir, POD_FILE_SECRET, AGENT_SECRET_LEN, &text, NULL), 0);
	assert_string_equal(text, two);
}

static void test_cgroup_parent(void **state)
{
	struct err e = ERR_INIT;
	int dir = fixture_dir(state);
	char longest[CGROUP_PATH_MAX] = "", ret[CGROUP_PATH_MAX] = "x";
	assert_int_equal(podfiles_write_cgroup_parent(dir, "", &e), 0);
	assert_int_equal(faccessat(dir, POD_FILE_CGROUP_PARENT, F_OK, 0), -1);
	assert_int_equal(podfiles_read_cgroup_parent(dir, ret, &e), 0);
	assert_string_equal(ret, "");
	memset(longest, 'a', sizeof(longest) - 1);
	assert_int_equal(podfiles_write_cgroup_parent(dir, longest, &e), 0);
	assert_int_equal(podfiles_read_cgroup_parent(dir, ret, &e), 0);
	assert_string_equal(ret, longest);
	assert_int_equal(file_write_at(dir, "more", longest, sizeof(longest), 0600), 0);
	assert_int_equal(renameat(dir, "more", dir, POD_FILE_CGROUP_PARENT), 0);
	assert_int_equal(podfiles_read_cgroup_parent(dir, ret, &e), -EFBIG);
	assert_non_null(strstr(e.text, POD_FILE_CGROUP_PARENT));
}

static void test_pid(void **state)
{
	struct err e = ERR_INIT;
	char want[16];
	snprintf(want, sizeof(want), "%d\n", getpid());
	assert_int_equal(podfiles_write_pid(fixture_dir(state), &e), 0);
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(fixture_dir(state), POD_FILE_PID, 16, &text, NULL), 0);
	assert_string_equal(text, want);
}

static void make_app(int dir)
{
	assert_int_equal(mkdirat(dir, POD_DIR_APPS, 0750), 0);
	assert_int_equal(mkdirat(dir, POD_DIR_APPS "/a", 0750), 0);
}

static void test_rootfs_is_read_only(void **state)
{
	struct err e = ERR_INIT;
	int dir = fixture_dir(state);
	make_app(dir);
	assert_int_equal(podfiles_open_rootfs(dir, "a", &e), -ENOENT);
	assert_non_null(strstr(e.text, "\"a\""));
	fixture_write(state, POD_DIR_APPS "/a/" POD_FILE_ROOTFS, "x", 1);
	cleanup_fd int fd = podfiles_open_rootfs(dir, "a", &e);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(write(fd, "y", 1), -1);
}

/* A link out of the pod, or anything but a file, is not opened as a disk. */
static void test_rootfs_tricks(void **state)
{
	struct err e = ERR_INIT;
	int dir = fixture_dir(state);
	make_app(dir);
	assert_int_equal(symlinkat("/etc/passwd", dir, POD_DIR_APPS "/a/" POD_FILE_ROOTFS), 0);
	assert_true(podfiles_open_rootfs(dir, "a", &e) < 0);
	assert_int_equal(unlinkat(dir, POD_DIR_APPS "/a/" POD_FILE_ROOTFS, 0), 0);
	assert_int_equal(mkdirat(dir, POD_DIR_APPS "/a/" POD_FILE_ROOTFS, 0700), 0);
	assert_int_equal(podfiles_open_rootfs(dir, "a", &e), -EINVAL);
}

static void test_read_secret(void **state)
{
	int dir = fixture_dir(state);
	char one[AGENT_SECRET_LEN + 1], two[AGENT_SECRET_LEN + 1];
	struct err e = ERR_INIT;
	assert_int_equal(podfiles_read_secret(dir, two, &e), -ENOENT);
	assert_int_equal(podfiles_make_secret(dir, one, &e), 0);
	assert_int_equal(podfiles_read_secret(dir, two, &e), 0);
	assert_string_equal(one, two);
	fixture_write(state, POD_FILE_SECRET, one, AGENT_SECRET_LEN - 1);
	assert_int_equal(podfiles_read_secret(dir, two, &e), -EBADMSG);
}

static void test_status(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(podfiles_note_exited(dir, "a", 7), -ENOENT);
	assert_int_equal(mkdirat(dir, POD_DIR_STATUS, 0750), 0);
	assert_int_equal(podfiles_note_started(dir, "a"), 0);
	assert_int_equal(faccessat(dir, POD_DIR_STATUS "/a-started", F_OK, 0), 0);
	assert_int_equal(podfiles_note_oom(dir, "a"), 0);
	assert_int_equal(faccessat(dir, POD_DIR_STATUS "/a-oom", F_OK, 0), 0);
	assert_int_equal(podfiles_note_exited(dir, "a", 7), 0);
	cleanup_free char *text = NULL;
	cleanup_fd int status = openat(dir, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(file_read_at(status, "a", 16, &text, NULL), 0);
	assert_string_equal(text, "7\n");
	assert_int_equal(podfiles_note_started(dir, "a"), 0); /* what was short then is not now */
	assert_int_equal(faccessat(status, "a-oom", F_OK, 0), -1);
}

static bool has_status(int dir, const char *file)
{
	cleanup_fd int status = openat(dir, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return faccessat(status, file, F_OK, 0) == 0;
}

/*
 * An app that has ended, or was started anew, is not being stopped, whatever could not be written.
 */
static void test_stopping(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, POD_DIR_STATUS, 0750), 0);
	assert_int_equal(podfiles_note_created(dir, "a"), 0);
	assert_true(has_status(dir, "a-created"));
	assert_int_equal(podfiles_note_stopping(dir, "a"), 0);
	assert_true(has_status(dir, "a-stopping"));
	assert_int_equal(podfiles_note_exited(dir, "a", 0), 0);
	assert_false(has_status(dir, "a-stopping"));
	assert_int_equal(podfiles_note_stopping(dir, "a"), 0);
	assert_int_equal(podfiles_note_started(dir, "a"), 0);
	assert_false(has_status(dir, "a-stopping"));
	assert_false(has_status(dir, "a"));
	assert_int_equal(podfiles_note_stopping(dir, "a"), 0);
	assert_int_equal(mkdirat(dir, POD_DIR_STATUS "/a", 0750), 0); /* in the way */
	assert_true(podfiles_note_exited(dir, "a", 0) < 0);
	assert_false(has_status(dir, "a-stopping"));
}

/* The space that is reserved has another name until it is the status, and none afterwards. */
static void test_reserved(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, POD_DIR_STATUS, 0750), 0);
	for (int i = 0; i < 2; i++) { /* it is started again */
		assert_int_equal(podfiles_note_started(dir, "a"), 0);
		assert_true(has_status(dir, ".a-reserved"));
		assert_false(has_status(dir, "a"));
		assert_int_equal(podfiles_note_started(dir, "a"),
				 0); /* a supervisor that died did that */
		assert_int_equal(podfiles_note_exited(dir, "a", i), 0);
		assert_false(has_status(dir, ".a-reserved"));
		assert_true(has_status(dir, "a"));
	}
}

/* Takes all space of the file system of the working directory. */
static bool fill_disk(void)
{
	static const char block[4096];
	cleanup_fd int fd = open("filler", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	size_t size = sizeof(block);
	while (fd >= 0 && size > 0)
		size = write(fd, block, size) > 0 ? size : size / 2;
	return fd >= 0 && errno == ENOSPC;
}

#define SKIPPED 77

static bool status_is(const char *want)
{
	cleanup_free char *text = NULL;
	return file_read_at(AT_FDCWD, POD_DIR_STATUS "/a", 16, &text, NULL) == 0 &&
	       strcmp(text, want) == 0;
}

static int end_on_full_disk(const char *path)
{
	if ((unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", path, "tmpfs", 0, "size=64k") < 0 || chdir(path) < 0)
		return SKIPPED;
	int pod = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdir(POD_DIR_STATUS, 0750) < 0 || podfiles_note_started(pod, "a") < 0)
		return 1;
	if (!fill_disk() || file_write_at(pod, "other", "7\n", 2, 0640) != -ENOSPC)
		return 2;
	if (podfiles_note_exited(pod, "a", 255) != 0 || !status_is("255\n"))
		return 3;
	/* The space of the first is that of the next. */
	if (podfiles_note_started(pod, "a") < 0 || access(POD_DIR_STATUS "/a", F_OK) == 0)
		return 4;
	if (podfiles_note_oom(pod, "a") < 0 || podfiles_note_exited(pod, "a", 9) != 0)
		return 5;
	return status_is("9\n") ? 0 : 6;
}

static void test_full_disk(void **state)
{
	int status;
	const char *path = fixture_path(state);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(end_on_full_disk(path));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED) {
		print_message("skip: nobody may mount here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Why an app ended: only if there is something to say, and of its last run. */
static void test_reason(void **state)
{
	int dir = fixture_dir(state);
	char longest[AGENT_TEXT_MAX + 1];
	memset(longest, 'x', AGENT_TEXT_MAX);
	longest[AGENT_TEXT_MAX] = '\0';
	assert_int_equal(podfiles_note_reason(dir, "a", 9, ""), -ENOENT);
	assert_int_equal(mkdirat(dir, POD_DIR_STATUS, 0750), 0);
	assert_int_equal(podfiles_note_reason(dir, "a", 0, ""), 0);
	assert_false(has_status(dir, "a-reason"));
	assert_int_equal(podfiles_note_reason(dir, "a", 64, longest), 0);
	cleanup_free char *text = NULL;
	cleanup_fd int status = openat(dir, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(file_read_at(status, "a-reason", 1024, &text, NULL), 0);
	assert_memory_equal(text, "64\nxxx", 6);
	assert_int_equal(strlen(text), 3 + AGENT_TEXT_MAX + 1);
	assert_int_equal(podfiles_note_started(dir, "a"), 0);
	assert_false(has_status(dir, "a-reason"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_manifest),      fixture_test(test_secret),
		fixture_test(test_pid),           fixture_test(test_rootfs_is_read_only),
		fixture_test(test_rootfs_tricks), fixture_test(test_status),
		fixture_test(test_read_secret),   fixture_test(test_stopping),
		fixture_test(test_reserved),      fixture_test(test_full_disk),
		fixture_test(test_reason),        fixture_test(test_cgroup_parent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
