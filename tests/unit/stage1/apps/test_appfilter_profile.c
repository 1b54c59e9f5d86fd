/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of the OCI specification are compiled and installed for real, as sets are. */
#include "stage1/apps/appfilter_profile.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "stage1/apps/appfilter.h"
#include "tests/support/fixture.h"
#include "tests/unit/stage1/apps/filtered.h"

#define TEXT_MAX (ISOLATOR_PROFILE_MAX + 1)

static int compile(const char *profile, char **ret, struct err *e)
{
	CLEANUP(isolators_deinit) struct isolators i;
	isolators_init(&i);
	*ret = NULL;
	int r = isolators_set(&i, ISOLATOR_SECCOMP_PROFILE, profile, e);
	return r < 0 ? r : appfilter_compile(&i, 0, ret, e);
}

static char *make(const char *profile)
{
	struct err e = ERR_INIT;
	char *hex = NULL;
	if (compile(profile, &hex, &e) < 0)
		fail_msg("%s: %s", profile, e.text);
	return hex;
}

static void refuse(const char *profile, int code, const char *want)
{
	cleanup_free char *hex = NULL;
	struct err e = ERR_INIT;
	int r = compile(profile, &hex, &e);
	if (r != code || !strstr(e.text, want))
		fail_msg("%.200s: %d \"%s\" instead of %d \"%s\"", profile, r, e.text, code, want);
}

static int try_call(const char *hex, long number, long a)
{
	return filtered_call(hex, number, a, 0, 0, 0);
}

/* What keeps an app from the agent, and what it needs, is the same whatever a profile says. */
static void check_always(const char *hex)
{
	assert_int_equal(filtered_call(hex, SYS_socket, AF_VSOCK, SOCK_STREAM, 0, 0), EAFNOSUPPORT);
	assert_int_equal(try_call(hex, SYS_io_uring_setup, 1), ENOSYS);
	assert_int_equal(try_call(hex, SYS_execve, 1), EFAULT);
	assert_int_equal(try_call(hex, SYS_capset, 1), EFAULT);
	assert_int_equal(try_call(hex, SYS_write, -1), EBADF);
	assert_int_equal(try_call(hex, 0x40000000L | SYS_getpid, 0), ENOSYS);
}

static void test_remove(void **state)
{
	(void)state;
	cleanup_free char *hex =
		make("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":"
		     "[\"chdir\",\"no_such_call\",\"execve\",\"write\",\"capset\"],"
		     "\"action\":\"SCMP_ACT_ERRNO\"},{\"names\":[\"chroot\"],"
		     "\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":38},{\"names\":"
		     "[\"sync\"],\"action\":\"SCMP_ACT_KILL_PROCESS\"}]}");
	check_always(hex);
	assert_int_equal(try_call(hex, SYS_chdir, 1), EPERM);
	assert_int_equal(try_call(hex, SYS_chroot, 1), ENOSYS);
	assert_int_equal(try_call(hex, SYS_sync, 0), -SIGSYS);
	assert_int_equal(try_call(hex, SYS_getpid, 0), 0);
	assert_int_equal(try_call(hex, SYS_mkdir, 1), EFAULT);
	assert_int_equal(filtered_call(hex, SYS_mknod, 1, S_IFBLK | 0600, 0x700, 0), EPERM);
}

/* Where all else is refused, younger calls than those that are named are not there. */
static void test_retain(void **state)
{
	(void)state;
	cleanup_free char *hex = make("{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":1,"
				      "\"architectures\":[\"SCMP_ARCH_X86_64\",\"SCMP_ARCH_X86\"],"
				      "\"flags\":[\"SECCOMP_FILTER_FLAG_LOG\"],\"syscalls\":[{"
				      "\"names\":[\"getpid\",\"statx\",\"execve\"],"
				      "\"action\":\"SCMP_ACT_ALLOW\"}]}");
	check_always(hex);
	assert_int_equal(try_call(hex, SYS_getpid, 0), 0);
	assert_int_equal(try_call(hex, SYS_getuid, 0), EPERM);
	assert_int_equal(try_call(hex, SYS_statx + 1, 0), ENOSYS);
	cleanup_free char *none =
		make("{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":38}");
	check_always(none);
	assert_int_equal(try_call(none, SYS_getpid, 0), ENOSYS);
	/* Whoever looks on sees them, and what is always allowed, too. */
	cleanup_free char *traced =
		make("{\"defaultAction\":\"SCMP_ACT_TRACE\",\"defaultErrnoRet\":7}");
	check_always(traced);
	cleanup_free char *logged = make("{\"defaultAction\":\"SCMP_ACT_LOG\"}");
	check_always(logged);
	assert_int_equal(try_call(logged, SYS_mkdir, 1), EFAULT);
	cleanup_free char *killer = make("{\"defaultAction\":\"SCMP_ACT_KILL\"}");
	check_always(killer);
	assert_int_equal(try_call(killer, SYS_getpid, 0), -SIGSYS);
}

