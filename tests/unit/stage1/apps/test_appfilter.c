/* SPDX-License-Identifier: Apache-2.0 */
/* Filters are compiled and installed for real, in children that then try what they may do. */
#include "stage1/apps/appfilter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/hex.h"
#include "lib/os/clock.h"
#include "stage1/apps/appfilter_sets.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/stage1/apps/filtered.h"

#define SYS_ADMIN (INT64_C(1) << CAP_SYS_ADMIN)
#define NEWEST    466 /* the last system call that the default filter knows */
#define X32       0x40000000L

static int compile(const char *policy, int64_t caps, char **ret, struct err *e)
{
	CLEANUP(isolators_deinit) struct isolators i;
	isolators_init(&i);
	int r = policy ? isolators_set_seccomp(&i, policy, e) : 0;
	return r < 0 ? r : appfilter_compile(&i, caps, ret, e);
}

static int try_call(const char *hex, long number, long a, long b, long c)
{
	return filtered_call(hex, number, a, b, c, 0);
}

/*
 * What both calls that make nodes say to a device; EFAULT if it is the kernel that refuses the
 * path.
 */
static int try_mknod(const char *hex, long mode, long dev)
{
	int r = try_call(hex, SYS_mknod, 1, mode, dev);
	assert_int_equal(filtered_call(hex, SYS_mknodat, AT_FDCWD, 1, mode, dev), r);
	return r;
}

