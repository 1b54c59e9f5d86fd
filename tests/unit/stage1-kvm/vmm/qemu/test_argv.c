/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command lines are golden: tests/golden/qemu-argv/NAME.argv, one argument per line. After a
 * wanted change: HUSK_GOLDEN_UPDATE=1 ctest -R unit:stage1-kvm/vmm/qemu/test_argv, then read the
 * diff.
 */
#include "stage1-kvm/vmm/qemu/argv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "stage1-kvm/plan/plan.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/support/golden.h"
#include "tests/support/pods.h"

#define GOLDEN_MAX ((size_t)64 * 1024)

struct golden {
	enum plan_accel accel;
	enum plan_machine machine;
	enum plan_vsock vsock;
	size_t n_apps;
	bool no_scratch;
	enum nics {
		NICS_NONE,
		NICS_TAPS, /* all that there can be */
		NICS_STREAM,
	} nics;
	size_t n_volumes; /* disks of volumes of all kinds, and a virtiofs device */
};

static const struct plan_host host = { .kvm_usable = true,
				       .vhost_vsock_usable = true,
				       .guest_cid = 4711,
				       .kernel = PLAN_KERNEL_SMALL };

static void add_nics(enum nics nics, struct vm *vm)
{
	if (nics == NICS_STREAM)
		vm->nics[vm->n_nics++] = (struct vm_nic){
			.mac = { 2 }, .mtu = 65520, .n_queues = 1, .stream = true
		};
	else if (nics == NICS_TAPS)
		for (; vm->n_nics < NET_INTERFACES_MAX; vm->n_nics++)
			vm->nics[vm->n_nics] =
				(struct vm_nic){ .mac = { 2, 0, 0, 0, 0,
							  (unsigned char)vm->n_nics },
						 .mtu = 1500,
						 .n_queues = vm->n_nics % 2 ? 1 : VM_QUEUES_MAX,
						 .vhost = vm->n_nics % 3 == 0 };
}

static void add_volumes(size_t n, struct vm *vm)
{
	vm->shares = n > 0;
	for (size_t i = 0; i < n; i++)
		vm->disks[vm->n_disks++] =
			(struct vm_disk){ .lun = AGENT_VOLUME_LUN + (int)i,
					  .read_only = i % 4 == 0,
					  .discard = i % 4 != 0,
					  .is_device = i % 4 == 2,
					  .format = i % 4 == 3 ? VM_FORMAT_QCOW2 : VM_FORMAT_RAW };
}

/* One pod's command line; every text of its apps is @odd. */
static void make_argv(const struct golden *g, const char *odd, struct strv *argv)
{
	const struct plan_options opts = { .accel = g->accel,
					   .machine = g->machine,
					   .vsock = g->vsock,
					   .no_scratch = g->no_scratch };
	struct pod_manifest pod;
	struct vm p;

	pod_make(&pod, g->n_apps, odd);
	assert_int_equal(plan_make(&pod, &opts, &host, &p, NULL), 0);
	add_nics(g->nics, &p);
	add_volumes(g->n_volumes, &p);
	strv_init(argv, ARGV_MAX);
	assert_int_equal(argv_build(&p, argv, NULL), 0);
	pod_manifest_deinit(&pod);
}

/* QEMU makes no connection itself: its interfaces are descriptors, and none is there by default. */
static void check_networks(const struct strv *argv)
{
	bool has_defaults = true;
	for (size_t i = 0; i < argv->n; i++) {
		const char *value = i + 1 < argv->n ? argv->v[i + 1] : "";
		assert_string_not_equal(argv->v[i], "-nic");
		assert_string_not_equal(argv->v[i], "-net");
		has_defaults &= strcmp(argv->v[i], "-nodefaults") != 0;
		if (strcmp(argv->v[i], "-netdev") == 0)
			assert_true(strncmp(value, "tap,", 4) == 0 ||
				    strncmp(value, "stream,", 7) == 0);
	}
	assert_false(has_defaults);
}

static void check_golden(const struct golden *g)
{
	cleanup_strv struct strv argv;
	cleanup_buf struct buf text;
	char name[256];

	make_argv(g, "/bin/true", &argv);
	check_networks(&argv);
	buf_init(&text, GOLDEN_MAX);
	for (size_t i = 0; i < argv.n; i++)
		assert_int_equal(buf_printf(&text, "%s\n", argv.v[i]), 0);
	static const char *const nics[] = { "", "-taps", "-stream" };
	snprintf(name, sizeof(name), "qemu-argv/%s-%s-%s-%zuapp%s%s%s.argv",
		 g->accel == PLAN_ACCEL_KVM ? "kvm" : "tcg",
		 g->machine == PLAN_MACHINE_Q35 ? "q35" : "microvm",
		 g->vsock == PLAN_VSOCK_KERNEL ? "kernel" : "user", g->n_apps,
		 g->no_scratch ? "" : "-scratch", nics[g->nics],
		 g->n_volumes > 0 ? "-volumes" : "");
	golden_check(name, buf_data(&text), buf_len(&text));
}

