/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/podfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

static void test_dial_target(void **state)
{
	int dir = fixture_dir(state);
	struct dial_target t;
	struct err e = ERR_INIT;
	assert_int_equal(podfiles_dial_target(dir, &t, &e), -ENOENT);
	fixture_write(state, POD_FILE_VSOCK, "", 0);
	assert_int_equal(podfiles_dial_target(dir, &t, &e), 0);
	assert_string_equal(t.socket, POD_FILE_VSOCK);
	fixture_write(state, POD_FILE_CID, "4294967295\n", 11);
	assert_int_equal(podfiles_dial_target(dir, &t, &e), 0);
	assert_null(t.socket);
	assert_int_equal(t.cid, UINT32_MAX);
	fixture_write(state, POD_FILE_CID, "4294967296\n", 11);
	assert_true(podfiles_dial_target(dir, &t, &e) < 0);
	fixture_write(state, POD_FILE_CID, "", 0);
	assert_true(podfiles_dial_target(dir, &t, &e) < 0);
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
}

static bool has_status(int dir, const char *file)
{
	cleanup_fd int status = openat(dir, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return faccessat(status, file, F_OK, 0) == 0;
}

/* An app that has ended, or was started anew, is not being stopped, whatever could not be written. */
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

static void test_first_disk(void **state)
{
	struct stat st;
	int dir = fixture_dir(state);
	assert_int_equal(podfiles_note_first_disk(dir, "a"), -ENOENT);
	make_app(dir);
	assert_int_equal(podfiles_note_first_disk(dir, "a"), 0);
	assert_int_equal(podfiles_note_first_disk(dir, "a"), 0);
	assert_int_equal(fstatat(dir, POD_DIR_APPS "/a/" POD_FILE_FIRST_DISK, &st, 0), 0);
	assert_true(S_ISREG(st.st_mode) && st.st_size == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_manifest),      fixture_test(test_secret),
		fixture_test(test_pid),           fixture_test(test_rootfs_is_read_only),
		fixture_test(test_rootfs_tricks), fixture_test(test_status),
		fixture_test(test_read_secret),   fixture_test(test_dial_target),
		fixture_test(test_stopping),      fixture_test(test_first_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
