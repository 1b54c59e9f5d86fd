/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/support/pods.h"

static const struct plan_host bare = { .kvm_reason = "there is no /dev/kvm",
				       .vhost_vsock_reason = "there is no /dev/vhost-vsock" };
static const struct plan_host full = { .kvm_usable = true,
				       .vhost_vsock_usable = true,
				       .guest_cid = 77 };

/* Plans a pod of @n apps. */
static int plan_pod(size_t n, const struct plan_options *opts, const struct plan_host *host,
		    struct vm *p, struct err *e)
{
	struct pod_manifest pod;
	int r;

	pod_make(&pod, n, "odd");
	r = plan_make(&pod, opts, host, p, e);
	pod_manifest_deinit(&pod);
	return r;
}

static void test_defaults(void **state)
{
	const struct plan_options opts = { 0 };
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(1, &opts, &bare, &p, NULL), 0);
	assert_int_equal(p.accel, VM_ACCEL_TCG);
	assert_int_equal(p.machine, VM_MACHINE_MICROVM);
	assert_int_equal(p.vsock, VM_VSOCK_USER);
	assert_int_equal(p.memory_mib, PLAN_MEMORY_DEFAULT);
	assert_int_equal(p.cpus, PLAN_CPUS_DEFAULT);
	assert_int_equal(p.n_disks, 2);
	assert_int_equal(plan_pod(1, &opts, &full, &p, NULL), 0);
	assert_int_equal(p.accel, VM_ACCEL_KVM);
	assert_int_equal(p.vsock, VM_VSOCK_KERNEL);
}

static void test_what_was_asked_for(void **state)
{
	const struct plan_options opts = { .accel = PLAN_ACCEL_TCG,
					   .machine = PLAN_MACHINE_Q35,
					   .vsock = PLAN_VSOCK_KERNEL,
					   .memory_mib = 1024,
					   .cpus = 4 };
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(1, &opts, &full, &p, NULL), 0);
	assert_int_equal(p.accel, VM_ACCEL_TCG);
	assert_int_equal(p.machine, VM_MACHINE_Q35);
	assert_int_equal(p.vsock, VM_VSOCK_KERNEL);
	assert_int_equal(p.guest_cid, 77);
	assert_int_equal(p.memory_mib, 1024);
	assert_int_equal(p.cpus, 4);
}

/* The message names the option, the cause that the host gave, and the way out. */
static void check_refusal(const struct plan_options *opts, const char *option, const char *cause,
			  const char *remedy)
{
	struct vm p = { .cpus = 99 };
	struct err e = ERR_INIT;

	assert_int_equal(plan_pod(1, opts, &bare, &p, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, option));
	assert_non_null(strstr(e.text, cause));
	assert_non_null(strstr(e.text, remedy));
	assert_int_equal(p.cpus, 99); /* untouched */
}

static void test_what_cannot_be(void **state)
{
	(void)state;
	check_refusal(&(struct plan_options){ .accel = PLAN_ACCEL_KVM }, "--accel=kvm",
		      bare.kvm_reason, "--accel=tcg");
	check_refusal(&(struct plan_options){ .vsock = PLAN_VSOCK_KERNEL }, "--vsock=kernel",
		      bare.vhost_vsock_reason, "--vsock=user");
}

static void out_of_range(const struct plan_options *opts, const char *what)
{
	struct vm p;
	struct err e = ERR_INIT;

	assert_int_equal(plan_pod(1, opts, &full, &p, &e), -EINVAL);
	if (!strstr(e.text, what))
		fail_msg("\"%s\" does not say \"%s\"", e.text, what);
}

static void test_ranges(void **state)
{
	const struct plan_options most = { .memory_mib = VM_MEMORY_MAX, .cpus = VM_CPUS_MAX };
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(1, &most, &full, &p, NULL), 0);
	out_of_range(&(struct plan_options){ .memory_mib = VM_MEMORY_MAX + 1 }, "memory");
	out_of_range(&(struct plan_options){ .memory_mib = VM_MEMORY_MIN - 1 }, "memory");
	out_of_range(&(struct plan_options){ .cpus = VM_CPUS_MAX + 1 }, "processors");
	out_of_range(&(struct plan_options){ .accel = (enum plan_accel)9 }, "acceleration");
	out_of_range(&(struct plan_options){ .machine = (enum plan_machine)9 }, "machine type");
	out_of_range(&(struct plan_options){ .vsock = (enum plan_vsock)9 }, "vsock mode");
}

