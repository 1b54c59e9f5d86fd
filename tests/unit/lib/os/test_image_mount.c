/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/image_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

/* An image with the file "name", made by squashfs-tools; open for reading. */
static int make_image(void **state)
{
	char command[1024];
	assert_int_equal(mkdirat(fixture_dir(state), "root", 0755), 0);
	fixture_write(state, "root/name", "text", 4);
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

/* The image is read while it is attached nowhere, and leaves no device when it is closed. */
static void test_loop(void **state)
{
	char path[512], text[8] = "";
	struct statvfs fs;
	struct err e = ERR_INIT;
	if (geteuid() != 0)
		skip();
	cleanup_fd int image = make_image(state);
	snprintf(path, sizeof(path), "%s/image", fixture_path(state));
	int mount = image_mount_loop(image, -EBADF, &e);
	if (mount < 0)
		fail_msg("%s", e.text);
	int file = openat(mount, "name", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(file, text, sizeof(text)), 4);
	assert_string_equal(text, "text");
	assert_int_equal(openat(mount, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(fstatvfs(mount, &fs), 0);
	assert_true(fs.f_flag & ST_NODEV);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_loop),
		fixture_test(test_no_image),
		fixture_test(test_file),
		fixture_test(test_mapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
