/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains are golden: tests/golden/libvirt-domain/NAME.xml. After a wanted change:
 * HUSK_GOLDEN_UPDATE=1 ctest -R unit:stage1-kvm/vmm/libvirt/test_domain_xml, then read the diff.
 * libvirt's own schema is asked by schema.sh.
 */
#include "stage1-kvm/vmm/libvirt/domain_xml.h"

#include <errno.h>
#include <string.h>

#include "stage1-kvm/plan/plan.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/support/golden.h"
#include "tests/support/pods.h"

#define UUID "6a2a4a4e-2f0e-4b8f-9a48-0c1d2e3f4a5b"

static const struct plan_host host = { .kvm_usable = true,
				       .vhost_vsock_usable = true,
				       .guest_cid = 4711,
				       .kernel = PLAN_KERNEL_SMALL };

static const struct domain_names plain = { .uuid = UUID,
					   .dir = "/run/husk/" UUID,
					   .emulator = "/usr/bin/qemu-system-x86_64",
					   .labels = true };

static void make_vm(enum plan_accel accel, enum plan_vsock vsock, size_t n_apps, struct vm *ret)
{
	const struct plan_options opts = {
		.accel = accel, .vsock = vsock, .only_q35 = true, .memory_mib = 768, .cpus = 2
	};
	struct pod_manifest pod;
	pod_make(&pod, n_apps, "x");
	assert_int_equal(plan_make(&pod, &opts, &host, ret, NULL), 0);
	pod_manifest_deinit(&pod);
}

/* The domain of @names as text, of the caller. */
static char *make_xml(const struct vm *vm, const struct domain_names *names)
{
	struct buf xml;
	struct err e = ERR_INIT;
	buf_init(&xml, DOMAIN_XML_MAX);
	if (domain_xml(vm, names, &xml, &e) < 0)
		fail_msg("%s", e.text);
	char *text = buf_take_string(&xml);
	assert_non_null(text);
	return text;
}

static void test_golden(void **state)
{
	(void)state;
	for (int kvm = 0; kvm < 2; kvm++)
		for (int kernel = 0; kernel < 2; kernel++) {
			char file[128];
			struct vm vm;
			struct domain_names names = plain;
			names.pod = kvm ? "web" : NULL;
			names.labels = !kernel;
			make_vm(kvm ? PLAN_ACCEL_KVM : PLAN_ACCEL_TCG,
				kernel ? PLAN_VSOCK_KERNEL : PLAN_VSOCK_USER, 2, &vm);
			cleanup_free char *xml = make_xml(&vm, &names);
			snprintf(file, sizeof(file), "libvirt-domain/%s-%s.xml",
				 kvm ? "kvm" : "tcg", kernel ? "kernel" : "user");
			golden_check(file, xml, strlen(xml));
		}
}

/* Each character that XML, QEMU's options or a shell minds arrives, or is refused by name. */
static void test_odd_characters(void **state)
{
	struct domain_names names = plain;
	struct vm vm;
	(void)state;
	make_vm(PLAN_ACCEL_TCG, PLAN_VSOCK_USER, 1, &vm);
	names.dir = "/a&b<c>d'e\"f,g$(h)`i`;j k%l\\m\xc3\xa4";
	cleanup_free char *xml = make_xml(&vm, &names);
#define ESCAPED "/a&amp;b&lt;c&gt;d&apos;e&quot;f"
	assert_non_null(strstr(xml, "<kernel>" ESCAPED ",g$(h)`i`;j k%l\\m\xc3\xa4/vmlinux<"));
	assert_non_null(strstr(xml, "path=" ESCAPED ",,g$(h)`i`;j k%l\\m\xc3\xa4/vsock.sock'"));
	static const char *const bad[] = { "/a\nb", "/a\tb", "/\x01", "/\x7f", "/\xff", "/\xc3" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct buf b;
		struct err e = ERR_INIT;
		buf_init(&b, DOMAIN_XML_MAX);
		names = plain;
		names.emulator = bad[i];
		assert_int_equal(domain_xml(&vm, &names, &b, &e), -EINVAL);
		assert_non_null(strstr(e.text, "characters that XML cannot have"));
		buf_deinit(&b);
	}
}