/* Of the machine's memory and swap space a VM can have all, and no more. */
static void test_too_much_memory(void **state)
{
	struct plan_host host = full;
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	host.memory_mib = 1000;
	assert_int_equal(plan_pod(1, &(struct plan_options){ .memory_mib = 1000 }, &host, &p, &e),
			 0);
	assert_int_equal(plan_pod(1, &(struct plan_options){ .memory_mib = 1001 }, &host, &p, &e),
			 -ENOMEM);
	assert_string_equal(e.text,
			    "a VM of 1001 MiB: this machine has 1000 MiB of memory and 0 MiB "
			    "of swap space (give a smaller --memory)");
	host.swap_mib = 500;
	assert_int_equal(plan_pod(1, &(struct plan_options){ .memory_mib = 1500 }, &host, &p, &e),
			 0);
	assert_int_equal(plan_pod(1, &(struct plan_options){ .memory_mib = 1501 }, &host, &p, &e),
			 -ENOMEM);
	host.memory_mib = 0; /* unknown */
	assert_int_equal(plan_pod(1, &(struct plan_options){ .memory_mib = 1501 }, &host, &p, &e),
			 0);
}

/* A VMM that has q35 only gets that, unless microvm is asked for. */
static void test_only_q35(void **state)
{
	struct plan_options opts = { .only_q35 = true };
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(1, &opts, &full, &p, NULL), 0);
	assert_int_equal(p.machine, VM_MACHINE_Q35);
	opts.machine = PLAN_MACHINE_MICROVM;
	assert_int_equal(plan_pod(1, &opts, &full, &p, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "--machine=microvm"));
}

/* A CID that nobody chose is not passed on. */
static void test_no_cid(void **state)
{
	struct plan_host host = full;
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	host.guest_cid = 0;
	assert_int_equal(
		plan_pod(1, &(struct plan_options){ .vsock = PLAN_VSOCK_KERNEL }, &host, &p, &e),
		-EINVAL);
	assert_non_null(strstr(e.text, "CID"));
}

static void test_number_of_apps(void **state)
{
	struct pod_manifest many = { .n_apps = AGENT_APPS_MAX + 1 };
	const struct plan_options opts = { 0 };
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(AGENT_APPS_MAX, &opts, &bare, &p, NULL), 0);
	assert_int_equal(p.n_disks, AGENT_APPS_MAX + 1);
	/* Refused before its apps are looked at. */
	assert_int_equal(plan_make(&many, &opts, &bare, &p, &e), -EINVAL);
}

static void test_disks(void **state)
{
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(3, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	assert_int_equal(p.n_disks, 4);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(p.disks[i].lun, i);
		assert_true(p.disks[i].read_only);
		assert_false(p.disks[i].discard);
	}
	assert_int_equal(p.disks[3].lun, PLAN_SCRATCH_LUN);
	assert_false(p.disks[3].read_only);
	assert_true(p.disks[3].discard);
}

static void add_volume(struct pod_manifest *pod, const char *name, enum volume_kind kind)
{
	CLEANUP(volume_deinit) struct volume v;
	volume_init(&v);
	snprintf(v.name, sizeof(v.name), "%s", name);
	v.kind = kind;
	v.format = strcmp(name, "qcow") == 0 ? VOLUME_QCOW2 : VOLUME_RAW;
	assert_int_equal(volume_set_source(&v, "/x"), 0);
	assert_int_equal(volumes_add(&pod->volumes, &v), 0);
}

/* By their number in the manifest, and only those that somebody has. */
static void test_volumes(void **state)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest pod;
	struct vm p;
	(void)state;
	pod_make(&pod, 1, "odd");
	add_volume(&pod, "host", VOLUME_HOST);
	add_volume(&pod, "raw", VOLUME_BLOCK);
	add_volume(&pod, "none", VOLUME_BLOCK);
	add_volume(&pod, "qcow", VOLUME_BLOCK);
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	assert_false(p.shares);
	assert_int_equal(
		plan_make(&pod, &(struct plan_options){ .hot_volumes = true }, &bare, &p, NULL), 0);
	assert_false(p.shares); /* nobody comes later */
	assert_false(vm_has_volume_disks(&p));
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "host", "/h", true), 0);
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "raw", "/r", true), 0);
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "raw", "/w", false), 0);
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "qcow", "/q", true), 0);
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	assert_true(p.shares);
	assert_true(vm_has_volume_disks(&p));
	assert_int_equal(p.n_disks, 4);
	assert_int_equal(p.disks[2].lun, AGENT_VOLUME_LUN + 1);
	assert_false(p.disks[2].read_only);
	assert_false(p.disks[2].disposable);
	assert_int_equal(p.disks[3].lun, AGENT_VOLUME_LUN + 3);
	assert_true(p.disks[3].read_only);
	assert_int_equal(p.disks[3].format, VM_FORMAT_QCOW2);
	pod.is_mutable = true; /* an app that comes may have it, and write */
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	assert_int_equal(p.n_disks, 5);
	assert_false(p.disks[4].read_only);
	volumes_deinit(&pod.volumes);
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	assert_false(p.shares);
	assert_int_equal(
		plan_make(&pod, &(struct plan_options){ .hot_volumes = true }, &bare, &p, NULL), 0);
	assert_true(p.shares);
}

