/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stage1-kvm/vmm/libvirt/libvirt.h"
#include "stage1-kvm/vmm/qemu/qemu.h"
#include "tests/support/fixture.h"

static void taken(struct kvm_options *o, const char *name, const char *value)
{
	struct err e = ERR_INIT;
	assert_int_equal(kvm_options_take(o, name, value, &e), 0);
}

/* The message names the option and what it was given. */
static void refused(const char *name, const char *value)
{
	struct kvm_options o;
	struct err e = ERR_INIT;
	char text[64];
	kvm_options_init(&o);
	assert_int_equal(kvm_options_take(&o, name, value, &e), -EINVAL);
	snprintf(text, sizeof(text), "--%s=%s", name, value);
	if (strncmp(e.text, text, strlen(text)) != 0)
		fail_msg("\"%s\" does not begin with \"%s\"", e.text, text);
}

static void test_all(void **state)
{
	struct kvm_options o;
	(void)state;
	kvm_options_init(&o);
	assert_int_equal(o.memory, 0);
	taken(&o, "accel", "tcg");
	taken(&o, "machine", "q35");
	taken(&o, "vsock", "user");
	taken(&o, "kernel", "small");
	taken(&o, "qemu", "/q");
	taken(&o, "memory", "128Mi");
	taken(&o, "cpus", "64");
	taken(&o, "scratch-size", "33554433");
	assert_ptr_equal(o.driver, &qemu_driver);
	assert_null(o.libvirt_uri);
	taken(&o, "vmm", "libvirt");
	assert_ptr_equal(o.driver, &libvirt_driver);
	taken(&o, "vmm", "qemu");
	assert_ptr_equal(o.driver, &qemu_driver);
	taken(&o, "libvirt-uri", "qemu:///embed");
	assert_string_equal(o.libvirt_uri, "qemu:///embed");
	assert_int_equal(o.accel, PLAN_ACCEL_TCG);
	assert_int_equal(o.machine, PLAN_MACHINE_Q35);
	assert_int_equal(o.vsock, PLAN_VSOCK_USER);
	assert_string_equal(o.kernel, "small");
	assert_string_equal(o.qemu, "/q");
	assert_int_equal(o.memory, 128 << 20);
	assert_int_equal(o.cpus, 64);
	assert_int_equal(o.scratch_size, 33554433);
	assert_false(o.hot_volumes);
	taken(&o, "hot-volumes", "always");
	assert_true(o.hot_volumes);
	taken(&o, "hot-volumes", "auto");
	assert_false(o.hot_volumes);
}

static void test_limits(void **state)
{
	struct kvm_options o;
	(void)state;
	kvm_options_init(&o);
	taken(&o, "memory", "64Mi");
	taken(&o, "memory", "1Ti");
	taken(&o, "cpus", "1");
	taken(&o, "apps-memory", "1");
	taken(&o, "apps-memory", "1048448Mi");
	assert_int_equal(o.apps_memory, 1048448ULL << 20);
	taken(&o, "apps-cpu", "10m");
	taken(&o, "apps-cpu", "1024");
	assert_int_equal(o.apps_cpu_millis, 1024000);
	taken(&o, "scratch-size", "1Ti");
	refused("memory", "63Mi");
	refused("memory", "1025Gi");
	refused("cpus", "0");
	refused("cpus", "65");
	refused("apps-memory", "0");
	refused("apps-memory", "1048449Mi");
	refused("apps-cpu", "9m");
	refused("apps-cpu", "1024001m");
	refused("apps-cpu", "");
	refused("scratch-size", "33554431");
	refused("scratch-size", "1099511627777");
	refused("accel", "foo");
	refused("machine", "");
	refused("vmm", "xen");
	refused("libvirt-uri", "");
	refused("libvirt-uri", "qemu+ssh://host/system");
	refused("libvirt-uri", "qemu:///embed?root=/");
	refused("vsock", "USER");
	refused("hot-volumes", "never");
}

/* Every name of the list is known, and no other. */
static void test_names(void **state)
{
	struct kvm_options o;
	struct err e = ERR_INIT;
	(void)state;
	for (size_t i = 0; kvm_option_names[i]; i++) {
		kvm_options_init(&o);
		kvm_options_take(&o, kvm_option_names[i], "x", &e);
		assert_null(strstr(e.text, "no such option"));
	}
	assert_int_equal(kvm_options_take(&o, "colour", "x", &e), -EINVAL);
	assert_non_null(strstr(e.text, "no such option"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_all),
		fixture_test(test_limits),
		fixture_test(test_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
