/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/host_limits.h"

#include <errno.h>

#include "lib/base/err.h"
#include "tests/support/fixture.h"

#define MIB (UINT64_C(1) << 20)

/* The figures of docs/decisions/0014-limits-on-the-host.md. */
static void test_overhead(void **state)
{
	static struct vm vm = { .accel = VM_ACCEL_KVM, .memory_mib = 512, .cpus = 1 };
	(void)state;
	assert_int_equal(host_limits_overhead(&vm), 132 * MIB);
	vm.memory_mib = 65536;
	assert_int_equal(host_limits_overhead(&vm), 640 * MIB);
	vm.memory_mib = 512;
	vm.accel = VM_ACCEL_TCG;
	assert_int_equal(host_limits_overhead(&vm), 1412 * MIB);
	vm.accel = VM_ACCEL_KVM;
	vm.n_disks = 3;
	vm.disks[1].format = VM_FORMAT_QCOW2;
	assert_int_equal(host_limits_overhead(&vm), 165 * MIB);
	vm.n_disks = 1;
	vm.shares = true;
	assert_int_equal(host_limits_overhead(&vm), 1156 * MIB);
	vm.memory_mib = 65536;
	assert_int_equal(host_limits_overhead(&vm), 640 * MIB + 2048000000);
}

/* One that was never made is no error, nor is a wrong name anything but one. */
static void test_none(void **state)
{
	static const struct vm vm = { .memory_mib = 512, .cpus = 1 };
	struct host_limits l = HOST_LIMITS_INIT;
	struct err e = ERR_INIT;
	(void)state;
	assert_false(host_limits_killed(&l));
	assert_int_equal(host_limits_make("../x", "", &vm, false, &l, &e), -EINVAL);
	host_limits_end(&l);
	assert_int_equal(l.procs.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_overhead),
		fixture_test(test_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