/* It is not --memory that is too large then. */
static void test_too_much_for_apps(void **state)
{
	struct plan_host host = bare;
	struct pod_manifest pod;
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	host.memory_mib = 1000;
	pod_make(&pod, 2, "odd");
	pod.apps[0].isolators.memory = INT64_C(1000) << 20;
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, &e), -ENOMEM);
	assert_string_equal(e.text,
			    "a VM of 1128 MiB, for the memory limits of the apps: this machine has "
			    "1000 MiB of memory and 0 MiB of swap space (lower them, or give the "
			    "VM's --memory)");
	host.swap_mib = 128;
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, &e), 0);
	pod_manifest_deinit(&pod);
}

/* An app that comes to a pod of one app, whose VM has 512 MiB and 2 of 4 processors. */
static void check_fits(int64_t first_mib, int64_t mib, int64_t millis, struct plan_options opts,
		       const char *error)
{
	struct plan_host host = bare;
	struct pod_manifest pod;
	struct err e = ERR_INIT;
	struct vm vm = { .memory_mib = 512, .cpus = 2 };

	host.cpus = 4;
	pod_make(&pod, 2, "odd");
	pod.apps[0].isolators.memory = first_mib << 20;
	pod.apps[0].isolators.cpu_millis = 500;
	pod.apps[1].isolators.memory = mib << 20;
	pod.apps[1].isolators.cpu_millis = millis;
	assert_int_equal(plan_fits(&vm, &pod, &pod.apps[1], &opts, &host, &e),
			 *error ? -ENOSPC : 0);
	if (!strstr(e.text, error))
		fail_msg("%s", e.text);
	pod_manifest_deinit(&pod);
}

static void test_fits(void **state)
{
	const struct plan_options unsaid = { 0 }, said = { .memory_mib = 512, .cpus = 2 },
				  coming = { .apps_memory = 384 << 20, .apps_cpu_millis = 2000 },
				  beyond = { .apps_memory = (384 << 20) + 1 };
	(void)state;
	check_fits(184, 200, 1500, unsaid, "");
	check_fits(184, 201, 0, unsaid,
		   ": its memory limit, 201 MiB, is beyond the VM, which has 512 MiB for itself "
		   "and all apps (lower it, or start a pod with --memory=513Mi)");
	check_fits(184, 0, 1501, unsaid,
		   ": its limit of 1.501 processors is beyond the VM, which has 2 for all apps "
		   "(lower it, or start a pod with --cpus=3)");
	check_fits(184, 0, 9000, unsaid, "start a pod with --cpus=4)"); /* of the host */
	check_fits(1000, 0, 0, unsaid, ""); /* who has no limits is not to blame */
	/* Whoever has chosen the size may promise it more than once. */
	check_fits(512, 512, 2000, said, "");
	check_fits(512, 512, 2000, coming, "");
	check_fits(0, 513, 0, coming, "--memory=641Mi)");
	check_fits(0, 513, 0, said, "--memory=641Mi)");
	check_fits(0, 513, 0, beyond, ""); /* this machine had no more for the VM */
	check_fits(0, 0, 2001, said, "--cpus=3)");
}

