/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define NOBODYS_ID  65533 /* of no user, and so without subordinate ids */
#define HANGS_AFTER 120   /* seconds */

static int find(const char *text, uint32_t *ret)
{
	return userns_find_range(text, strlen(text), "bob", 1001, ret);
}

static void test_ranges(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint32_t first;
	} cases[] = {
		{ "bob:100000:65536\n", 0, 100000 },
		{ "bob:100000:65536", 0, 100000 },
		{ "alice:1:65536\nbob:2:65535\nbob:3:65536\n", 0, 2 },
		{ "1001:7:100000\n", 0, 7 },
		{ "bob:4294901760:65535\n", 0, 4294901760U },
		{ "bob:4294901761:65535\n", -ENOENT, 0 },
		{ "bob:100000:65534\n", -ENOENT, 0 },
		{ "bobby:1:65536\nrobbob:1:65536\n", -ENOENT, 0 },
		{ "bob:-1:65536\nbob:1\nbob\n\n:::\nbob:1:x\nbob:1:65536:9\n", -ENOENT, 0 },
		{ "# bob:1:65536\nbob: 1:65536\n", -ENOENT, 0 },
		{ "", -ENOENT, 0 },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t first = 0;
		assert_int_equal(find(cases[i].text, &first), cases[i].result);
		assert_int_equal(first, cases[i].first);
	}
}

/* A line at the limit of 255 bytes, and one byte longer; what follows is read all the same. */
static void test_long_lines(void **state)
{
	char text[512], zeros[257];
	uint32_t first = 0;
	(void)state;
	for (int over = 0; over < 2; over++) {
		memset(zeros, '0', sizeof(zeros));
		zeros[255 - strlen("bob:5:65536") + (size_t)over] = '\0';
		snprintf(text, sizeof(text), "bob:%s5:65536\nbob:6:65536\n", zeros);
		assert_int_equal(find(text, &first), 0);
		assert_int_equal(first, over ? 6 : 5);
	}
}

static void test_base(void **state)
{
	(void)state;
	assert_int_equal(userns_base("00000000-0000-4000-8000-000000000000"), 0x70000000);
	assert_int_equal(userns_base("0eff0000-0000-4000-8000-000000000000"), 0x7eff0000);
	assert_int_equal(userns_base("0f000000-0000-4000-8000-000000000000"), 0x70000000);
	assert_int_equal(userns_base("ffffffff-0000-4000-8000-000000000000"), 0x70ff0000);
	assert_int_equal(userns_single_id("00000000-0000-4000-8000-000000000000"), 0x7f000000);
	assert_int_equal(userns_single_id("fdffff00-0000-4000-8000-000000000000"), 0x7ffdffff);
	assert_int_equal(userns_single_id("fe000000-0000-4000-8000-000000000000"), 0x7f000000);
	assert_int_equal(userns_single_id("ffffffff-0000-4000-8000-000000000000"), 0x7f01ffff);
}

static int look_around(void *ctx)
{
	cleanup_fd int fd = open(ctx, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || getuid() != 0 || getgid() != 0 || getgroups(0, NULL) != 0)
		return -EPERM;
	return fchown(fd, 1000, 65535) < 0 ? -errno : 0;
}

static int refuse(void *ctx)
{
	(void)ctx;
	return -EXDEV;
}

/*
 * Root there is root here if ids begin with 0, as they do for a call, but without the groups of who
 * calls: files that those may read are none of the pod's business.
 */
static void test_call(void **state)
{
	struct err e = ERR_INIT;
	struct stat st;
	char path[512];
	if (geteuid() != 0)
		skip();
	snprintf(path, sizeof(path), "%s/file", fixture_path(state));
	assert_int_equal(setgroups(1, &(gid_t){ 4242 }), 0);
	if (userns_call(look_around, path, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 1000);
	assert_int_equal(st.st_gid, 65535);
	assert_int_equal(userns_call(refuse, NULL, &e), -EXDEV);
	assert_int_equal(userns_check(&e), 0);
}

static int do_nothing(void *ctx)
{
	(void)ctx;
	return 0;
}

/* Exit codes tell what is wrong. */
static int call_without_ids(void)
{
	struct err e = ERR_INIT;
	alarm(HANGS_AFTER); /* whoever waits for its own child ends, and the child with it */
	if (setresuid(NOBODYS_ID, NOBODYS_ID, NOBODYS_ID) < 0)
		return 2;
	return userns_call(do_nothing, NULL, &e) == -EPERM ? 0 : 3;
}

/*
 * Whoever has no ids to map is told so: the process that is in the namespace already, and waits for
 * them, ends.
 */
static void test_call_without_ids(void **state)
{
	int status;
	(void)state;
	if (geteuid() != 0)
		skip();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(call_without_ids());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Nobody is in it, and it has ids: files can be shown by it. */
static void test_make(void **state)
{
	struct err e = ERR_INIT;
	struct stat own, st;
	(void)state;
	if (geteuid() != 0)
		skip();
	cleanup_fd int fd = userns_make(&e);
	if (fd < 0)
		fail_msg("%s", e.text);
	assert_int_equal(stat("/proc/self/ns/user", &own), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_ino != own.st_ino);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_ranges),
		fixture_test(test_long_lines),
		fixture_test(test_base),
		fixture_test(test_call),
		fixture_test(test_call_without_ids),
		fixture_test(test_make),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