/* What holds whatever the policy is. */
static void check_always(const char *hex)
{
	const long garbage = (long)(UINT64_C(0xdead) << 32);
	assert_int_equal(try_call(hex, SYS_socket, AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT);
	assert_int_equal(try_call(hex, SYS_socket, garbage | AF_VSOCK, SOCK_STREAM, 0),
			 EAFNOSUPPORT);
	assert_int_equal(try_call(hex, SYS_socketpair, AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT);
	assert_int_equal(try_call(hex, SYS_io_uring_setup, 1, 0, 0), ENOSYS);
	assert_int_equal(try_call(hex, X32 | SYS_read, -1, 0, 0), ENOSYS);
	assert_int_equal(try_call(hex, X32 | SYS_socket, AF_VSOCK, SOCK_STREAM, 0), ENOSYS);
	assert_int_equal(try_call(hex, -1, 0, 0, 0), ENOSYS);
	assert_int_equal(try_call(hex, SYS_close, -1, 0, 0), EBADF);
	assert_int_equal(try_call(hex, SYS_write, -1, 0, 0), EBADF);
}

static void test_always(void **state)
{
	(void)state;
	static const char *const policies[] = { NULL,
						"@appc.io/all",
						"read",
						"@systemd/network-io",
						"errno=EACCES,socket,io_uring_setup,socketpair",
						"mode=remove,chmod",
						"mode=remove,@appc.io/empty" };
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		cleanup_free char *hex = NULL;
		struct err e = ERR_INIT;
		assert_int_equal(compile(policies[i], AGENT_CAPABILITIES_DEFAULT, &hex, &e), 0);
		check_always(hex);
	}
	cleanup_free char *off = NULL;
	assert_int_equal(appfilter_compile_off(&off, NULL), 0);
	check_always(off);
}

#if defined(__x86_64__)
/*
 * getpid() by the old gate, in 32-bit numbers: 20. What the kernel has not, the processor refuses.
 */
static int old_gate(void *ctx)
{
	long r;
	(void)ctx;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return r < 0 ? (int)-r : 0;
}

static void test_other_architecture(void **state)
{
	(void)state;
	cleanup_free char *off = NULL;
	assert_int_equal(appfilter_compile_off(&off, NULL), 0);
	int got = filtered_run(off, old_gate, NULL);
	if (got != ENOSYS && got != -SIGSEGV)
		fail_msg("%d", got);
}
#endif

static void test_default(void **state)
{
	(void)state;
	cleanup_free char *hex = NULL, *admin = NULL;
	assert_int_equal(compile(NULL, AGENT_CAPABILITIES_DEFAULT, &hex, NULL), 0);
	assert_int_equal(try_call(hex, SYS_getpid, 0, 0, 0), 0);
	assert_int_equal(try_call(hex, SYS_socket, AF_UNIX, SOCK_STREAM, 0), 0);
	assert_int_equal(try_call(hex, SYS_unshare, CLONE_NEWUSER, 0, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_mount, 0, 0, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_bpf, 0, 0, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_keyctl, 0, 0, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_clone3, 0, 0, 0), ENOSYS);
	assert_int_equal(try_call(hex, NEWEST + 1, 0, 0, 0), ENOSYS);
	assert_int_equal(try_call(hex, SYS_clone, CLONE_NEWUSER, 0, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_clone, CLONE_SIGHAND, 0, 0), EINVAL); /* the kernel's */
	assert_int_equal(try_call(hex, SYS_personality, 0xffffffff, 0, 0), 0);
	assert_int_equal(try_call(hex, SYS_personality, ADDR_NO_RANDOMIZE, 0, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_chroot, 1, 0, 0), EFAULT); /* the capability is there */

	assert_int_equal(compile(NULL, SYS_ADMIN, &admin, NULL), 0);
	assert_int_equal(try_call(admin, SYS_mount, 1, 1, 1), EFAULT);
	assert_int_equal(try_call(admin, SYS_clone3, 0, 0, 0), EINVAL);
	assert_int_equal(try_call(admin, SYS_clone, CLONE_NEWNS | CLONE_FS, 0, 0), EINVAL);
	assert_int_equal(try_call(admin, SYS_chroot, 1, 0, 0), EPERM); /* the capability is not */
	assert_int_equal(try_call(admin, SYS_reboot, 0, 0, 0), EPERM);
}

static void test_default_with_errno(void **state)
{
	(void)state;
	cleanup_free char *hex = NULL, *nosys = NULL;
	assert_int_equal(compile("mode=remove,errno=EACCES,@appc.io/empty", 0, &hex, NULL), 0);
	assert_int_equal(try_call(hex, SYS_mount, 0, 0, 0), EACCES);
	assert_int_equal(try_call(hex, SYS_clone3, 0, 0, 0), ENOSYS);
	assert_int_equal(compile("mode=remove,errno=ENOSYS,@appc.io/empty", 0, &nosys, NULL), 0);
	assert_int_equal(try_call(nosys, SYS_clone3, 0, 0, 0), ENOSYS);
}

/*
 * Of devices that an app has anyway, and of what is none; the kernel ignores the upper bits, too.
 */
static void test_device_nodes(void **state)
{
	(void)state;
	static const char *const policies[] = { NULL, "errno=ENOSYS,mknod,mknodat",
						"mode=remove,chmod", "mode=remove,@appc.io/empty" };
	static const long allowed[] = { 0, 0x103, 0x105, 0x107, 0x108, 0x109, 0x500, 0x501, 0xac8 };
	const long garbage = (long)(UINT64_C(0xdead) << 32);
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		cleanup_free char *hex = NULL;
		assert_int_equal(compile(policies[i], AGENT_CAPABILITIES_DEFAULT, &hex, NULL), 0);
		for (size_t k = 0; k < ARRAY_SIZE(allowed); k++)
			assert_int_equal(try_mknod(hex, S_IFCHR | 0666, allowed[k]), EFAULT);
		assert_int_equal(try_mknod(hex, S_IFREG | 0666, 0x800), EFAULT);
		assert_int_equal(try_mknod(hex, S_IFIFO | 0666, 0x800), EFAULT);
		assert_int_equal(try_mknod(hex, 0666, 0x800), EFAULT);
		assert_int_equal(try_mknod(hex, S_IFBLK | 0666, 0x800), EPERM);
		assert_int_equal(try_mknod(hex, S_IFBLK | 0666, 0x103), EPERM);
		assert_int_equal(try_mknod(hex, S_IFCHR | 0666, 0x101), EPERM);
		assert_int_equal(try_mknod(hex, S_IFCHR | 0666, 0xae8), EPERM);
		assert_int_equal(try_mknod(hex, S_IFCHR | 0666, 0x502), EPERM); /* ptmx of old */
		assert_int_equal(try_mknod(hex, S_IFCHR | 0666, 0x100103), EPERM);
		assert_int_equal(try_mknod(hex, garbage | 0x10000 | S_IFBLK, garbage | 0x800),
				 EPERM);
		assert_int_equal(try_mknod(hex, S_IFCHR | 0666, garbage | 0x103), EFAULT);
	}
	cleanup_free char *off = NULL, *none = NULL;
	assert_int_equal(appfilter_compile_off(&off, NULL), 0);
	assert_int_equal(try_mknod(off, S_IFBLK | 0666, 0x800), EFAULT);
	assert_int_equal(compile("errno=ENOSYS,getpid", 0, &none, NULL), 0);
	assert_int_equal(try_mknod(none, S_IFREG | 0666, 0), ENOSYS);
}

