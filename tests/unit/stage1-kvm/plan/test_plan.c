/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/plan/plan.h"

#include <errno.h>
#include <string.h>

#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/stage1-kvm/plan/pods.h"

static const struct plan_host bare = { .kvm_reason = "there is no /dev/kvm",
				       .vhost_vsock_reason = "there is no /dev/vhost-vsock" };
static const struct plan_host full = { .kvm_usable = true,
				       .vhost_vsock_usable = true,
				       .guest_cid = 77 };

/* Plans a pod of @n apps. */
static int plan_pod(size_t n, const struct plan_options *opts, const struct plan_host *host,
		    struct plan *p, struct err *e)
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
	struct plan p;

	(void)state;
	assert_int_equal(plan_pod(1, &opts, &bare, &p, NULL), 0);
	assert_int_equal(p.vm.accel, VM_ACCEL_TCG);
	assert_int_equal(p.vm.machine, VM_MACHINE_MICROVM);
	assert_int_equal(p.vm.vsock, VM_VSOCK_USER);
	assert_int_equal(p.vm.memory_mib, PLAN_MEMORY_DEFAULT);
	assert_int_equal(p.vm.cpus, PLAN_CPUS_DEFAULT);
	assert_true(p.with_scratch);
	plan_deinit(&p);
	assert_int_equal(plan_pod(1, &opts, &full, &p, NULL), 0);
	assert_int_equal(p.vm.accel, VM_ACCEL_KVM);
	assert_int_equal(p.vm.vsock, VM_VSOCK_KERNEL);
	plan_deinit(&p);
}

static void test_what_was_asked_for(void **state)
{
	const struct plan_options opts = { .accel = PLAN_ACCEL_TCG,
					   .machine = PLAN_MACHINE_Q35,
					   .vsock = PLAN_VSOCK_KERNEL,
					   .memory_mib = 1024,
					   .cpus = 4 };
	struct plan p;

	(void)state;
	assert_int_equal(plan_pod(1, &opts, &full, &p, NULL), 0);
	assert_int_equal(p.vm.accel, VM_ACCEL_TCG);
	assert_int_equal(p.vm.machine, VM_MACHINE_Q35);
	assert_int_equal(p.vm.vsock, VM_VSOCK_KERNEL);
	assert_int_equal(p.vm.guest_cid, 77);
	assert_int_equal(p.vm.memory_mib, 1024);
	assert_int_equal(p.vm.cpus, 4);
	plan_deinit(&p);
}

/* The message names the option, the cause that the host gave, and the way out. */
static void check_refusal(const struct plan_options *opts, const char *option, const char *cause,
			  const char *remedy)
{
	struct plan p = { .n_apps = 99 };
	struct err e = ERR_INIT;

	assert_int_equal(plan_pod(1, opts, &bare, &p, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, option));
	assert_non_null(strstr(e.text, cause));
	assert_non_null(strstr(e.text, remedy));
	assert_int_equal(p.n_apps, 99); /* untouched */
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
	struct plan p;
	struct err e = ERR_INIT;

	assert_int_equal(plan_pod(1, opts, &full, &p, &e), -EINVAL);
	if (!strstr(e.text, what))
		fail_msg("\"%s\" does not say \"%s\"", e.text, what);
}

static void test_ranges(void **state)
{
	const struct plan_options most = { .memory_mib = VM_MEMORY_MAX, .cpus = VM_CPUS_MAX };
	struct plan p;

	(void)state;
	assert_int_equal(plan_pod(1, &most, &full, &p, NULL), 0);
	plan_deinit(&p);
	out_of_range(&(struct plan_options){ .memory_mib = VM_MEMORY_MAX + 1 }, "memory");
	out_of_range(&(struct plan_options){ .memory_mib = VM_MEMORY_MIN - 1 }, "memory");
	out_of_range(&(struct plan_options){ .cpus = VM_CPUS_MAX + 1 }, "processors");
	out_of_range(&(struct plan_options){ .accel = (enum plan_accel)9 }, "acceleration");
	out_of_range(&(struct plan_options){ .machine = (enum plan_machine)9 }, "machine type");
	out_of_range(&(struct plan_options){ .vsock = (enum plan_vsock)9 }, "vsock mode");
}