/* What two apps with limits need together, where the user does not say. */
static void check_sizes(int64_t memory_mib, int64_t cpu_millis, unsigned host_cpus,
			unsigned want_memory, unsigned want_cpus)
{
	struct plan_host host = bare;
	struct pod_manifest pod;
	struct vm p;

	host.cpus = host_cpus;
	pod_make(&pod, 3, "odd"); /* the third has no limits */
	for (int i = 0; i < 2; i++) {
		pod.apps[i].isolators.memory = memory_mib << 20;
		pod.apps[i].isolators.cpu_millis = cpu_millis;
	}
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	assert_int_equal(p.memory_mib, want_memory);
	assert_int_equal(p.cpus, want_cpus);
	assert_int_equal(plan_make(&pod, &(struct plan_options){ .memory_mib = 64, .cpus = 3 },
				   &host, &p, NULL),
			 0);
	assert_int_equal(p.memory_mib, 64);
	assert_int_equal(p.cpus, 3);
	pod_manifest_deinit(&pod);
}

/* For apps that are still to come. */
static void test_sizes_for_apps(void **state)
{
	struct plan_options o = {
		.memory_mib = 1024, .cpus = 1, .apps_memory = 1, .apps_cpu_millis = 1001
	};
	struct plan_host host = bare;
	struct pod_manifest pod = { 0 };
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	host.cpus = 8;
	assert_int_equal(plan_make(&pod, &o, &host, &p, NULL), 0);
	assert_int_equal(p.memory_mib, 1024);
	assert_int_equal(p.cpus, 2);
	o.apps_memory = (INT64_C(896) << 20) + 1;
	o.apps_cpu_millis = 500;
	assert_int_equal(plan_make(&pod, &o, &host, &p, NULL), 0);
	assert_int_equal(p.memory_mib, 1025);
	assert_int_equal(p.cpus, 1);
	o.apps_memory = INT64_C(2) << 30;
	o.apps_cpu_millis = 1024000;
	host.memory_mib = 2048;
	host.swap_mib = 1; /* limits beyond all that there is give all that there is */
	assert_int_equal(plan_make(&pod, &o, &host, &p, &e), 0);
	assert_int_equal(p.memory_mib, 2049);
	host.memory_mib = 1000;
	assert_int_equal(plan_make(&pod, &o, &host, &p, &e),
			 -ENOMEM); /* what is asked for is not */
	assert_non_null(strstr(e.text, "a VM of 1024 MiB: this machine has 1000 MiB"));
	o.apps_memory = INT64_MAX / 2;
	host.memory_mib = 0; /* unknown */
	assert_int_equal(plan_make(&pod, &o, &host, &p, &e), 0);
	assert_int_equal(p.memory_mib, VM_MEMORY_MAX);
	o.apps_memory = INT64_C(2) << 30;
	host.memory_mib = 4096;
	assert_int_equal(plan_make(&pod, &o, &host, &p, NULL), 0);
	assert_int_equal(p.memory_mib, PLAN_MEMORY_OVERHEAD + 2048);
	assert_int_equal(p.cpus, 8);
}

static void test_sizes_of_apps(void **state)
{
	struct pod_manifest pod;
	struct err e = ERR_INIT;
	struct vm p;

	(void)state;
	check_sizes(0, 0, 8, PLAN_MEMORY_DEFAULT, 1);
	check_sizes(192, 500, 8, PLAN_MEMORY_DEFAULT, 1);
	check_sizes(193, 501, 8, 2 * 193 + PLAN_MEMORY_OVERHEAD, 2);
	check_sizes(1024, 4000, 8, 2 * 1024 + PLAN_MEMORY_OVERHEAD, 8);
	check_sizes(1024, 4000, 4, 2 * 1024 + PLAN_MEMORY_OVERHEAD, 4);
	check_sizes(1024, 4000, 0, 2 * 1024 + PLAN_MEMORY_OVERHEAD, 8);
	check_sizes(1024, 1000000, 4096, 2 * 1024 + PLAN_MEMORY_OVERHEAD, VM_CPUS_MAX);
	pod_make(&pod, 1, "odd");
	pod.apps[0].isolators.memory = ((int64_t)VM_MEMORY_MAX - PLAN_MEMORY_OVERHEAD) << 20;
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, &e), 0);
	assert_int_equal(p.memory_mib, VM_MEMORY_MAX);
	pod.apps[0].isolators.memory++;
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "add up to a VM of 1048577 MiB, at most 1048576"));
	pod_manifest_deinit(&pod);
}

static void test_no_scratch(void **state)
{
	struct vm p;

	(void)state;
	assert_int_equal(plan_pod(1, &(struct plan_options){ .no_scratch = true }, &bare, &p, NULL),
			 0);
	assert_int_equal(p.n_disks, 1);
}

