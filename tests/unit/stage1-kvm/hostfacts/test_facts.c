/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/hostfacts/facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/support/fixture.h"

/* Makes the files of a kernel in the directory @name. */
static void make_kernel(void **state, const char *name)
{
	int dir = fixture_dir(state);
	char path[128];

	assert_int_equal(mkdirat(dir, name, 0755), 0);
	snprintf(path, sizeof(path), "%s/vmlinux", name);
	fixture_write(state, path, "k", 1);
	snprintf(path, sizeof(path), "%s/initramfs", name);
	fixture_write(state, path, "i", 1);
}

static void makes_sense(const struct err *e, const char *object, const char *remedy)
{
	if (!strstr(e->text, object) || !strstr(e->text, remedy))
		fail_msg("\"%s\" does not say \"%s\" and \"%s\"", e->text, object, remedy);
}

static void test_small_before_packaged(void **state)
{
	const struct facts_options opts = { .kernels = fixture_path(state) };
	struct facts_kernel k;

	make_kernel(state, "packaged");
	assert_int_equal(facts_find_kernel(&opts, &k, NULL), 0);
	assert_int_equal(k.flavour, PLAN_KERNEL_PACKAGED);
	assert_true(str_ends(k.vmlinux, "/packaged/vmlinux"));
	assert_true(str_ends(k.initramfs, "/packaged/initramfs"));
	make_kernel(state, "small");
	assert_int_equal(facts_find_kernel(&opts, &k, NULL), 0);
	assert_int_equal(k.flavour, PLAN_KERNEL_SMALL);
	assert_true(str_ends(k.vmlinux, "/small/vmlinux"));
}

static void test_small_without_initramfs(void **state)
{
	struct facts_options opts = { .kernels = fixture_path(state) };
	struct err e = ERR_INIT;
	struct facts_kernel k;

	make_kernel(state, "packaged");
	assert_int_equal(mkdirat(fixture_dir(state), "small", 0755), 0);
	fixture_write(state, "small/vmlinux", "k", 1);
	assert_int_equal(facts_find_kernel(&opts, &k, NULL), 0);
	assert_int_equal(k.flavour, PLAN_KERNEL_PACKAGED);
	opts.kernel = "small";
	assert_int_equal(facts_find_kernel(&opts, &k, &e), -ENOENT);
	makes_sense(&e, "/small/initramfs", "kernel-config/get small");
}

static void test_no_kernel(void **state)
{
	struct facts_options opts = { .kernels = fixture_path(state) };
	struct facts_kernel k = { .vmlinux = "untouched" };
	struct err e = ERR_INIT;

	assert_int_equal(facts_find_kernel(&opts, &k, &e), -ENOENT);
	makes_sense(&e, "/packaged/vmlinux", "kernel-config/get packaged");
	opts.kernel = "huge";
	assert_int_equal(facts_find_kernel(&opts, &k, &e), -ENOENT);
	makes_sense(&e, "\"huge\"", "--kernel=small");
	assert_string_equal(k.vmlinux, "untouched");
}

static void test_kernel_directory(void **state)
{
	char path[PATH_MAX];
	struct facts_options opts = { .kernel = path };
	struct facts_kernel k;
	struct err e = ERR_INIT;

	make_kernel(state, "mine");
	make_kernel(state, "packaged-6.1");
	snprintf(path, sizeof(path), "%s/mine", fixture_path(state));
	assert_int_equal(facts_find_kernel(&opts, &k, NULL), 0);
	assert_int_equal(k.flavour, PLAN_KERNEL_SMALL);
	snprintf(path, sizeof(path), "%s/packaged-6.1", fixture_path(state));
	assert_int_equal(facts_find_kernel(&opts, &k, NULL), 0);
	assert_int_equal(k.flavour, PLAN_KERNEL_PACKAGED);
	snprintf(path, sizeof(path), "%s/other", fixture_path(state));
	assert_int_equal(facts_find_kernel(&opts, &k, &e), -ENOENT);
	makes_sense(&e, "/other/vmlinux", "a directory with vmlinux and initramfs");
}

/* A path of PATH_MAX bytes is refused before it is cut. */
static void test_long_directory(void **state)
{
	char path[PATH_MAX];
	const struct facts_options opts = { .kernel = path };
	struct facts_kernel k;
	struct err e = ERR_INIT;

	(void)state;
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(facts_find_kernel(&opts, &k, &e), -ENAMETOOLONG);
}