/* A CID that nobody chose is not passed on. */
static void test_no_cid(void **state)
{
	struct plan_host host = full;
	struct err e = ERR_INIT;
	struct plan p;

	(void)state;
	host.guest_cid = 0;
	assert_int_equal(
		plan_pod(1, &(struct plan_options){ .vsock = PLAN_VSOCK_KERNEL }, &host, &p, &e),
		-EINVAL);
	assert_non_null(strstr(e.text, "CID"));
}

static void test_number_of_apps(void **state)
{
	struct pod_manifest none = { 0 };
	const struct plan_options opts = { 0 };
	struct err e = ERR_INIT;
	struct plan p;

	(void)state;
	assert_int_equal(plan_pod(AGENT_APPS_MAX, &opts, &bare, &p, NULL), 0);
	assert_int_equal(p.n_apps, AGENT_APPS_MAX);
	assert_int_equal(p.vm.n_disks, VM_DISKS_MAX);
	plan_deinit(&p);
	assert_int_equal(plan_make(&none, &opts, &bare, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "0 apps"));
	none.n_apps = AGENT_APPS_MAX + 1; /* refused before its apps are looked at */
	assert_int_equal(plan_make(&none, &opts, &bare, &p, &e), -EINVAL);
}

static void test_disks_and_messages(void **state)
{
	struct plan p;

	(void)state;
	assert_int_equal(plan_pod(3, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	assert_int_equal(p.vm.n_disks, 4);
	for (int i = 0; i < 3; i++) {
		const struct agent_app_add *m = &p.apps[i];

		assert_int_equal(p.vm.disks[i].lun, i);
		assert_int_equal(p.vm.disks[i].fd, VM_FD_DISK0 + i);
		assert_true(p.vm.disks[i].read_only);
		assert_false(p.vm.disks[i].discard);
		assert_int_equal(m->lun, i);
		assert_int_equal(m->app[3], '0' + i);
		assert_string_equal(m->process.cwd, "odd");
		assert_string_equal(m->process.user, "odd");
		assert_string_equal(m->process.group, "odd");
		assert_string_equal(m->process.exec.v[0], "odd");
		assert_string_equal(m->process.env.v[0], "NAME=odd");
		assert_false(m->process.with_tty);
	}
	assert_int_equal(p.setup.scratch_lun, PLAN_SCRATCH_LUN);
	assert_int_equal(p.vm.disks[3].lun, PLAN_SCRATCH_LUN);
	assert_false(p.vm.disks[3].read_only);
	assert_true(p.vm.disks[3].discard);
	plan_deinit(&p);
}

/* An app without limits, and one with every number that there is. */
static void test_confinement(void **state)
{
	static const struct {
		enum isolator which;
		const char *text;
	} isolators[] = {
		{ ISOLATOR_MEMORY, "64Mi" },        { ISOLATOR_CPU, "1.5" },
		{ ISOLATOR_CPU_SHARES, "1024" },    { ISOLATOR_OOM_SCORE_ADJ, "-5" },
		{ ISOLATOR_NO_NEW_PRIVS, "true" },  { ISOLATOR_PIDS, "100" },
		{ ISOLATOR_RLIMITS, "nofile=1:2" },
	};
	struct pod_manifest pod;
	struct plan p;

	(void)state;
	pod_make(&pod, 2, "odd");
	for (size_t i = 0; i < ARRAY_SIZE(isolators); i++)
		assert_int_equal(isolators_set(&pod.apps[1].isolators, isolators[i].which,
					       isolators[i].text, NULL),
				 0);
	assert_int_equal(pod_app_add_group(&pod.apps[1].groups, "7", NULL), 0);
	pod.apps[1].read_only_root = true;
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, NULL), 0);
	const struct agent_confinement *free_app = &p.apps[0].confinement,
				       *c = &p.apps[1].confinement;
	assert_int_equal(free_app->capabilities, AGENT_CAPABILITIES_DEFAULT);
	assert_int_equal(free_app->cpu_weight, 0);
	assert_int_equal(free_app->memory_max, 0);
	assert_int_equal(free_app->groups.n + free_app->rlimits.n, 0);
	assert_int_equal(c->capabilities, AGENT_CAPABILITIES_DEFAULT);
	assert_int_equal(c->memory_max, 64 << 20);
	assert_int_equal(c->cpu_millis, 1500);
	assert_int_equal(c->cpu_weight, 39);
	assert_int_equal(c->oom_score_adj, -5);
	assert_int_equal(c->pids_max, 100);
	assert_true(c->no_new_privs && c->read_only_root);
	assert_string_equal(c->groups.v[0], "7");
	assert_string_equal(c->rlimits.v[0], "nofile=1:2");
	plan_deinit(&p);
	pod_manifest_deinit(&pod);
}