#define BY_PERSONALITY(args)                                                                           \
	"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"personality\"],\"action\":" \
	"\"SCMP_ACT_ALLOW\",\"args\":[" args "]}]}"

static int try_personality(const char *profile, unsigned long value)
{
	cleanup_free char *hex = make(profile);
	return try_call(hex, SYS_personality, (long)value);
}

static void test_conditions(void **state)
{
	static const struct {
		const char *profile;
		unsigned long value;
		int want;
	} cases[] = {
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_EQ\"}"), 8, 0 },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_EQ\"}"), 9, EPERM },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_NE\"}"), 8, EPERM },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_LT\"}"), 8, EPERM },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_LE\"}"), 8, 0 },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_GT\"}"), 8, EPERM },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_GE\"}"), 8, 0 },
		{ BY_PERSONALITY("{\"index\":0,\"value\":12,\"valueTwo\":8,"
				 "\"op\":\"SCMP_CMP_MASKED_EQ\"}"),
		  0x20008, 0 },
		{ BY_PERSONALITY("{\"index\":0,\"value\":12,\"valueTwo\":8,"
				 "\"op\":\"SCMP_CMP_MASKED_EQ\"}"),
		  4, EPERM },
		/* All 64 bits are compared. */
		{ BY_PERSONALITY("{\"index\":0,\"value\":18446744073709551615,"
				 "\"op\":\"SCMP_CMP_EQ\"}"),
		  ~0UL, 0 },
		/* Of the same argument one is enough; of others all are needed. */
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_EQ\"},"
				 "{\"index\":0,\"value\":0,\"op\":\"SCMP_CMP_EQ\"}"),
		  0, 0 },
		{ BY_PERSONALITY("{\"index\":0,\"value\":8,\"op\":\"SCMP_CMP_EQ\"},"
				 "{\"index\":1,\"value\":7,\"op\":\"SCMP_CMP_EQ\"}"),
		  8, EPERM },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (try_personality(cases[i].profile, cases[i].value) != cases[i].want)
			fail_msg("%s", cases[i].profile);
}

#define RULE(members) "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{" members "}]}"
#define ARGS(args)    RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":" args)

static void test_wrong(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"flags\":[]}", "\"defaultAction\" is not an action" },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[7]}", "is not an object" },
		{ "{\"defaultAction\":\"ALLOW\"}", "there is no action \"ALLOW\"" },
		{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":4096}",
		  "\"defaultErrnoRet\" is not an errno" },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":{}}",
		  "\"syscalls\" is not a list" },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"flags\":{}}",
		  "\"flags\" is not a list" },
		{ RULE(""), "\"names\" is not a list" },
		{ RULE("\"names\":[7],\"action\":\"SCMP_ACT_ALLOW\""), "\"names\" is not a list" },
		{ RULE("\"names\":[\"read\"]"), "\"action\" is not an action" },
		{ ARGS("7"), "\"args\" is not a list" },
		{ ARGS("[{}]"), "\"index\" is not the number" },
		{ ARGS("[{\"index\":6}]"), "\"index\" is not the number" },
		{ ARGS("[{\"index\":0}]"), "\"op\" is not a comparison" },
		{ ARGS("[{\"index\":0,\"op\":\"SCMP_CMP_IN\"}]"), "no comparison \"SCMP_CMP_IN\"" },
		{ ARGS("[{\"index\":0,\"op\":\"SCMP_CMP_EQ\",\"value\":-1}]"), "\"value\" is not" },
		{ ARGS("[{\"index\":0,\"op\":\"SCMP_CMP_EQ\",\"valueTwo\":\"1\"}]"),
		  "\"valueTwo\" is not" },
	};
	static const char *const impossible[][2] = {
		{ "{\"defaultAction\":\"SCMP_ACT_NOTIFY\"}", "nobody can be asked" },
		{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"archMap\":[]}",
		  "\"archMap\" is no member" },
		{ RULE("\"names\":[\"mount\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":{\"minKernel\":\"99\"}"),
		  "\"includes\" is no member of an OCI profile (give one in that format" },
		{ ARGS("[{\"index\":0,\"op\":\"SCMP_CMP_EQ\",\"x\":1}]"), "\"x\" is no member" },
		{ RULE("\"names\":[\"read\"],\"action\":\"SCMP_ACT_NOTIFY\""),
		  "nobody can be asked" },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"listenerPath\":\"/x\"}",
		  "\"listenerPath\"" },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"flags\":[\"SECCOMP_FILTER_FLAG_WAIT\"]}",
		  "flag \"SECCOMP_FILTER_FLAG_WAIT\" is not supported" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuse(cases[i][0], -EINVAL, cases[i][1]);
	for (size_t i = 0; i < ARRAY_SIZE(impossible); i++)
		refuse(impossible[i][0], -EOPNOTSUPP, impossible[i][1]);
}

