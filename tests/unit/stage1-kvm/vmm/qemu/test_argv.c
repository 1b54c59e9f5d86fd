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
};

static const struct plan_host host = { .kvm_usable = true,
				       .vhost_vsock_usable = true,
				       .guest_cid = 4711,
				       .kernel = PLAN_KERNEL_SMALL };

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
	strv_init(argv, ARGV_MAX);
	assert_int_equal(argv_build(&p, argv, NULL), 0);
	pod_manifest_deinit(&pod);
}

static void check_golden(const struct golden *g)
{
	cleanup_strv struct strv argv;
	cleanup_buf struct buf text;
	char name[256];

	make_argv(g, "/bin/true", &argv);
	buf_init(&text, GOLDEN_MAX);
	for (size_t i = 0; i < argv.n; i++)
		assert_int_equal(buf_printf(&text, "%s\n", argv.v[i]), 0);
	snprintf(name, sizeof(name), "qemu-argv/%s-%s-%s-%zuapp%s.argv",
		 g->accel == PLAN_ACCEL_KVM ? "kvm" : "tcg",
		 g->machine == PLAN_MACHINE_Q35 ? "q35" : "microvm",
		 g->vsock == PLAN_VSOCK_KERNEL ? "kernel" : "user", g->n_apps,
		 g->no_scratch ? "" : "-scratch");
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
						three ? 3 : 1, !three });
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
	const struct golden g = { .n_apps = AGENT_APPS_MAX, .machine = PLAN_MACHINE_Q35 };
	cleanup_strv struct strv argv, small;
	struct err e = ERR_INIT;
	struct pod_manifest pod;
	struct vm p;

	(void)state;
	make_argv(&g, "x", &argv);
	assert_true(argv.n <= ARGV_MAX);
	pod_make(&pod, AGENT_APPS_MAX, "x");
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	strv_init(&small, argv.n - 8);
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
				.n_apps = 1 });
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