static void test_weight(void **state)
{
	static const struct {
		int64_t shares, weight;
	} cases[] = { { 0, 0 }, { 2, 1 }, { 1024, 39 }, { 131072, 5000 }, { 262144, 10000 } };
	struct pod_manifest pod;

	(void)state;
	pod_make(&pod, 1, "odd");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(agent_confinement_deinit) struct agent_confinement c;

		agent_confinement_init(&c);
		pod.apps[0].isolators.cpu_shares = cases[i].shares;
		assert_int_equal(plan_confinement(&pod.apps[0], &c), 0);
		assert_int_equal(c.cpu_weight, cases[i].weight);
	}
	pod_manifest_deinit(&pod);
}

/* What two apps with limits need together, where the user does not say. */
static void check_sizes(int64_t memory_mib, int64_t cpu_millis, unsigned host_cpus,
			unsigned want_memory, unsigned want_cpus)
{
	struct plan_host host = bare;
	struct pod_manifest pod;
	struct plan p;

	host.cpus = host_cpus;
	pod_make(&pod, 3, "odd"); /* the third has no limits */
	for (int i = 0; i < 2; i++) {
		pod.apps[i].isolators.memory = memory_mib << 20;
		pod.apps[i].isolators.cpu_millis = cpu_millis;
	}
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &host, &p, NULL), 0);
	assert_int_equal(p.vm.memory_mib, want_memory);
	assert_int_equal(p.vm.cpus, want_cpus);
	plan_deinit(&p);
	assert_int_equal(plan_make(&pod, &(struct plan_options){ .memory_mib = 64, .cpus = 3 },
				   &host, &p, NULL),
			 0);
	assert_int_equal(p.vm.memory_mib, 64);
	assert_int_equal(p.vm.cpus, 3);
	plan_deinit(&p);
	pod_manifest_deinit(&pod);
}

static void test_sizes_of_apps(void **state)
{
	struct pod_manifest pod;
	struct err e = ERR_INIT;
	struct plan p;

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
	assert_int_equal(p.vm.memory_mib, VM_MEMORY_MAX);
	plan_deinit(&p);
	pod.apps[0].isolators.memory++;
	assert_int_equal(plan_make(&pod, &(struct plan_options){ 0 }, &bare, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "add up to a VM of 1048577 MiB, at most 1048576"));
	pod_manifest_deinit(&pod);
}

static void test_no_scratch(void **state)
{
	struct plan p;

	(void)state;
	assert_int_equal(plan_pod(1, &(struct plan_options){ .no_scratch = true }, &bare, &p, NULL),
			 0);
	assert_int_equal(p.vm.n_disks, 1);
	assert_int_equal(p.setup.scratch_lun, -1);
	assert_false(p.with_scratch);
	plan_deinit(&p);
}

/* What the kernel of one combination is told. */
static void append_of(const struct plan_options *opts, const struct plan_host *host, char *out)
{
	struct plan p;

	assert_int_equal(plan_pod(1, opts, host, &p, NULL), 0);
	assert_int_equal(str_copy(out, VM_APPEND_MAX + 1, p.vm.append), 0);
	plan_deinit(&p);
}

