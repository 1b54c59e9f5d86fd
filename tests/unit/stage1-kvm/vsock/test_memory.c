/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory: which regions are taken, and that nothing outside of them is reached. */
#include "stage1-kvm/vsock/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define PAGE ((size_t)4096)

static int make_file(size_t size)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void test_regions_are_checked(void **state)
{
	static const struct {
		struct guest_region region;
		int expect;
	} cases[] = {
		{ { 0, 4 * PAGE, 0, 0 }, 0 },
		{ { 0, 4 * PAGE + 1, 0, 0 }, -EINVAL }, /* beyond the file */
		{ { 0, 3 * PAGE, 0, PAGE }, 0 },
		{ { 0, 3 * PAGE + 1, 0, PAGE }, -EINVAL },
		{ { 0, PAGE, 0, 4 * PAGE }, -EINVAL },
		{ { 0, 0, 0, 0 }, -EINVAL },    /* empty */
		{ { 0, PAGE, 0, 1 }, -EINVAL }, /* offset inside a page */
		{ { UINT64_MAX - PAGE, PAGE, 0, 0 }, 0 },
		{ { UINT64_MAX - PAGE + 1, PAGE, 0, 0 }, -EINVAL },
		{ { 0, PAGE, UINT64_MAX - PAGE + 1, 0 }, -EINVAL },
		{ { 0, UINT64_MAX, 0, 0 }, -EINVAL },
		{ { 0, PAGE, 0, UINT64_MAX - PAGE + 1 }, -EINVAL },
		{ { 0, UINT64_MAX - PAGE, 0, PAGE }, -EINVAL },
		{ { 0, INT64_MAX, 0, PAGE }, -EINVAL },
	};
	cleanup_fd int fd = make_file(4 * PAGE);
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cleanup_guest_memory struct guest_memory m = GUEST_MEMORY_INIT;
		struct err e = ERR_INIT;
		assert_int_equal(guest_memory_add(&m, &cases[i].region, fd, &e), cases[i].expect);
		assert_int_equal(e.code, cases[i].expect);
		assert_int_equal(m.n, cases[i].expect == 0);
	}
}

static void test_only_files_are_mapped(void **state)
{
	cleanup_guest_memory struct guest_memory m = GUEST_MEMORY_INIT;
	struct guest_region region = { .size = PAGE };
	struct err e = ERR_INIT;
	int pipes[2];
	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(guest_memory_add(&m, &region, pipes[0], &e), -EINVAL);
	fd_close(pipes[0]);
	fd_close(pipes[1]);
	cleanup_fd int null = open("/dev/zero", O_RDWR | O_CLOEXEC);
	assert_int_equal(guest_memory_add(&m, &region, null, &e), -EINVAL);
	assert_int_equal(guest_memory_add(&m, &region, -EBADF, &e), -EBADF);
}

static void test_region_limit(void **state)
{
	cleanup_guest_memory struct guest_memory m = GUEST_MEMORY_INIT;
	cleanup_fd int fd = make_file(PAGE);
	struct err e = ERR_INIT;
	(void)state;
	for (unsigned i = 0; i < GUEST_MEMORY_REGIONS_MAX; i++) {
		struct guest_region region = { .guest_addr = i * PAGE, .size = PAGE };
		assert_int_equal(guest_memory_add(&m, &region, fd, &e), 0);
	}
	struct guest_region region = { .guest_addr = GUEST_MEMORY_REGIONS_MAX * PAGE,
				       .size = PAGE };
	assert_int_equal(guest_memory_add(&m, &region, fd, &e), -E2BIG);
	assert_int_equal(m.n, GUEST_MEMORY_REGIONS_MAX);
}

/* Two adjacent regions in the middle of the address space and one at its end. */
static void make_three(struct guest_memory *m)
{
	const struct guest_region regions[] = {
		{ 0x10000, PAGE, 0x500000, 0 },
		{ 0x10000 + PAGE, PAGE, 0x900000, PAGE },
		{ UINT64_MAX - PAGE, PAGE, 0xa00000, 2 * PAGE },
	};
	cleanup_fd int fd = make_file(3 * PAGE);
	struct err e = ERR_INIT;
	*m = GUEST_MEMORY_INIT;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(guest_memory_add(m, &regions[i], fd, &e), 0);
}

