#include "stage1-kvm/run/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
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
		fixture_test(test_two_disks),
		fixture_test(test_exists_already),
		fixture_test(test_cache_unusable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