static void test_retain(void **state)
{
	(void)state;
	cleanup_free char *kill = NULL, *error = NULL, *most = NULL;
	assert_int_equal(compile("getpid", 0, &kill, NULL), 0);
	assert_int_equal(try_call(kill, SYS_getpid, 0, 0, 0), 0);
	assert_int_equal(try_call(kill, SYS_getppid, 0, 0, 0), -SIGSYS);
	assert_int_equal(try_call(kill, SYS_execve, 1, 0, 0), EFAULT); /* essential */
	assert_int_equal(try_call(kill, SYS_prctl, -1, 0, 0), EINVAL);

	assert_int_equal(compile("errno=EACCES,getpid,chown32", 0, &error, NULL), 0);
	assert_int_equal(try_call(error, SYS_getpid, 0, 0, 0), 0);
	assert_int_equal(try_call(error, SYS_getppid, 0, 0, 0), EACCES);

	assert_int_equal(compile("errno=EACCES,@rkt/default-whitelist,mount,clone", 0, &most, NULL),
			 0);
	assert_int_equal(try_call(most, SYS_getppid, 0, 0, 0), 0);
	assert_int_equal(try_call(most, SYS_mount, 1, 1, 1), EFAULT);
	assert_int_equal(try_call(most, SYS_clone, CLONE_NEWNS | CLONE_FS, 0, 0), EINVAL);
	assert_int_equal(try_call(most, SYS_clone3, 0, 0, 0), ENOSYS);
	assert_int_equal(try_call(most, SYS_unshare, CLONE_NEWUSER, 0, 0), EACCES);
	assert_int_equal(try_call(most, SYS_personality, ADDR_NO_RANDOMIZE, 0, 0), EACCES);
}

static void test_remove(void **state)
{
	(void)state;
	cleanup_free char *kill = NULL, *error = NULL, *privileged = NULL, *white = NULL;
	assert_int_equal(compile("mode=remove,getppid", 0, &kill, NULL), 0);
	assert_int_equal(try_call(kill, SYS_getppid, 0, 0, 0), -SIGSYS);
	assert_int_equal(try_call(kill, SYS_getpid, 0, 0, 0), 0);
	assert_int_equal(try_call(kill, 500, 0, 0, 0), ENOSYS); /* the kernel's */

	assert_int_equal(
		compile("mode=remove,errno=EACCES,@docker/default-blacklist", 0, &error, NULL), 0);
	assert_int_equal(try_call(error, SYS_mount, 0, 0, 0), EACCES);
	assert_int_equal(try_call(error, SYS_getpid, 0, 0, 0), 0);

	/* Has capset, without which the agent could not start the app. */
	assert_int_equal(compile("mode=remove,@systemd/privileged", 0, &privileged, NULL), 0);
	assert_int_equal(try_call(privileged, SYS_capset, 1, 0, 0), EFAULT);
	assert_int_equal(try_call(privileged, SYS_chroot, 1, 0, 0), -SIGSYS);

	assert_int_equal(
		compile("mode=remove,errno=EPERM,@docker/default-whitelist", 0, &white, NULL), 0);
	assert_int_equal(try_call(white, SYS_getpid, 0, 0, 0), EPERM);
	assert_int_equal(try_call(white, SYS_clone, CLONE_SIGHAND, 0, 0), EPERM);
}