static void test_guest_ranges(void **state)
{
	static const struct {
		uint64_t addr, len;
		size_t max;
		int expect;
		size_t n;
	} cases[] = {
		{ 0x10000, PAGE, 8, 0, 1 },
		{ 0x10000, PAGE + 1, 8, 0, 2 },
		{ 0x10000, 2 * PAGE, 2, 0, 2 },
		{ 0x10000, 2 * PAGE, 1, -E2BIG, 0 },
		{ 0x10000, 2 * PAGE + 1, 8, -EFAULT, 0 },
		{ 0xffff, 1, 8, -EFAULT, 0 },
		{ 0xffff, 2, 8, -EFAULT, 0 },
		{ 0x10000 + 2 * PAGE - 1, 1, 8, 0, 1 },
		{ 0x10000 + 2 * PAGE, 1, 8, -EFAULT, 0 },
		{ 0x10000, 0, 0, 0, 0 },
		{ 0, 0, 0, 0, 0 },
		{ 0x10000, UINT64_MAX, 8, -EFAULT, 0 },
		{ UINT64_MAX - PAGE, PAGE, 8, 0, 1 },
		{ UINT64_MAX - PAGE, PAGE + 1, 8, -EFAULT, 0 },
		{ UINT64_MAX - 1, UINT64_MAX, 8, -EFAULT, 0 },
	};
	cleanup_guest_memory struct guest_memory m;
	(void)state;
	make_three(&m);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct iovec iov[8];
		size_t n = 99;
		assert_int_equal(
			guest_memory_iov(&m, cases[i].addr, cases[i].len, iov, cases[i].max, &n),
			cases[i].expect);
		assert_int_equal(n, cases[i].expect == 0 ? cases[i].n : 99);
	}
}

static void test_pieces_are_the_right_bytes(void **state)
{
	cleanup_guest_memory struct guest_memory m;
	struct iovec iov[2];
	size_t n;
	(void)state;
	make_three(&m);
	assert_int_equal(guest_memory_iov(&m, 0x10000 + PAGE - 3, 10, iov, 2, &n), 0);
	assert_ptr_equal(iov[0].iov_base, m.host[0] + PAGE - 3);
	assert_int_equal(iov[0].iov_len, 3);
	assert_ptr_equal(iov[1].iov_base, m.host[1]);
	assert_int_equal(iov[1].iov_len, 7);
}

static void test_single_pieces(void **state)
{
	cleanup_guest_memory struct guest_memory m;
	(void)state;
	make_three(&m);
	assert_ptr_equal(guest_memory_at(&m, 0x10010, 16), m.host[0] + 16);
	assert_ptr_equal(guest_memory_at(&m, 0x10000, PAGE), m.host[0]);
	assert_null(guest_memory_at(&m, 0x10000, PAGE + 1));
	assert_null(guest_memory_at(&m, 0x10001, UINT64_MAX));
	assert_null(guest_memory_at(&m, 0xffff, 1));
	assert_ptr_equal(guest_memory_at_user(&m, 0x900000, PAGE), m.host[1]);
	assert_null(guest_memory_at_user(&m, 0x900000, PAGE + 1));
	assert_null(guest_memory_at_user(&m, 0x900001, UINT64_MAX));
	assert_null(guest_memory_at_user(&m, 0x8fffff, 1));
	assert_null(guest_memory_at_user(&m, 0x10000, 1));
}

static void test_deinit_takes_anything(void **state)
{
	struct guest_memory m = GUEST_MEMORY_INIT;
	(void)state;
	guest_memory_deinit(NULL);
	guest_memory_deinit(&m);
	make_three(&m);
	guest_memory_deinit(&m);
	assert_int_equal(m.n, 0);
	assert_null(guest_memory_at(&m, 0x10000, 1));
	guest_memory_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_regions_are_checked),
		fixture_test(test_only_files_are_mapped),
		fixture_test(test_region_limit),
		fixture_test(test_guest_ranges),
		fixture_test(test_pieces_are_the_right_bytes),
		fixture_test(test_single_pieces),
		fixture_test(test_deinit_takes_anything),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