static void test_golden(void **state)
{
	(void)state;
	for (int kvm = 0; kvm < 2; kvm++)
		for (int q35 = 0; q35 < 2; q35++)
			for (int kernel = 0; kernel < 2; kernel++)
				for (int three = 0; three < 2; three++)
					check_golden(&(struct golden){
						kvm ? PLAN_ACCEL_KVM : PLAN_ACCEL_TCG,
						q35 ? PLAN_MACHINE_Q35 : PLAN_MACHINE_MICROVM,
						kernel ? PLAN_VSOCK_KERNEL : PLAN_VSOCK_USER,
						three ? 3 : 1, !three, NICS_NONE, 0 });
	for (int q35 = 0; q35 < 2; q35++)
		check_golden(&(struct golden){ PLAN_ACCEL_KVM,
					       q35 ? PLAN_MACHINE_Q35 : PLAN_MACHINE_MICROVM,
					       PLAN_VSOCK_KERNEL, 1, true, NICS_NONE, 4 });
	for (int q35 = 0; q35 < 2; q35++)
		for (enum nics nics = NICS_TAPS; nics <= NICS_STREAM; nics++)
			check_golden(&(struct golden){
				PLAN_ACCEL_KVM, q35 ? PLAN_MACHINE_Q35 : PLAN_MACHINE_MICROVM,
				PLAN_VSOCK_KERNEL, 1, true, nics, 0 });
}

/* Whatever a pod is named and runs, QEMU is started the same. */
static void test_no_text_of_a_pod_arrives(void **state)
{
	static const char *const odd[] = {
		"",  ",",  "a,readonly=off", "a,,b", "/dev/fdset/0",  "-drive",   "--",
		" ", "\n", "\t\x7f\x1b[2J",  "%s%n", "'\"`$(reboot)", "\xff\xfe", "fd=3,set=0",
	};
	const struct golden g = { .n_apps = 3 };
	cleanup_strv struct strv plain;

	(void)state;
	make_argv(&g, "plain", &plain);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		cleanup_strv struct strv argv;

		make_argv(&g, odd[i], &argv);
		assert_int_equal(argv.n, plain.n);
		for (size_t k = 0; k < argv.n; k++)
			assert_string_equal(argv.v[k], plain.v[k]);
	}
}

/* The largest machine fits ARGV_MAX; one argument less does not do. */
static void test_largest(void **state)
{
	const struct golden g = { .n_apps = AGENT_APPS_MAX,
				  .machine = PLAN_MACHINE_Q35,
				  .nics = NICS_TAPS,
				  .n_volumes = AGENT_VOLUME_SLOTS };
	cleanup_strv struct strv argv, small;
	struct err e = ERR_INIT;
	struct pod_manifest pod;
	struct vm p;

	(void)state;
	make_argv(&g, "x", &argv);
	assert_true(argv.n <= ARGV_MAX);
	pod_make(&pod, AGENT_APPS_MAX, "x");
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	add_volumes(AGENT_VOLUME_SLOTS, &p);
	add_nics(NICS_TAPS, &p);
	strv_init(&small, argv.n - 1);
	assert_int_equal(argv_build(&p, &small, &e), -E2BIG);
	assert_non_null(strstr(e.text, "QEMU command line"));
	pod_manifest_deinit(&pod);
}

static bool is_listed(const char *model, const char *const *list)
{
	for (; *list; list++) {
		if (strcmp(*list, model) == 0)
			return true;
	}
	return false;
}

/* doctor asks for argv_devices; so they are what is used. */
static void check_devices(const struct golden *g)
{
	cleanup_strv struct strv argv;

	make_argv(g, "x", &argv);
	for (size_t i = 0; i + 1 < argv.n; i++) {
		char model[64];

		if (strcmp(argv.v[i], "-device") != 0)
			continue;
		snprintf(model, sizeof(model), "%.*s", (int)strcspn(argv.v[i + 1], ","),
			 argv.v[i + 1]);
		assert_true(is_listed(model, argv_devices) ||
			    is_listed(model, argv_devices_kernel_vsock));
	}
}

static void test_device_lists(void **state)
{
	(void)state;
	for (int q35 = 0; q35 < 2; q35++)
		for (int kernel = 0; kernel < 2; kernel++)
			check_devices(&(struct golden){
				.machine = q35 ? PLAN_MACHINE_Q35 : PLAN_MACHINE_MICROVM,
				.vsock = kernel ? PLAN_VSOCK_KERNEL : PLAN_VSOCK_USER,
				.n_apps = 1,
				.nics = NICS_TAPS });
}

static void test_bad_machine(void **state)
{
	cleanup_strv struct strv argv;
	struct err e = ERR_INIT;
	struct vm vm = { .cpus = 0 };

	(void)state;
	strv_init(&argv, ARGV_MAX);
	assert_int_equal(argv_build(&vm, &argv, &e), -EINVAL);
	assert_true(e.text[0] != '\0');
	assert_int_equal(argv.n, 0);
}

static int build_once(void *ctx)
{
	cleanup_strv struct strv argv;

	strv_init(&argv, ARGV_MAX);
	return argv_build(ctx, &argv, NULL);
}

static void test_no_memory(void **state)
{
	struct pod_manifest pod;
	struct vm p;

	(void)state;
	pod_make(&pod, 1, "x");
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	for_each_failing_alloc_lenient(build_once, &p);
	pod_manifest_deinit(&pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_golden),      fixture_test(test_no_text_of_a_pod_arrives),
		fixture_test(test_largest),     fixture_test(test_device_lists),
		fixture_test(test_bad_machine), fixture_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
