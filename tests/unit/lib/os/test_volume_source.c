/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/volume_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static char path[256];
static struct err e;

static const char *in(void **state, const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	return path;
}

static void test_host(void **state)
{
	fixture_write(state, "file", "x", 1);
	assert_int_equal(mkfifoat(fixture_dir(state), "fifo", 0600), 0);
	assert_int_equal(volume_source_check(in(state, "file"), &e), 0);
	assert_int_equal(volume_source_check(fixture_path(state), &e), 0);
	assert_int_equal(volume_source_check(in(state, "fifo"), &e), -EINVAL);
	/* What was there when it was looked at may be gone. */
	cleanup_fd int found = volume_source_find(in(state, "fifo"));
	assert_true(found >= 0);
	if (geteuid() == 0)
		assert_int_equal(volume_source_mount(found, true, true), -ENOTDIR);
	assert_int_equal(volume_source_find(in(state, "none")), -ENOENT);
	assert_int_equal(volume_source_check(in(state, "none"), &e), -ENOENT);
}

static void test_kinds(void **state)
{
	fixture_write(state, "file", "x", 1);
	fixture_write(state, "empty", "", 0);
	assert_int_equal(mkfifoat(fixture_dir(state), "fifo", 0600), 0);
	assert_int_equal(volume_source_open(in(state, "empty"), false, false, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is empty"));
	assert_int_equal(volume_source_open(in(state, "fifo"), true, false, &e), -EINVAL);
	assert_int_equal(volume_source_open("/dev/null", true, false, &e), -EINVAL);
	assert_int_equal(volume_source_open(in(state, "none"), true, false, &e), -ENOENT);
	cleanup_fd int fd = volume_source_open(in(state, "file"), true, false, &e);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	cleanup_fd int other = volume_source_open(in(state, "file"), true, false, &e);
	assert_true(other >= 0);
}

/* One who writes is alone, as long as somebody has the open file. */
static void test_locks(void **state)
{
	fixture_write(state, "file", "x", 1);
	int writer = volume_source_open(in(state, "file"), false, false, &e);
	assert_int_equal(fcntl(writer, F_GETFL) & O_ACCMODE, O_RDWR);
	int inherited = fcntl(writer, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(volume_source_open(path, false, false, &e), -EBUSY);
	assert_non_null(strstr(e.text, "in use (only who has it with readOnly=true"));
	fd_close(writer);
	assert_int_equal(volume_source_open(path, true, false, &e), -EBUSY);
	assert_non_null(strstr(e.text, "in use (somebody writes to it)"));
	fd_close(inherited);
	int reader = volume_source_open(path, true, false, &e);
	assert_true(reader >= 0);
	assert_int_equal(volume_source_open(path, false, false, &e), -EBUSY);
	fd_close(reader);
}

static void put_be(unsigned char *at, size_t n, uint64_t value)
{
	for (size_t i = n; i-- > 0; value >>= 8)
		at[i] = (unsigned char)value;
}

static int open_qcow2(void **state, const unsigned char *header, size_t len)
{
	unlinkat(fixture_dir(state), "disk", 0);
	fixture_write(state, "disk", header, len);
	return volume_source_open(in(state, "disk"), true, true, &e);
}

static void test_qcow2(void **state)
{
	unsigned char header[104] = "QFI\xfb";
	put_be(header + 4, 4, 3);
	put_be(header + 24, 8, 123456789);
	cleanup_fd int fd = open_qcow2(state, header, sizeof(header));
	assert_true(fd >= 0);
	assert_int_equal(volume_source_qcow2_size(fd), 123456789);
	assert_int_equal(open_qcow2(state, header, 71), -EINVAL);
	put_be(header + 72, 8, 4); /* its data is elsewhere */
	assert_int_equal(open_qcow2(state, header, sizeof(header)), -EPERM);
	put_be(header + 4, 4, 2); /* no such member yet */
	cleanup_fd int old = open_qcow2(state, header, 72);
	assert_true(old >= 0);
	put_be(header + 8, 8, 1); /* another file behind it */
	assert_int_equal(open_qcow2(state, header, sizeof(header)), -EPERM);
	assert_non_null(strstr(e.text, "names another file"));
	header[0] = 'q';
	assert_int_equal(open_qcow2(state, header, sizeof(header)), -EINVAL);
	assert_non_null(strstr(e.text, "is not in the format qcow2"));
	cleanup_fd int raw = volume_source_open(in(state, "disk"), true, false, &e);
	assert_int_equal(volume_source_qcow2_size(raw), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_host),
		fixture_test(test_kinds),
		fixture_test(test_locks),
		fixture_test(test_qcow2),
	};
	e = ERR_INIT;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