/* What the kernel of one combination is told. */
static void append_of(const struct plan_options *opts, const struct plan_host *host, char *out)
{
	struct vm p;

	assert_int_equal(plan_pod(1, opts, host, &p, NULL), 0);
	assert_int_equal(str_copy(out, VM_APPEND_MAX + 1, p.append), 0);
}

static void test_kernel_command_line(void **state)
{
	const struct plan_options opts = { 0 }, debug = { .debug = true }, two = { .cpus = 2 };
	const struct plan_options q35 = { .machine = PLAN_MACHINE_Q35 };
	struct plan_host host = bare;
	char text[VM_APPEND_MAX + 1];

	(void)state;
	host.tsc_khz = 2596208;
	append_of(&opts, &host, text);
	assert_non_null(strstr(text, "console=ttyS0"));
	assert_non_null(strstr(text, "panic=-1"));
	assert_non_null(strstr(text, "loglevel=5"));
	assert_non_null(strstr(text, " pci=off"));
	assert_non_null(strstr(text, "tsc_early_khz=2596208"));
	assert_non_null(strstr(text, "noreplace-smp"));
	assert_null(strstr(text, "cryptomgr.notests"));
	append_of(&debug, &host, text);
	assert_non_null(strstr(text, "loglevel=7"));
	append_of(&q35, &host, text);
	assert_null(strstr(text, "pci=off"));
	append_of(&two, &host, text);
	assert_null(strstr(text, "noreplace-smp"));
	host.kernel = PLAN_KERNEL_PACKAGED;
	append_of(&opts, &host, text);
	assert_non_null(strstr(text, "cryptomgr.notests"));
	host.tsc_khz = 0; /* unknown: the kernel has to find out */
	append_of(&opts, &host, text);
	assert_null(strstr(text, "tsc_early_khz"));
	append_of(&opts, &full, text); /* KVM has a clock of its own */
	assert_null(strstr(text, "khz"));
}

/* How much it may remember is for a guest to know whose files virtiofsd has open. */
static void test_kernel_command_line_of_shares(void **state)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest pod;
	struct plan_host host = bare;
	struct vm p;
	(void)state;
	host.files = 20001;
	pod_make(&pod, 1, "odd");
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	assert_null(strstr(p.append, "fuse"));
	add_volume(&pod, "host", VOLUME_HOST);
	assert_int_equal(volume_mounts_add(&pod.apps[0].mounts, "host", "/h", true), 0);
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	assert_true(p.shares);
	assert_true(str_ends(p.append, " fuse.max_inodes=10000"));
}

static void test_parse(void **state)
{
	enum plan_accel a = PLAN_ACCEL_TCG;
	enum plan_machine m = PLAN_MACHINE_Q35;
	enum plan_vsock v = PLAN_VSOCK_USER;

	(void)state;
	assert_int_equal(plan_accel_parse("nonsense", &a), -EINVAL);
	assert_int_equal(plan_machine_parse("", &m), -EINVAL);
	assert_int_equal(plan_vsock_parse("USER", &v), -EINVAL);
	assert_int_equal(a, PLAN_ACCEL_TCG);
	assert_int_equal(m, PLAN_MACHINE_Q35);
	assert_int_equal(v, PLAN_VSOCK_USER);
	assert_int_equal(plan_accel_parse("auto", &a), 0);
	assert_int_equal(a, PLAN_ACCEL_AUTO);
	assert_int_equal(plan_accel_parse("kvm", &a), 0);
	assert_int_equal(a, PLAN_ACCEL_KVM);
	assert_int_equal(plan_machine_parse("microvm", &m), 0);
	assert_int_equal(m, PLAN_MACHINE_MICROVM);
	assert_int_equal(plan_vsock_parse("kernel", &v), 0);
	assert_int_equal(v, PLAN_VSOCK_KERNEL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_defaults),
		fixture_test(test_what_was_asked_for),
		fixture_test(test_what_cannot_be),
		fixture_test(test_ranges),
		fixture_test(test_too_much_memory),
		fixture_test(test_only_q35),
		cmocka_unit_test(test_no_cid),
		fixture_test(test_number_of_apps),
		fixture_test(test_disks),
		fixture_test(test_volumes),
		fixture_test(test_fits),
		fixture_test(test_sizes_of_apps),
		fixture_test(test_sizes_for_apps),
		fixture_test(test_too_much_for_apps),
		fixture_test(test_no_scratch),
		fixture_test(test_kernel_command_line),
		fixture_test(test_kernel_command_line_of_shares),
		fixture_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