static void test_off(void **state)
{
	(void)state;
	cleanup_free char *all = NULL, *off = NULL;
	assert_int_equal(compile("getpid,@appc.io/all", 0, &all, NULL), 0);
	assert_int_equal(appfilter_compile_off(&off, NULL), 0);
	assert_string_equal(all, off);
	assert_int_equal(try_call(off, SYS_clone3, 0, 0, 0), EINVAL);
	assert_int_equal(try_call(off, SYS_socket, AF_UNIX, SOCK_STREAM, 0), 0);
}

static void test_unknown_names(void **state)
{
	(void)state;
	char *hex = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(compile("read,raed", 0, &hex, &e), -EINVAL);
	assert_string_equal(e.text, "system call filter: there is no system call \"raed\"");
	assert_null(hex);
}

/* Every wildcard is known here, and every name of every list to libseccomp. */
static void test_lists(void **state)
{
	(void)state;
	for (const char *const *w = isolators_wildcards; *w; w++) {
		char policy[ISOLATOR_NAME_MAX + 16];
		cleanup_free char *hex = NULL;
		struct err e = ERR_INIT;
		bool empty = strcmp(*w, ISOLATOR_SECCOMP_EMPTY) == 0;
		snprintf(policy, sizeof(policy), "%s%s", empty ? "mode=remove," : "", *w);
		if (compile(policy, -1, &hex, &e) != 0)
			fail_msg("%s: %s", *w, e.text);
	}
}

/* A change of the default filter is looked at, not met by chance. */
static void test_size_of_default(void **state)
{
	(void)state;
	size_t names = 1;
	for (const char *s = appfilter_default; *s; s++)
		names += *s == ' ';
	assert_int_equal(names, 303);
	assert_null(strstr(appfilter_default, "io_uring"));
	cleanup_free char *hex = NULL;
	int64_t before = clock_monotonic_ns();
	assert_int_equal(compile(NULL, AGENT_CAPABILITIES_DEFAULT, &hex, NULL), 0);
	print_message("default filter: %zu instructions, compiled in %jd us\n",
		      strlen(hex) / 2 / sizeof(struct sock_filter),
		      (intmax_t)((clock_monotonic_ns() - before) / 1000));
	assert_true(strlen(hex) < 16384); /* a sixteenth of the frame that app.add is */
}

/* The largest set that a manifest may have fits into a program. */
static void test_largest(void **state)
{
	(void)state;
	cleanup_buf struct buf b;
	cleanup_free char *hex = NULL;
	struct err e = ERR_INIT;
	buf_init(&b, ISOLATOR_TEXT_MAX);
	assert_int_equal(buf_puts(&b, "mode=remove,errno=EPERM,"), 0);
	for (const char *const *w = isolators_wildcards + 2; *w; w++)
		assert_int_equal(buf_printf(&b, "%s%s", w > isolators_wildcards + 2 ? "," : "", *w),
				 0);
	cleanup_free char *text = buf_take_string(&b);
	assert_int_equal(compile(text, -1, &hex, &e), 0);
	assert_true(strlen(hex) <= AGENT_SECCOMP_MAX);
}

static int compile_once(void *ctx)
{
	(void)ctx;
	cleanup_free char *hex = NULL;
	return appfilter_compile_off(&hex, NULL);
}

/* Without libseccomp, which loses memory when it is short. */
static void test_short_of_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(compile_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_always),
#if defined(__x86_64__)
		fixture_test(test_other_architecture),
#endif
		fixture_test(test_default),
		fixture_test(test_default_with_errno),
		fixture_test(test_device_nodes),
		fixture_test(test_retain),
		fixture_test(test_remove),
		fixture_test(test_off),
		fixture_test(test_unknown_names),
		fixture_test(test_lists),
		fixture_test(test_size_of_default),
		fixture_test(test_largest),
		fixture_test(test_short_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