/* @n rules that are the same. */
static char *many(size_t n)
{
	struct buf b;
	buf_init(&b, TEXT_MAX);
	assert_int_equal(buf_puts(&b, "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":["), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(&b,
					    "%s{\"names\":[\"sync\"],\"action\":\"SCMP_ACT_LOG\"}",
					    i > 0 ? "," : ""),
				 0);
	assert_int_equal(buf_puts(&b, "]}"), 0);
	return buf_take_string(&b);
}

/* For each of so many calls so many rules, each with different conditions. */
static char *conditional(size_t n_calls, size_t n_rules, size_t n_conditions)
{
	static const char *const names[] = { "ioctl", "sync",  "fcntl", "mmap", "read", "futex",
					     "kill",  "prctl", "open",  "dup",  "pipe" };
	struct buf b;
	buf_init(&b, TEXT_MAX);
	assert_int_equal(buf_puts(&b, "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":["), 0);
	for (size_t i = 0; i < n_calls * n_rules; i++) {
		assert_int_equal(buf_printf(&b,
					    "%s{\"names\":[\"%s\"],\"action\":\"SCMP_ACT_ALLOW\","
					    "\"args\":[",
					    i > 0 ? "," : "", names[i / n_rules]),
				 0);
		for (size_t k = 0; k < n_conditions; k++)
			assert_int_equal(
				buf_printf(&b,
					   "%s{\"index\":%zu,\"op\":\"SCMP_CMP_EQ\",\"value\":%zu}",
					   k > 0 ? "," : "", k, i * 7919 + k),
				0);
		assert_int_equal(buf_puts(&b, "]}"), 0);
	}
	assert_int_equal(buf_puts(&b, "]}"), 0);
	return buf_take_string(&b);
}

static void test_limits(void **state)
{
	(void)state;
	cleanup_free char *most = many(APPFILTER_PROFILE_RULES_MAX);
	cleanup_free char *more = many(APPFILTER_PROFILE_RULES_MAX + 1);
	cleanup_free char *hex = make(most);
	assert_int_equal(try_call(hex, SYS_sync, 0), 0);
	refuse(more, -E2BIG, "more than 4096 rules");
	cleanup_free char *most_of_one = conditional(1, APPFILTER_PROFILE_CONDITIONAL_MAX, 6);
	cleanup_free char *more_of_one = conditional(1, APPFILTER_PROFILE_CONDITIONAL_MAX + 1, 6);
	cleanup_free char *of_one = make(most_of_one);
	assert_int_equal(try_call(of_one, SYS_sync, 0), EPERM);
	refuse(more_of_one, -E2BIG, "more than 24 rules with conditions for one call");
	cleanup_free char *most_conditions = conditional(8, 16, 2);
	cleanup_free char *more_conditions = conditional(9, 16, 2);
	cleanup_free char *conditions = make(most_conditions);
	assert_int_equal(
		filtered_call(conditions, SYS_sync, (long)16 * 7919, (long)16 * 7919 + 1, 0, 0), 0);
	assert_int_equal(
		filtered_call(conditions, SYS_sync, (long)16 * 7919, (long)15 * 7919 + 1, 0, 0),
		EPERM);
	refuse(more_conditions, -E2BIG, "more than 256 conditions");
	refuse(ARGS("[{\"index\":0,\"op\":\"SCMP_CMP_EQ\"},{\"index\":1,\"op\":\"SCMP_CMP_EQ\"},"
		    "{\"index\":2,\"op\":\"SCMP_CMP_EQ\"},{\"index\":3,\"op\":\"SCMP_CMP_EQ\"},"
		    "{\"index\":4,\"op\":\"SCMP_CMP_EQ\"},{\"index\":5,\"op\":\"SCMP_CMP_EQ\"},"
		    "{\"index\":5,\"op\":\"SCMP_CMP_EQ\"}]"),
	       -E2BIG, "\"args\" has 7 members");
}

/* {} is no filter: but for what keeps an app from the agent. */
static void test_off(void **state)
{
	(void)state;
	cleanup_free char *hex = make("{}");
	check_always(hex);
	assert_int_equal(filtered_call(hex, SYS_mknod, 1, S_IFBLK | 0600, 0x700, 0), EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remove),     cmocka_unit_test(test_retain),
		cmocka_unit_test(test_conditions), cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_limits),     cmocka_unit_test(test_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
