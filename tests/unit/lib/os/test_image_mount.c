/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/image_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/spawn.h"
#include "tests/support/fixture.h"

#define LIMIT_MS 60000

/* An image with a file for all and one for root, made by squashfs-tools; open for reading. */
static int make_image(void **state)
{
	char command[1024];
	assert_int_equal(mkdirat(fixture_dir(state), "root", 0755), 0);
	fixture_write(state, "root/name", "text", 4);
	fixture_write(state, "root/secret", "text", 4);
	assert_int_equal(fchmodat(fixture_dir(state), "root", 0755, 0), 0);
	assert_int_equal(fchmodat(fixture_dir(state), "root/name", 0644, 0), 0);
	assert_int_equal(fchmodat(fixture_dir(state), "root/secret", 0600, 0), 0);
	snprintf(command, sizeof(command),
		 "cd '%s' && mksquashfs root image -quiet -no-progress >&2", fixture_path(state));
	assert_int_equal(system(command), 0);
	int fd = openat(fixture_dir(state), "image", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Loop devices that show the file @path, one after the other. */
static int count_loops(const char *path)
{
	char command[1024], line[16] = "";
	snprintf(command, sizeof(command), "losetup --noheadings --output NAME -j '%s' | wc -l",
		 path);
	FILE *p = popen(command, "r");
	assert_non_null(p);
	assert_non_null(fgets(line, sizeof(line), p));
	pclose(p);
	return atoi(line);
}

/* What the image has can be read, and no more, nor are there devices. A file in it, open. */
static int check_mount(int mount)
{
	char text[8] = "";
	struct statvfs fs;
	int file = openat(mount, "name", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(file, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	assert_int_equal(openat(mount, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(fstatvfs(mount, &fs), 0);
	assert_true(fs.f_flag & ST_NODEV);
	return file;
}

/* The image is read while it is attached nowhere, and leaves no device when it is closed. */
static void test_loop(void **state)
{
	char path[512];
	struct err e = ERR_INIT;
	if (geteuid() != 0)
		skip();
	cleanup_fd int image = make_image(state);
	snprintf(path, sizeof(path), "%s/image", fixture_path(state));
	int mount = image_mount_loop(image, -EBADF, &e);
	if (mount < 0)
		fail_msg("%s", e.text);
	int file = check_mount(mount);
	assert_int_equal(count_loops(path), 1);
	fd_close(file);
	fd_close(mount);
	for (int i = 0; count_loops(path) > 0; i++)
		assert_true(i < 100); /* the kernel is about to */
}

static void test_no_image(void **state)
{
	struct err e = ERR_INIT;
	char path[512];
	if (geteuid() != 0)
		skip();
	fixture_write(state, "other", "not a squashfs", 14);
	cleanup_fd int fd = openat(fixture_dir(state), "other", O_RDONLY | O_CLOEXEC);
	assert_true(image_mount_loop(fd, -EBADF, &e) < 0);
	assert_non_null(strstr(e.text, "image: "));
	snprintf(path, sizeof(path), "%s/other", fixture_path(state));
	for (int i = 0; count_loops(path) > 0; i++)
		assert_true(i < 100);
	assert_true(image_mount_loop(-EBADF, -EBADF, &e) < 0);
}

/* Nobody writes through it, also if the file may be written. */
static void test_file(void **state)
{
	char path[512], self[64], text[8] = "";
	if (geteuid() != 0)
		skip();
	fixture_write(state, "program", "text", 4);
	snprintf(path, sizeof(path), "%s/program", fixture_path(state));
	cleanup_fd int mount = image_mount_file(path);
	assert_true(mount >= 0);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", mount);
	assert_int_equal(open(self, O_WRONLY | O_CLOEXEC), -1);
	assert_int_equal(errno, EROFS);
	cleanup_fd int file = open(self, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(file, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	assert_int_equal(image_mount_file("/nonexistent"), -ENOENT);
}

static void test_mapped(void **state)
{
	struct err e = ERR_INIT;
	if (geteuid() != 0)
		skip();
	cleanup_fd int own = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	assert_true(image_mount_mapped(fixture_dir(state), own, "here", &e) < 0);
	assert_non_null(strstr(e.text, "here: "));
	assert_true(image_mount_mapped(-EBADF, own, "there", &e) < 0);
	assert_non_null(strstr(e.text, "there: "));
}

/* @line is in /proc/PID/status. */
static bool status_says(pid_t pid, const char *line)
{
	char path[64];
	size_t len;
	cleanup_free char *text = NULL;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	assert_int_equal(file_read_path(path, 65536, &text, &len), 0);
	return strstr(text, line) != NULL;
}

static pid_t serve(int image, int device)
{
	struct err e = ERR_INIT;
	pid_t pid = 0;
	if (image_serve_fuse(image, device, STDERR_FILENO, &pid, &e) < 0)
		fail_msg("%s", e.text);
	return pid;
}

/* What the open(2) of @name, below @dir, says to another user than root. */
static int open_as_nobody(int dir, const char *name)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(EXDEV);
		_exit(openat(dir, name, O_RDONLY | O_CLOEXEC) < 0 ? errno : 0);
	}
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* What serves it is somebody's program and reads what somebody made: it can gain no privileges. */
static void test_fuse(void **state)
{
	struct err e = ERR_INIT;
	int status;
	if (geteuid() != 0 || image_check_fuse(&e) < 0)
		skip();
	cleanup_fd int image = make_image(state);
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int mount = image_mount_fuse(device);
	assert_true(mount >= 0);
	pid_t pid = serve(image, device);
	fd_close(device);
	int file = check_mount(mount);
	assert_true(status_says(pid, "\nNoNewPrivs:\t1\n"));
	assert_int_equal(open_as_nobody(mount, "name"), 0);
	assert_int_equal(open_as_nobody(mount, "secret"), EACCES); /* which no server checks */
	fd_close(file);
	/* It ends when nobody has the mount any more. */
	fd_close(mount);
	assert_int_equal(spawn_wait(pid, &status), 0);
}

/* Nor does it live on without the one who has started it, whoever has the mount. */
static void test_fuse_dies(void **state)
{
	struct err e = ERR_INIT;
	int ends[2];
	pid_t server = 0;
	if (geteuid() != 0 || image_check_fuse(&e) < 0)
		skip();
	cleanup_fd int image = make_image(state);
	cleanup_fd int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	cleanup_fd int mount = image_mount_fuse(device);
	assert_true(mount >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		server = serve(image, device);
		assert_int_equal(write(ends[1], &server, sizeof(server)), sizeof(server));
		pause();
	}
	assert_int_equal(read(ends[0], &server, sizeof(server)), sizeof(server));
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, server, 0);
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	assert_true(pidfd >= 0);
	kill(pid, SIGKILL);
	assert_int_equal(spawn_wait(pid, &(int){ 0 }), 0);
	assert_int_equal(poll(&end, 1, LIMIT_MS), 1);
	fd_close(ends[0]);
	fd_close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_loop), fixture_test(test_no_image),
		fixture_test(test_file), fixture_test(test_mapped),
		fixture_test(test_fuse), fixture_test(test_fuse_dies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
