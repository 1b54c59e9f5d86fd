/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static void make_dir(int dir, const char *path)
{
	char partial[256];
	snprintf(partial, sizeof(partial), "%s", path);
	for (char *p = partial; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		mkdirat(dir, partial, 0755);
	}
	assert_int_equal(mkdirat(dir, path, 0755), 0);
}

static void test_lookup(void **state)
{
	int dir = fixture_dir(state);
	const char *sysfs = fixture_path(state);
	char dev[64];
	make_dir(dir, "0:0:0:1/block/sdb");
	make_dir(dir, "0:0:0:11/block/sdl");
	make_dir(dir, "0:0:0:255/block/sdiv");
	make_dir(dir, "0:0:0:256/block/sdiw");
	make_dir(dir, "0:0:0:2");
	make_dir(dir, "0:0:0:3/block");
	make_dir(dir, "0:0:4/block/sdx");
	make_dir(dir, "0:0:0:5x/block/sdx");
	make_dir(dir, "host0");
	make_dir(dir, "target0:0:0");
	assert_int_equal(disk_lookup(sysfs, 1, dev, sizeof(dev)), 0);
	assert_string_equal(dev, "/dev/sdb");
	assert_int_equal(disk_lookup(sysfs, 11, dev, sizeof(dev)), 0);
	assert_string_equal(dev, "/dev/sdl");
	assert_int_equal(disk_lookup(sysfs, AGENT_LUN_MAX, dev, sizeof(dev)), 0);
	assert_string_equal(dev, "/dev/sdiv");
	for (int lun = 2; lun <= 5; lun++)
		assert_int_equal(disk_lookup(sysfs, lun, dev, sizeof(dev)), -ENOENT);
	assert_int_equal(disk_lookup(sysfs, 256, dev, sizeof(dev)), -ENOENT);
}

static void check_file(int dir, const char *path, const char *text)
{
	char got[16] = "";
	cleanup_fd int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, got, sizeof(got) - 1) >= 0);
	assert_string_equal(got, text);
}

static void make_file(int dir, const char *path)
{
	cleanup_fd int fd = openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
}

static void test_scan(void **state)
{
	int dir = fixture_dir(state);
	make_dir(dir, "host0");
	make_dir(dir, "host11");
	make_dir(dir, "other");
	make_file(dir, "host0/scan");
	make_file(dir, "host11/scan");
	make_file(dir, "other/scan");
	make_file(dir, "type");
	char type[4096];
	snprintf(type, sizeof(type), "%s/type", fixture_path(state));
	assert_int_equal(disk_scan(fixture_path(state), type), 0);
	check_file(dir, "type", "sync");
	check_file(dir, "host0/scan", "0 0 -");
	check_file(dir, "host11/scan", "0 0 -");
	check_file(dir, "other/scan", "");
	make_dir(dir, "host2");
	assert_int_equal(disk_scan(fixture_path(state), type), -ENOENT);
	assert_int_equal(disk_scan("/nonexistent", type), 0);
}

static void test_is_known(void **state)
{
	make_dir(fixture_dir(state), "0:0:0:255");
	assert_true(disk_is_known(fixture_path(state), 255));
	assert_false(disk_is_known(fixture_path(state), 0));
	assert_false(disk_is_known("/nonexistent", 0));
}

static void test_room(void **state)
{
	char dev[10];
	make_dir(fixture_dir(state), "0:0:0:0/block/sda");
	assert_int_equal(disk_lookup(fixture_path(state), 0, dev, 9), 0);
	assert_int_equal(disk_lookup(fixture_path(state), 0, dev, 8), -ENAMETOOLONG);
}

static void test_no_bus(void **state)
{
	char dev[16], path[256];
	fixture_dir(state);
	snprintf(path, sizeof(path), "%s/none", fixture_path(state));
	assert_int_equal(disk_lookup(path, 0, dev, sizeof(dev)), -ENOENT);
}

static void test_directory(void **state)
{
	char path[PATH_MAX], want[PATH_MAX];
	struct fault f = { 0 };
	make_dir(fixture_dir(state), "7");
	assert_int_equal(disk_wait(fixture_path(state), 7, path, &f), 0);
	snprintf(want, sizeof(want), "%s/7", fixture_path(state));
	assert_string_equal(path, want);
}

/* Anything but "not there yet" ends the wait at once. */
static void test_failure(void **state)
{
	char path[PATH_MAX], file[PATH_MAX];
	struct fault f = { 0 };
	fixture_write(state, "file", "x", 1);
	snprintf(file, sizeof(file), "%s/file", fixture_path(state));
	assert_int_equal(disk_wait(file, 0, path, &f), FAULT_SET);
	assert_int_equal(f.code, AGENT_E_DISK);
	assert_non_null(strstr(f.text, "disk 0"));
}

/* A disk that goes is deleted through its own file; one that is not there needs nothing. */
static void test_forget(void **state)
{
	char sysfs[PATH_MAX], path[PATH_MAX + 32], text[2] = "";
	size_t len = 0;
	snprintf(sysfs, sizeof(sysfs), "%s/scsi", fixture_path(state));
	assert_int_equal(mkdir(sysfs, 0755), 0);
	snprintf(path, sizeof(path), "%s/0:0:0:7", sysfs);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(disk_forget(sysfs, 7), 0); /* it goes by itself */
	strcat(path, "/delete");
	cleanup_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(disk_forget(sysfs, 8), 0);
	assert_int_equal(disk_forget(sysfs, 7), 0);
	assert_int_equal(fd_read_full(fd, text, 2, &len), 0);
	assert_int_equal(len, 1);
	assert_string_equal(text, "1");
	assert_int_equal(disk_forget("/nonexistent", 7), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_lookup),  fixture_test(test_scan),   fixture_test(test_is_known),
		fixture_test(test_room),    fixture_test(test_no_bus), fixture_test(test_directory),
		fixture_test(test_failure), fixture_test(test_forget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
