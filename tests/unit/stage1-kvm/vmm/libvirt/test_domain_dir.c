/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/libvirt/domain_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

#define UUID "6a2a4a4e-2f0e-4b8f-9a48-0c1d2e3f4a5b"

/* What the file @name in @dir has; of the caller. */
static char *content(const char *dir, const char *name)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_read_path(path, 100, &text, &len), 0);
	return text;
}

static int make_file(void **state, const char *name, const char *text)
{
	assert_int_equal(file_write_at(fixture_dir(state), name, text, strlen(text), 0600), 0);
	int fd = openat(fixture_dir(state), name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Whether whoever gets to the file by @path gets no device, program or privilege of it. */
static bool is_mere_data(const char *path)
{
	const unsigned long flags = ST_NOSUID | ST_NODEV | ST_NOEXEC;
	struct statvfs fs;
	assert_int_equal(statvfs(path, &fs), 0);
	return (fs.f_flag & flags) == flags;
}

/* As whoever opened the file does. */
static int put_file(const char *dir, const char *name, int fd, bool read_only)
{
	char path[PATH_MAX];
	assert_int_equal(domain_dir_path_of(fd, path), 0);
	return domain_dir_put(dir, name, fd, path, read_only);
}

static void make_dir(void **state, char ret[DOMAIN_DIR_MAX + 1])
{
	struct err e = ERR_INIT;
	snprintf(ret, DOMAIN_DIR_MAX + 1, "%s/d", fixture_path(state));
	if (domain_dir_make(ret, &e) < 0)
		fail_msg("%s", e.text);
}

static void test_put_and_take(void **state)
{
	char dir[DOMAIN_DIR_MAX + 1], path[PATH_MAX];
	cleanup_fd int fd = make_file(state, "image", "disk");
	make_dir(state, dir);
	int r = put_file(dir, "disk0", fd, true);
	if (r == -EPERM)
		skip(); /* root, who may not mount */
	assert_int_equal(r, 0);
	assert_int_equal(put_file(dir, "disk1", fd, false), 0);
	assert_int_equal(put_file(dir, "disk1", fd, false), -EEXIST);
	cleanup_free char *text = content(dir, "disk0");
	assert_string_equal(text, "disk");
	snprintf(path, sizeof(path), "%s/disk1", dir);
	assert_true(geteuid() != 0 || is_mere_data(path));
	snprintf(path, sizeof(path), "%s/disk0", dir);
	assert_true(geteuid() != 0 || is_mere_data(path));
	if (geteuid() == 0)
		assert_int_equal(open(path, O_RDWR | O_CLOEXEC), -1); /* whoever may open it */
	cleanup_fd int in_use = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(in_use >= 0);
	assert_int_equal(domain_dir_take(dir, "disk0"), 0);
	assert_int_equal(domain_dir_take(dir, "disk0"), -ENOENT);
	assert_int_equal(domain_dir_remove(dir), 0);
	assert_int_equal(domain_dir_remove(dir), 0);
	assert_int_equal(access(dir, F_OK), -1);
	cleanup_free char *still = content(fixture_path(state), "image");
	assert_string_equal(still, "disk");
}

static void test_write(void **state)
{
	char dir[DOMAIN_DIR_MAX + 1], path[PATH_MAX];
	struct stat st;
	make_dir(state, dir);
	assert_int_equal(domain_dir_write(dir, "secret", "abc", 3), 0);
	snprintf(path, sizeof(path), "%s/secret", dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0400);
	assert_int_equal(domain_dir_remove(dir), 0);
}

/* One that was left, with all that may be in it, is made anew. */
static void test_left(void **state)
{
	char dir[DOMAIN_DIR_MAX + 1], path[PATH_MAX];
	struct stat st;
	cleanup_fd int fd = make_file(state, "image", "disk");
	make_dir(state, dir);
	if (put_file(dir, "disk0", fd, true) == -EPERM)
		skip();
	assert_int_equal(domain_dir_write(dir, "secret", "abc", 3), 0);
	make_dir(state, dir);
	snprintf(path, sizeof(path), "%s/disk0", dir);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(domain_dir_remove(dir), 0);
}

/* Opens @path as the user @uid, with @gid among his groups. 0 or an errno. */
static int open_as(uid_t uid, gid_t gid, const char *path, int flags)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		bool is_he = setgroups(1, &gid) == 0 && setresgid(gid, gid, gid) == 0 &&
			     setresuid(uid, uid, uid) == 0;
		_exit(!is_he ? EDOM : open(path, flags | O_CLOEXEC) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

/* Of those who are not root only the one whose QEMU it is gets to the files, by their names. */
static void test_open_to(void **state)
{
	const uid_t qemu = 64055, other = 12345;
	const gid_t group = 64055;
	char dir[DOMAIN_DIR_MAX + 1], path[PATH_MAX];
	struct stat st;
	if (geteuid() != 0)
		skip();
	make_dir(state, dir);
	snprintf(path, sizeof(path), "%s/disk0", dir);
	assert_int_equal(domain_dir_write(dir, "disk0", "disk", 4), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(fixture_path(state), 0711), 0);
	assert_int_equal(open_as(qemu, group, path, O_RDONLY), EACCES);
	assert_int_equal(domain_dir_open_to(dir, qemu), 0);
	assert_int_equal(open_as(qemu, group, path, O_RDONLY), 0);
	assert_int_equal(open_as(qemu, group, dir, O_RDONLY | O_DIRECTORY), EACCES);
	assert_int_equal(open_as(other, group, path, O_RDONLY), EACCES);
	assert_int_equal(open_as(other, 0, path, O_RDONLY), EACCES);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(domain_dir_remove(dir), 0);
}

/* A process in a mount namespace that gets what is mounted in ours; it ends when @pipe does. */
static pid_t start_daemon(int pipe[2])
{
	char byte;
	assert_int_equal(pipe2(pipe, O_CLOEXEC), 0);
	int end[2];
	assert_int_equal(pipe2(end, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		close(end[1]);
		bool done = unshare(CLONE_NEWNS) == 0 && write(pipe[1], "", 1) == 1;
		_exit(done && read(end[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(end[0]);
	assert_int_equal(read(pipe[0], &byte, 1), 1);
	close(pipe[1]);
	pipe[1] = end[1];
	return child;
}

/* What is read-only here is read-only where libvirt's daemon and QEMU are. */
static void test_propagates(void **state)
{
	char dir[DOMAIN_DIR_MAX + 1], there[PATH_MAX];
	const char *path = fixture_path(state);
	int pipe[2], status;
	if (geteuid() != 0 || mount("tmpfs", path, "tmpfs", 0, "mode=711") < 0)
		skip();
	assert_int_equal(mount(NULL, path, NULL, MS_SHARED, NULL), 0);
	pid_t daemon = start_daemon(pipe);
	make_dir(state, dir);
	snprintf(there, sizeof(there), "%s/image", path);
	int fd = open(there, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(put_file(dir, "disk0", fd, true), 0);
	assert_int_equal(put_file(dir, "disk1", fd, false), 0);
	snprintf(there, sizeof(there), "/proc/%d/root%s/disk0", (int)daemon, dir);
	assert_int_equal(open(there, O_RDWR | O_CLOEXEC), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(chown(there, 12345, 12345), -1);
	assert_int_equal(errno, EROFS);
	snprintf(there, sizeof(there), "/proc/%d/root%s/disk1", (int)daemon, dir);
	int writer = open(there, O_RDWR | O_CLOEXEC);
	assert_true(writer >= 0);
	close(writer);
	close(fd);
	close(pipe[1]);
	close(pipe[0]);
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_int_equal(status, 0);
	assert_int_equal(domain_dir_remove(dir), 0);
	assert_int_equal(umount(path), 0);
}

/* A file that has another name by now is not taken for what is there instead. */
static void test_moved(void **state)
{
	char dir[DOMAIN_DIR_MAX + 1], path[PATH_MAX];
	if (geteuid() != 0)
		skip();
	cleanup_fd int fd = make_file(state, "image", "disk");
	assert_int_equal(domain_dir_path_of(fd, path), 0);
	make_dir(state, dir);
	assert_int_equal(renameat(fixture_dir(state), "image", fixture_dir(state), "other"), 0);
	assert_int_equal(domain_dir_put(dir, "disk0", fd, path, true), -ENOENT);
	assert_int_equal(symlinkat("other", fixture_dir(state), "image"), 0);
	assert_int_equal(domain_dir_put(dir, "disk0", fd, path, true), -ESTALE);
	assert_int_equal(unlinkat(fixture_dir(state), "image", 0), 0);
	cleanup_fd int stranger = make_file(state, "image", "stranger");
	assert_true(stranger >= 0);
	assert_int_equal(domain_dir_put(dir, "disk0", fd, path, true), -ESTALE);
	assert_int_equal(domain_dir_remove(dir), 0);
}

/* Of those who are not root it is in the pod directory, as long as sockets in it have room. */
static void expect_path_of_others(void **state, size_t len)
{
	char path[DOMAIN_DIR_MAX + 1], name[DOMAIN_DIR_MAX] = "";
	struct err e = ERR_INIT;
	memset(name, 'x', len - strlen(fixture_path(state)) - sizeof("//" DOMAIN_DIR_POD) + 1);
	assert_int_equal(mkdirat(fixture_dir(state), name, 0755), 0);
	cleanup_fd int pod = openat(fixture_dir(state), name, O_RDONLY | O_CLOEXEC);
	pid_t child = fork();
	if (child == 0) {
		assert_true(geteuid() != 0 || setresuid(12345, 12345, 12345) == 0);
		int r = domain_dir_path(pod, UUID, path, &e);
		assert_int_equal(r, len > DOMAIN_DIR_MAX ? -ENAMETOOLONG : 0);
		assert_int_equal(strlen(path), len > DOMAIN_DIR_MAX ? 0 : len);
		assert_true(r == 0 || strstr(e.text, "at most 87 bytes"));
		_exit(0);
	}
	int status = -1;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_path(void **state)
{
	char path[DOMAIN_DIR_MAX + 1];
	struct err e = ERR_INIT;
	assert_int_equal(domain_dir_path(fixture_dir(state), UUID, path, &e), 0);
	if (geteuid() == 0)
		assert_string_equal(path, DOMAIN_DIR_ROOT "/" UUID);
	assert_int_equal(domain_dir_remove_left("00000000-0000-4000-8000-000000000000"), 0);
	if (strlen(fixture_path(state)) + sizeof("/x/" DOMAIN_DIR_POD) > DOMAIN_DIR_MAX)
		skip();
	expect_path_of_others(state, DOMAIN_DIR_MAX);
	expect_path_of_others(state, DOMAIN_DIR_MAX + 1);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	return st.st_mode & 07777;
}

/* The first pod of root makes what all of them are in, whatever its umask; the last leaves it. */
static void test_root(void **state)
{
	char dir[DOMAIN_DIR_MAX + 1], path[PATH_MAX];
	struct err e = ERR_INIT;
	if (geteuid() != 0 || mount("tmpfs", "/run", "tmpfs", 0, "mode=755") < 0)
		skip();
	cleanup_fd int fd = make_file(state, "image", "disk");
	assert_int_equal(domain_dir_path(fixture_dir(state), UUID, dir, &e), 0);
	mode_t mask = umask(077);
	assert_int_equal(domain_dir_make(dir, &e), 0);
	umask(mask);
	assert_int_equal(mode_of(DOMAIN_DIR_ROOT), 0711);
	assert_int_equal(mode_of(dir), 0700);
	assert_int_equal(put_file(dir, "disk0", fd, false), 0);
	assert_int_equal(domain_dir_write(dir, "secret", "abc", 3), 0);
	assert_int_equal(domain_dir_remove_left(UUID), 0);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(access(DOMAIN_DIR_ROOT, F_OK), 0);
	snprintf(path, sizeof(path), "%s/image", fixture_path(state));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(umount("/run"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_put_and_take), fixture_test(test_write),
		fixture_test(test_left),         fixture_test(test_moved),
		fixture_test(test_path),         fixture_test(test_open_to),
		fixture_test(test_propagates),   fixture_test(test_root),
	};
	/* What is mounted here is nobody else's. */
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
