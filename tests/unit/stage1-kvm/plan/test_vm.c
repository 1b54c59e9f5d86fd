/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/plan/vm.h"

#include <errno.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

/* A machine that is as large as it may be. */
static struct vm largest(void)
{
	struct vm vm = {
		.accel = VM_ACCEL_KVM,
		.machine = VM_MACHINE_Q35,
		.vsock = VM_VSOCK_KERNEL,
		.guest_cid = VM_CID_MAX,
		.memory_mib = VM_MEMORY_MAX,
		.cpus = VM_CPUS_MAX,
		.n_disks = VM_DISKS_MAX,
	};

	memset(vm.append, 'x', VM_APPEND_MAX);
	for (size_t i = 0; i < VM_DISKS_MAX; i++)
		vm.disks[i] = (struct vm_disk){ .lun = AGENT_LUN_MAX - (int)i };
	return vm;
}

/* Fails unless @vm is refused with a message that has @what in it. */
static void refused(const struct vm *vm, const char *what)
{
	struct err e = ERR_INIT;

	assert_int_equal(vm_check(vm, &e), -EINVAL);
	assert_int_equal(e.code, -EINVAL);
	if (!strstr(e.text, what))
		fail_msg("\"%s\" does not say \"%s\"", e.text, what);
}

static void test_limits(void **state)
{
	struct err e = ERR_INIT;
	struct vm vm = largest();

	(void)state;
	assert_int_equal(vm_check(&vm, &e), 0);
	assert_string_equal(e.text, "");
	vm.memory_mib = VM_MEMORY_MIN;
	vm.cpus = 1;
	vm.guest_cid = VM_CID_MIN;
	vm.n_disks = 0;
	strcpy(vm.append, "x");
	assert_int_equal(vm_check(&vm, &e), 0);
}

static void test_numbers_beyond(void **state)
{
	struct vm vm;

	(void)state;
	vm = largest();
	vm.memory_mib = VM_MEMORY_MAX + 1;
	refused(&vm, "memory");
	vm.memory_mib = VM_MEMORY_MIN - 1;
	refused(&vm, "memory");
	vm = largest();
	vm.cpus = VM_CPUS_MAX + 1;
	refused(&vm, "processors");
	vm.cpus = 0;
	refused(&vm, "processors");
	vm = largest();
	vm.guest_cid = VM_CID_MIN - 1;
	refused(&vm, "CID");
	vm.guest_cid = UINT32_MAX;
	refused(&vm, "CID");
	vm.vsock = VM_VSOCK_USER; /* then nobody looks at it */
	assert_int_equal(vm_check(&vm, NULL), 0);
}

static void test_kinds(void **state)
{
	struct vm vm;

	(void)state;
	vm = largest();
	vm.accel = (enum vm_accel)2;
	refused(&vm, "unknown kind");
	vm = largest();
	vm.machine = (enum vm_machine)2;
	refused(&vm, "unknown kind");
	vm = largest();
	vm.vsock = (enum vm_vsock)2;
	refused(&vm, "unknown kind");
}

static void test_append(void **state)
{
	struct vm vm = largest();

	(void)state;
	vm.append[VM_APPEND_MAX] = 'x'; /* no end */
	refused(&vm, "kernel command line");
	strcpy(vm.append, "");
	refused(&vm, "kernel command line");
	strcpy(vm.append, "quiet\nevil");
	refused(&vm, "kernel command line");
	strcpy(vm.append, "\xc3\xa4");
	refused(&vm, "kernel command line");
}

static void test_disks(void **state)
{
	struct vm vm = largest();

	(void)state;
	vm.n_disks = VM_DISKS_MAX + 1;
	refused(&vm, "disks: too many");
	vm = largest();
	vm.disks[3].lun = AGENT_LUN_MAX + 1;
	refused(&vm, "LUN 256: out of range");
	vm.disks[3].lun = -1;
	refused(&vm, "LUN -1: out of range");
	vm.disks[3].lun = vm.disks[4].lun;
	refused(&vm, "used twice");
}

static void test_devices(void **state)
{
	struct vm vm = { .machine = VM_MACHINE_MICROVM, .n_nics = NET_INTERFACES_MAX };
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(vm_count_devices(&vm), VM_MICROVM_SLOTS);
	assert_int_equal(vm_check_devices(&vm, &e), 0);
	vm.shares = true;
	assert_int_equal(vm_check_devices(&vm, &e), -E2BIG);
	assert_string_equal(e.text, "the machine microvm has room for 5 network interfaces beside "
				    "volumes of the host (give --machine=q35)");
	vm.machine = VM_MACHINE_Q35;
	assert_int_equal(vm_check_devices(&vm, &e), 0);
}

/* Those of volumes lie between those of apps and the scratch disk. */
static void test_volume_disks(void **state)
{
	static const struct {
		int lun;
		bool is;
	} cases[] = { { AGENT_VOLUME_LUN - 1, false },
		      { AGENT_VOLUME_LUN, true },
		      { AGENT_SCRATCH_LUN - 1, true },
		      { AGENT_SCRATCH_LUN, false } };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vm vm = { .n_disks = 1, .disks = { { .lun = cases[i].lun } } };
		assert_int_equal(vm_has_volume_disks(&vm), cases[i].is);
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(vm_accel_name(VM_ACCEL_TCG), "tcg");
	assert_string_equal(vm_accel_name(VM_ACCEL_KVM), "kvm");
	assert_string_equal(vm_machine_name(VM_MACHINE_MICROVM), "microvm");
	assert_string_equal(vm_machine_name(VM_MACHINE_Q35), "q35");
	assert_string_equal(vm_vsock_name(VM_VSOCK_USER), "user");
	assert_string_equal(vm_vsock_name(VM_VSOCK_KERNEL), "kernel");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_limits), fixture_test(test_numbers_beyond),
		fixture_test(test_kinds),  fixture_test(test_append),
		fixture_test(test_disks),  fixture_test(test_devices),
		fixture_test(test_names),  fixture_test(test_volume_disks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