static void test_qemu(void **state)
{
	char program[PATH_MAX], found[PATH_MAX];
	struct err e = ERR_INIT;

	fixture_write(state, "qemu-system-x86_64", "", 0);
	snprintf(program, sizeof(program), "%s/qemu-system-x86_64", fixture_path(state));
	assert_int_equal(chmod(program, 0755), 0);
	unsetenv(FACTS_ENV_QEMU);
	assert_int_equal(setenv("PATH", fixture_path(state), 1), 0);
	assert_int_equal(facts_find_qemu(NULL, found, NULL), 0);
	assert_string_equal(found, program);

	assert_int_equal(setenv(FACTS_ENV_QEMU, "/nonexistent/qemu", 1), 0);
	assert_int_equal(facts_find_qemu(NULL, found, &e), -ENOENT);
	makes_sense(&e, "/nonexistent/qemu", FACTS_ENV_QEMU);
	assert_int_equal(facts_find_qemu(program, found, &e), 0); /* the option comes first */
	assert_int_equal(setenv(FACTS_ENV_QEMU, "", 1), 0);
	assert_int_equal(facts_find_qemu(NULL, found, &e), 0);

	unsetenv(FACTS_ENV_QEMU);
	assert_int_equal(setenv("PATH", "/nonexistent", 1), 0);
	assert_int_equal(facts_find_qemu(NULL, found, &e), -ENOENT);
	makes_sense(&e, "in PATH", "apt-get install qemu-system-x86");
}

static void test_vhost_vsock(void **state)
{
	struct facts_vsock v;

	(void)state;
	facts_vhost_vsock("/dev/null", &v); /* opens, and is none */
	assert_false(v.usable);
	assert_non_null(strstr(v.reason, "/dev/null: "));
	assert_true(v.fd < 0);
	facts_vhost_vsock("/nonexistent/vhost-vsock", &v);
	assert_false(v.usable);
	assert_non_null(strstr(v.reason, "/nonexistent/vhost-vsock"));
	assert_non_null(strstr(v.remedy, "modprobe"));
}

/* What is tried is undone; what cannot be had is not claimed. */
static void test_files(void **state)
{
	const struct facts_options opts = { .qemu = "/bin/true", .kernels = fixture_path(state) };
	struct rlimit had, low = { 100, 200 }, now;
	struct facts f;

	make_kernel(state, "small");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	assert_int_equal(facts_collect(&opts, PLAN_ACCEL_TCG, PLAN_VSOCK_USER, &f, NULL), 0);
	if (had.rlim_max >= PLAN_FILES_MAX)
		assert_int_equal(f.files, PLAN_FILES_MAX);
	facts_deinit(&f);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(facts_collect(&opts, PLAN_ACCEL_TCG, PLAN_VSOCK_USER, &f, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_memory_equal(&now, &low, sizeof(low));
	now.rlim_max = PLAN_FILES_MAX;
	assert_int_equal(f.files, setrlimit(RLIMIT_NOFILE, &now) == 0 ? PLAN_FILES_MAX : 200);
	facts_deinit(&f);
}

static void test_collect(void **state)
{
	struct facts_options opts = { .qemu = "/bin/true", .kernels = fixture_path(state) };
	struct facts f = { .kvm_gid = 4711 };
	struct plan_host host;
	struct err e = ERR_INIT;

	assert_int_equal(facts_collect(&opts, PLAN_ACCEL_AUTO, PLAN_VSOCK_AUTO, &f, &e), -ENOENT);
	assert_int_equal(f.kvm_gid, 4711);
	make_kernel(state, "small");
	assert_int_equal(facts_collect(&opts, PLAN_ACCEL_TCG, PLAN_VSOCK_USER, &f, &e), 0);
	assert_string_equal(f.qemu, "/bin/true");
	facts_to_plan(&f, &host);
	assert_false(host.kvm_usable);
	assert_false(host.vhost_vsock_usable);
	assert_int_equal(host.kernel, PLAN_KERNEL_SMALL);
	facts_deinit(&f);
	assert_int_equal(facts_collect(&opts, PLAN_ACCEL_AUTO, PLAN_VSOCK_AUTO, &f, &e), 0);
	facts_to_plan(&f, &host);
	assert_int_equal(host.vhost_vsock_usable, f.vhost_vsock.fd >= 0);
	assert_int_equal(host.vhost_vsock_usable, host.guest_cid >= VM_CID_MIN);
	assert_true(host.kvm_reason[0] != '\0');
	assert_true(host.vhost_vsock_reason[0] != '\0');
	facts_deinit(&f);
	facts_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_small_before_packaged),
		fixture_test(test_small_without_initramfs),
		fixture_test(test_no_kernel),
		fixture_test(test_kernel_directory),
		fixture_test(test_long_directory),
		fixture_test(test_qemu),
		fixture_test(test_vhost_vsock),
		fixture_test(test_files),
		fixture_test(test_collect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
