/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "stage1/pod/podfiles.h"
#include "tests/support/fixture.h"

#define SIZE (UINT64_C(64) << 20)

static void cache_path(void **state, char *out, size_t size)
{
	snprintf(out, size, "%s/cache", fixture_path(state));
}

/* The first disk makes the template, the second copies it; both are ext4 and sparse. */
static void test_two_disks(void **state)
{
	struct err e = ERR_INIT;
	char cache[4096];
	cache_path(state, cache, sizeof(cache));
	int dir = fixture_dir(state);
	for (int i = 0; i < 2; i++) {
		cleanup_fd int fd = scratch_create(dir, cache, SIZE, &e);
		assert_true(fd >= 0);
		struct stat st;
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, SIZE);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_true((uint64_t)st.st_blocks * 512 < SIZE / 8);
		unsigned char magic[2];
		assert_int_equal(pread(fd, magic, 2, 1024 + 56), 2);
		assert_int_equal(magic[0] | magic[1] << 8, 0xef53);
		assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
		assert_int_equal(unlinkat(dir, POD_FILE_SCRATCH, 0), 0);
	}
}

/* The output of "@before DISK 2>&1", which must succeed. */
static void run_on_disk(void **state, const char *before, char *out, size_t size)
{
	char command[8192];
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin; %s '%s/" POD_FILE_SCRATCH "' 2>&1", before,
		 fixture_path(state));
	FILE *f = popen(command, "r");
	assert_non_null(f);
	size_t n = fread(out, 1, size - 1, f);
	out[n] = '\0';
	assert_int_equal(pclose(f), 0);
}

/* On a file system without a fault. */
static void test_sound(void **state)
{
	struct err e = ERR_INIT;
	char cache[4096], out[4096];
	cache_path(state, cache, sizeof(cache));
	cleanup_fd int fd = scratch_create(fixture_dir(state), cache, SIZE, &e);
	assert_true(fd >= 0);
	run_on_disk(state, "e2fsck -fn", out, sizeof(out));
}

#define ROOM_MAX_KIB 96 /* of a file system for the cache: enough for a template */

/* The outcomes of making a template in little room, as bits of an exit status. */
enum {
	SEEN_FAILURE = 1,
	SEEN_SUCCESS = 2,
	SEEN_WRONG = 4,
	SEEN_SKIPPED = 8,
};

static bool is_empty(const char *path)
{
	int n = 0;
	DIR *dir = opendir(path);
	while (dir && readdir(dir))
		n++;
	return dir && closedir(dir) == 0 && n == 2;
}

static int make_in(const char *room)
{
	struct err e = ERR_INIT;
	if (mount("none", "cache", "tmpfs", 0, room) < 0)
		return SEEN_SKIPPED;
	int seen = SEEN_WRONG;
	int fd = scratch_create(AT_FDCWD, "cache", SIZE, &e);
	if (fd >= 0)
		seen = unlink(POD_FILE_SCRATCH) == 0 && close(fd) == 0 ? SEEN_SUCCESS : SEEN_WRONG;
	else if (!is_empty("cache") || access(POD_FILE_SCRATCH, F_OK) == 0)
		seen = SEEN_WRONG; /* something was left behind */
	else if (strstr(e.text, "mkfs.ext4 failed"))
		seen = SEEN_FAILURE;
	return umount("cache") == 0 ? seen : SEEN_WRONG;
}

static int make_in_little_room(const char *dir)
{
	int seen = 0;
	char room[32];
	if (chdir(dir) < 0 || mkdir("cache", 0700) < 0)
		return SEEN_WRONG;
	if ((unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return SEEN_SKIPPED;
	for (int kib = 8; kib <= ROOM_MAX_KIB; kib += 4) {
		snprintf(room, sizeof(room), "size=%dk", kib);
		seen |= make_in(room);
	}
	return seen;
}

/* A template for which there is no room is none. */
static void test_no_room(void **state)
{
	int status;
	const char *dir = fixture_path(state);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(make_in_little_room(dir));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SEEN_SKIPPED)
		skip(); /* nobody may mount here */
	assert_int_equal(WEXITSTATUS(status), SEEN_FAILURE | SEEN_SUCCESS);
}

static void test_exists_already(void **state)
{
	struct err e = ERR_INIT;
	char cache[4096];
	cache_path(state, cache, sizeof(cache));
	fixture_write(state, POD_FILE_SCRATCH, "mine", 4);
	assert_int_equal(scratch_create(fixture_dir(state), cache, SIZE, &e), -EEXIST);
	struct stat st;
	assert_int_equal(fstatat(fixture_dir(state), POD_FILE_SCRATCH, &st, 0), 0);
	assert_int_equal(st.st_size, 4);
}

static void test_cache_unusable(void **state)
{
	struct err e = ERR_INIT;
	fixture_write(state, "cache", "a file", 6);
	char cache[4096];
	cache_path(state, cache, sizeof(cache));
	assert_true(scratch_create(fixture_dir(state), cache, SIZE, &e) < 0);
	assert_non_null(strstr(e.text, cache));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_two_disks),      fixture_test(test_sound),
		fixture_test(test_no_room),        fixture_test(test_exists_already),
		fixture_test(test_cache_unusable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