/* libvirt gives out the slots of the root bus from below, and knows of none of these. */
static void test_nic_slots(void **state)
{
	struct vm vm;
	(void)state;
	make_vm(PLAN_ACCEL_TCG, PLAN_VSOCK_USER, 1, &vm);
	vm.n_nics = 2;
	for (size_t i = 0; i < vm.n_nics; i++)
		vm.nics[i] = (struct vm_nic){ .mtu = 1500, .n_queues = 1 };
	cleanup_free char *xml = make_xml(&vm, &plain);
	assert_non_null(strstr(xml, "chardev=vsock0-back,bus=pcie.0,addr=0x10'"));
	assert_non_null(strstr(xml, "bus=pcie.0,chassis=100,addr=0x11'"));
	assert_non_null(strstr(xml, "bus=pcie.0,chassis=101,addr=0x12'"));
}

/* The largest machine, with the longest paths that there can be, fits; names of disks differ. */
static void test_largest(void **state)
{
	static char dir[94 + 1], emulator[4096];
	struct domain_names names = plain;
	struct vm vm;
	(void)state;
	memset(dir, '&', sizeof(dir) - 1);
	memset(emulator, 'e', sizeof(emulator) - 1);
	names.dir = dir;
	names.emulator = emulator;
	make_vm(PLAN_ACCEL_TCG, PLAN_VSOCK_USER, AGENT_APPS_MAX, &vm);
	cleanup_free char *xml = make_xml(&vm, &names);
	assert_non_null(strstr(xml, "dev='sda'"));
	assert_non_null(strstr(xml, "dev='sdz'"));
	assert_non_null(strstr(xml, "dev='sdaa'"));
	assert_non_null(strstr(xml, "dev='sdiv'")); /* the scratch disk: 255 is i, v */
}

static void test_refused(void **state)
{
	struct vm vm;
	struct buf b;
	struct err e = ERR_INIT;
	(void)state;
	buf_init(&b, DOMAIN_XML_MAX);
	make_vm(PLAN_ACCEL_TCG, PLAN_VSOCK_USER, 1, &vm);
	vm.machine = VM_MACHINE_MICROVM;
	assert_int_equal(domain_xml(&vm, &plain, &b, &e), -EINVAL);
	vm.machine = VM_MACHINE_Q35;
	vm.cpus = 0;
	assert_int_equal(domain_xml(&vm, &plain, &b, &e), -EINVAL);
	buf_deinit(&b);
}

static void test_one_disk(void **state)
{
	const struct vm_disk disk = { .lun = 3, .read_only = true };
	struct buf b;
	(void)state;
	buf_init(&b, DOMAIN_XML_MAX);
	assert_int_equal(domain_disk_xml(&disk, &plain, &b, NULL), 0);
	golden_check("libvirt-domain/disk.xml", buf_data(&b), buf_len(&b));
	buf_deinit(&b);
}

static int build_once(void *ctx)
{
	cleanup_buf struct buf b;
	buf_init(&b, DOMAIN_XML_MAX);
	return domain_xml(ctx, &plain, &b, NULL);
}

static void test_allocation_failures(void **state)
{
	struct vm vm;
	(void)state;
	make_vm(PLAN_ACCEL_KVM, PLAN_VSOCK_USER, 3, &vm);
	for_each_failing_alloc(build_once, &vm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),    cmocka_unit_test(test_odd_characters),
		cmocka_unit_test(test_largest),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_one_disk),  cmocka_unit_test(test_allocation_failures),
		cmocka_unit_test(test_nic_slots),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
