/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/libvirt/domain_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
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
	snprintf(path, sizeof(path), "%s/disk0", dir);
	if (geteuid() == 0)
		assert_int_equal(open(path, O_RDWR | O_CLOEXEC), -1); /* whoever may open it */
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
	assert_int_equal(domain_dir_open_to(dir, getegid()), 0);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0710);
	assert_int_equal(domain_dir_remove(dir), 0);
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
	cleanup_fd int stranger = make_file(state, "image", "stranger");
	assert_true(stranger >= 0);
	assert_int_equal(domain_dir_put(dir, "disk0", fd, path, true), -ESTALE);
	assert_int_equal(domain_dir_remove(dir), 0);
}

static void test_path(void **state)
{
	char path[DOMAIN_DIR_MAX + 1];
	struct err e = ERR_INIT;
	assert_int_equal(domain_dir_path(fixture_dir(state), UUID, path, &e), 0);
	if (geteuid() == 0)
		assert_string_equal(path, DOMAIN_DIR_ROOT "/" UUID);
	assert_int_equal(domain_dir_remove_left("00000000-0000-4000-8000-000000000000"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_put_and_take), fixture_test(test_write), fixture_test(test_left),
		fixture_test(test_moved),        fixture_test(test_path),
	};
	/* What is mounted here is nobody else's. */
	if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
