/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces with names, as ip-netns(8) sees them. Needs root. */
#include "stage1/net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define UUID "12345678-1234-4234-8234-1234567890ff"

static int count_interfaces(void *ctx, struct err *e)
{
	struct if_nameindex *all = if_nameindex();
	(void)ctx;
	(void)e;
	int n = 0;
	for (; all && all[n].if_index; n++)
		;
	if_freenameindex(all);
	return n;
}

static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void test_life(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	struct stat before, there, after;
	need_root();
	netns_path(UUID, path);
	assert_string_equal(path, "/run/netns/husk-" UUID);
	assert_int_equal(stat("/proc/self/ns/net", &before), 0);
	cleanup_fd int fd = netns_make(&e);
	assert_true(fd >= 0);
	assert_false(netns_is_own(fd));
	cleanup_fd int own = netns_open("/proc/self/ns/net", &e);
	assert_true(netns_is_own(own));
	assert_int_equal(netns_call(fd, count_interfaces, NULL, &e), 1);
	assert_int_equal(stat("/proc/self/ns/net", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino); /* we are back */
	assert_false(netns_exists(path));
	assert_int_equal(netns_name(fd, path, &e), 0);
	assert_int_equal(netns_name(fd, path, &e), -EEXIST);
	assert_true(netns_exists(path));
	cleanup_fd int again = netns_open(path, &e);
	assert_true(again >= 0);
	assert_int_equal(fstat(fd, &there), 0);
	assert_int_equal(fstat(again, &after), 0);
	assert_int_equal(there.st_ino, after.st_ino);
	assert_int_equal(system("ip netns list | grep -q " UUID), 0); /* NOLINT(cert-env33-c) */
	assert_int_equal(netns_forget(path, &e), 0);
	assert_int_equal(netns_forget(path, &e), 0);
	assert_false(netns_exists(path));
}

/* What a user names need not be one. */
static void test_other_files(void **state)
{
	struct err e = ERR_INIT;
	static const char *const others[] = {
		"/proc/self/ns/uts", "/proc/self/ns/mnt", "/etc/passwd", "/dev/null", "/",
		"/nonexistent"
	};
	need_root();
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(netns_open(others[i], &e) < 0);
		assert_non_null(strstr(e.text, others[i]));
	}
	assert_int_equal(mkfifoat(fixture_dir(state), "fifo", 0600), 0);
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_true(netns_open("fifo", &e) < 0); /* and nobody waits for a writer */
}

/* After a reboot the file may be there, and nothing is mounted on it. */
static void test_remnant(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	need_root();
	netns_path(UUID, path);
	mkdir(NETNS_DIR, 0755);
	fd_close(open(path, O_CREAT | O_WRONLY, 0));
	assert_false(netns_exists(path));
	assert_int_equal(netns_forget(path, &e), 0);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_life),
		fixture_test(test_other_files),
		fixture_test(test_remnant),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
