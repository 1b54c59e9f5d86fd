/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real device where the host has one, as in the KVM lab; elsewhere only what is no such device.
 */
#include "stage1-kvm/hostfacts/vhost.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "stage1-kvm/plan/vm.h"
#include "tests/support/fixture.h"

static int open_device(void)
{
	return open(VHOST_VSOCK_DEVICE, O_RDWR | O_CLOEXEC);
}

static void test_no_device(void **state)
{
	uint32_t cid = 5;
	(void)state;
	cleanup_fd int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(vhost_claim_cid(fd, 1000, &cid), -ENOTTY);
	assert_int_equal(cid, 5);
}

/* The same number leads two claims to two CIDs, and the range has no end. */
static void test_two_claims(void **state)
{
	static const uint32_t firsts[] = { 0, 2, 1000, VM_CID_MAX - 4, UINT32_MAX };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(firsts); i++) {
		uint32_t a = 0, b = 0;
		cleanup_fd int one = open_device(), two = open_device();
		if (one < 0)
			return;
		assert_int_equal(vhost_claim_cid(one, firsts[i], &a), 0);
		assert_int_equal(vhost_claim_cid(two, firsts[i], &b), 0);
		assert_true(a >= VM_CID_MIN && a <= VM_CID_MAX);
		assert_true(b >= VM_CID_MIN && b <= VM_CID_MAX);
		assert_int_not_equal(a, b);
	}
}

static void test_all_taken(void **state)
{
	static int fds[VHOST_CLAIM_TRIES_MAX];
	const struct rlimit room = { VHOST_CLAIM_TRIES_MAX + 64, VHOST_CLAIM_TRIES_MAX + 64 };
	uint32_t cid;
	(void)state;
	cleanup_fd int late = open_device();
	if (late < 0)
		return;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &room), 0);
	for (size_t i = 0; i < VHOST_CLAIM_TRIES_MAX; i++) {
		fds[i] = open_device();
		assert_true(fds[i] >= 0);
		assert_int_equal(vhost_claim_cid(fds[i], 5000, &cid), 0);
	}
	assert_int_equal(vhost_claim_cid(late, 5000, &cid), -EADDRINUSE);
	fd_close(fds[0]); /* and with it its CID */
	assert_int_equal(vhost_claim_cid(late, 5000, &cid), 0);
	for (size_t i = 1; i < VHOST_CLAIM_TRIES_MAX; i++)
		fd_close(fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_no_device),
		fixture_test(test_two_claims),
		fixture_test(test_all_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