static void test_kernel_command_line(void **state)
{
	const struct plan_options opts = { 0 }, debug = { .debug = true }, two = { .cpus = 2 };
	struct plan_host host = bare;
	char text[VM_APPEND_MAX + 1];

	(void)state;
	host.tsc_khz = 2596208;
	append_of(&opts, &host, text);
	assert_non_null(strstr(text, "console=ttyS0"));
	assert_non_null(strstr(text, "panic=-1"));
	assert_non_null(strstr(text, "loglevel=6"));
	assert_non_null(strstr(text, "tsc_early_khz=2596208"));
	assert_non_null(strstr(text, "noreplace-smp"));
	assert_null(strstr(text, "cryptomgr.notests"));
	append_of(&debug, &host, text);
	assert_non_null(strstr(text, "loglevel=7"));
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

static int make_once(void *ctx)
{
	struct plan p = { 0 };
	int r = plan_make(ctx, &(struct plan_options){ 0 }, &bare, &p, NULL);

	plan_deinit(&p);
	return r;
}

static void test_no_memory(void **state)
{
	struct pod_manifest pod;

	(void)state;
	pod_make(&pod, 2, "x");
	for_each_failing_alloc_lenient(make_once, &pod);
	pod_manifest_deinit(&pod);
}

static void test_deinit(void **state)
{
	struct plan p = { 0 };

	(void)state;
	plan_deinit(NULL);
	plan_deinit(&p);
	plan_deinit(&p);
}

/* What the agent is told about the streams of an app. */
static void test_streams(void **state)
{
	static const struct {
		struct stream_modes m;
		bool keep, tty, in, no_out, no_err;
	} samples[] = {
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_DEFAULT, STREAM_MODE_LOG },
		  false,
		  false,
		  false,
		  false,
		  false },
		{ { STREAM_MODE_NULL, STREAM_MODE_NULL, STREAM_MODE_NULL },
		  false,
		  false,
		  false,
		  true,
		  true },
		{ { STREAM_MODE_STREAM, STREAM_MODE_LOG, STREAM_MODE_NULL },
		  true,
		  false,
		  true,
		  false,
		  true },
		{ { STREAM_MODE_DEFAULT, STREAM_MODE_TTY, STREAM_MODE_DEFAULT },
		  true,
		  true,
		  false,
		  false,
		  false },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct pod_manifest pod;
		CLEANUP(agent_app_add_deinit) struct agent_app_add m;
		struct err e = ERR_INIT;
		pod_make(&pod, 1, "x");
		pod.apps[0].streams = samples[i].m;
		assert_int_equal(strv_add(&pod.apps[0].pre_start, "before"), 0);
		assert_int_equal(strv_add(&pod.apps[0].post_stop, "after"), 0);
		agent_app_add_init(&m);
		assert_int_equal(plan_app(&pod.apps[0], 7, &m, &e), 0);
		assert_int_equal(m.lun, 7);
		assert_string_equal(m.pre_start.v[0], "before");
		assert_string_equal(m.post_stop.v[0], "after");
		assert_int_equal(m.keep_streams, samples[i].keep);
		assert_int_equal(m.process.with_tty, samples[i].tty);
		assert_int_equal(m.process.with_stdin, samples[i].in);
		assert_int_equal(m.process.null_stdout, samples[i].no_out);
		assert_int_equal(m.process.null_stderr, samples[i].no_err);
		pod_manifest_deinit(&pod);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_streams),
		fixture_test(test_defaults),
		fixture_test(test_what_was_asked_for),
		fixture_test(test_what_cannot_be),
		fixture_test(test_ranges),
		fixture_test(test_no_cid),
		fixture_test(test_number_of_apps),
		fixture_test(test_disks_and_messages),
		fixture_test(test_confinement),
		fixture_test(test_weight),
		fixture_test(test_sizes_of_apps),
		fixture_test(test_no_scratch),
		fixture_test(test_kernel_command_line),
		fixture_test(test_parse),
		fixture_test(test_no_memory),
		fixture_test(test_deinit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
