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
#include "lib/os/file.h"
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

static int read_inside(void *ctx, struct err *e)
{
	char *text = NULL;
	size_t len;
	(void)ctx;
	(void)e;
	int r = file_read_path("/proc/sys/net/core/somaxconn", 64, &text, &len);
	r = r == 0 ? atoi(text) : r;
	free(text);
	return r;
}

/* What a network has for itself is set there, and nowhere else; the rest is left to the pod. */
static void test_sysctls(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	cleanup_strv struct strv list;
	need_root();
	strv_init(&list, 3);
	int here = read_inside(NULL, &e);
	cleanup_fd int fd = netns_make(&e);
	assert_true(fd >= 0);
	assert_int_equal(netns_take_sysctls(fd, &list, &e), 0);
	assert_int_equal(strv_add(&list, "kernel.msgmax=9000"), 0);
	assert_int_equal(strv_add(&list, "net/core/somaxconn=78"), 0);
	assert_int_equal(strv_add(&list, "net.core.somaxconn=79"), 0);
	assert_int_equal(netns_take_sysctls(fd, &list, &e), 0);
	assert_int_equal(list.n, 1);
	assert_string_equal(list.v[0], "kernel.msgmax=9000");
	assert_int_equal(netns_call(fd, read_inside, NULL, &e), 79);
	assert_int_equal(read_inside(NULL, &e), here);
	assert_int_equal(strv_add(&list, "net.core.nothing=1"), 0);
	assert_int_equal(netns_take_sysctls(fd, &list, &e), -ENOENT);
	assert_string_equal(e.text, "sysctl \"net.core.nothing\": the pod has none of that name");
	assert_int_equal(list.n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_life),
		fixture_test(test_other_files),
		fixture_test(test_remnant),
		fixture_test(test_sysctls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
