/* SPDX-License-Identifier: Apache-2.0 */
/* File systems of apps, from directories for disks, in a mount namespace of the test's own. */
#include "guest-agent/app/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static char base[256], run_dir[300], disk_dir[300];
static const struct rootfs_config config = { .run_dir = run_dir, .disk_dir = disk_dir };
static struct fault fault;

static const char *in(const char *name)
{
	static char path[2][512];
	static unsigned next;
	char *p = path[next++ % 2];
	snprintf(p, sizeof(path[0]), "%s/%s", base, name);
	return p;
}

static void put(const char *name, const char *text, size_t len)
{
	cleanup_fd int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, len), 0);
}

static const char *get(const char *name)
{
	static char text[1024];
	size_t len = 0;
	cleanup_fd int fd = open(in(name), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

static bool is_there(const char *name)
{
	return access(in(name), F_OK) == 0;
}

/* A tmpfs, which has all the attributes that an image can have, and in it an image as disk 1. */
static int begin(void **state)
{
	static const char *const dirs[] = { "run", "run/apps", "disks", "image", "image/etc" };
	if (fixture_setup(state) != 0)
		return -1;
	fault = (struct fault){ 0 };
	snprintf(base, sizeof(base), "%s", fixture_path(state));
	snprintf(run_dir, sizeof(run_dir), "%s/run", base);
	snprintf(disk_dir, sizeof(disk_dir), "%s/disks", base);
	if (mount("tmpfs", base, "tmpfs", 0, NULL) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		mkdir(in(dirs[i]), 0755);
	put("image/etc/passwd", "bob:x:1000:1001::/:\n", 20);
	put("image/file", "image", 5);
	return symlink("../image", in("disks/1")) + rootfs_mount_scratch(&config, -1, &fault);
}

static int end(void **state)
{
	umount2(base, MNT_DETACH);
	return fixture_teardown(state);
}

static struct rootfs_names etc = { .hostname = "host" };

static void add(const char *app)
{
	if (rootfs_mount_app(&config, app, 1, &etc, &fault) != 0)
		fail_msg("%s", fault.text);
}

static void test_merged(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(chown(in("image"), 7, 8), 0);
	assert_int_equal(chmod(in("image"), 02710), 0);
	add("a");
	assert_string_equal(get("run/apps/a/root/file"), "image");
	assert_string_equal(get("run/apps/a/root/etc/hostname"), "host\n");
	assert_non_null(
		strstr(get("run/apps/a/root/etc/hosts"), " localhost4.localdomain4 host\n"));
	assert_int_equal(stat(in("run/apps/a/root/tmp"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01777);
	assert_int_equal(stat(in("run/apps/a/root"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 02710);
	assert_int_equal(st.st_uid, 7);
	assert_int_equal(st.st_gid, 8);
	put("run/apps/a/root/file", "changed", 7);
	assert_string_equal(get("image/file"), "image");
	assert_string_equal(get("run/scratch/a/upper/file"), "changed");
	rootfs_discard_app(&config, "a");
}

/*
 * What would tell the overlay something is for us to say: an image could hide what is below, or
 * name another place.
 */
static void test_overlay_attributes_of_image(void **state)
{
	(void)state;
	static const char *const names[] = { "trusted.overlay.opaque", "trusted.overlay.redirect",
					     "trusted.overlay.metacopy" };
	char value[16];
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(setxattr(in("image"), names[i], "y", 1, 0), 0);
		assert_int_equal(setxattr(in("image/etc"), names[i], "y", 1, 0), 0);
	}
	assert_int_equal(setxattr(in("image"), "trusted.other", "x", 1, 0), 0);
	assert_int_equal(setxattr(in("image/etc"), "trusted.other", "x", 1, 0), 0);
	add("a");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(getxattr(in("run/scratch/a/upper"), names[i], value, 16) < 0);
		assert_int_equal(errno, ENODATA);
		assert_true(getxattr(in("run/apps/a/extra/etc"), names[i], value, 16) < 0);
		assert_int_equal(errno, ENODATA);
	}
	assert_int_equal(getxattr(in("run/scratch/a/upper"), "trusted.other", value, 16), 1);
	assert_int_equal(getxattr(in("run/apps/a/extra/etc"), "trusted.other", value, 16), 1);
	assert_string_equal(get("run/apps/a/root/file"), "image");
	rootfs_discard_app(&config, "a");
}

static void test_not_an_image(void **state)
{
	(void)state;
	put("disks/2", "text", 4);
	assert_int_equal(rootfs_mount_app(&config, "a", 2, &etc, &fault), FAULT_SET);
	assert_int_equal(fault.code, AGENT_E_DISK);
	rootfs_discard_app(&config, "a");
	assert_false(is_there("run/apps/a") || is_there("run/scratch/a"));
}

static int resolve(const char *user, struct ids *ret)
{
	fault = (struct fault){ 0 };
	return rootfs_resolve_ids(&config, "a", user, "", ret, &fault);
}

static void expect_no_user(const char *words)
{
	struct ids ids;
	assert_int_equal(resolve("bob", &ids), FAULT_SET);
	assert_int_equal(fault.code, AGENT_E_USER);
	if (!strstr(fault.text, words))
		fail_msg("%s", fault.text);
}

/*
 * The files of users are the image's: links stay in there, and what is not a file is not waited
 * for.
 */
static void test_users(void **state)
{
	(void)state;
	struct ids ids;
	static char large[IDS_FILE_MAX + 2];
	add("a");
	assert_int_equal(resolve("bob", &ids), 0);
	assert_int_equal(ids.uid, 1000);
	assert_int_equal(resolve("/file", &ids), 0);
	assert_int_equal(ids.uid, 0);
	assert_int_equal(resolve("/proc/self/root", &ids), FAULT_SET);

	const char *passwd = "run/apps/a/root/etc/passwd";
	unlink(in(passwd));
	put("secret", "bob:x:7:8::/:\n", 14);
	assert_int_equal(symlink("../../../../../../../../../secret", in(passwd)), 0);
	expect_no_user("not found");
	unlink(in(passwd));
	assert_int_equal(mkfifo(in(passwd), 0644), 0);
	expect_no_user("no regular file of at most 1048576 bytes");
	unlink(in(passwd));
	memset(large, '\n', sizeof(large));
	put(passwd, large, IDS_FILE_MAX);
	expect_no_user("not found");
	put(passwd, large, IDS_FILE_MAX + 1);
	expect_no_user("no regular file of at most 1048576 bytes");
	/* User 0 needs none of it. */
	assert_int_equal(resolve("0", &ids), 0);
	assert_int_equal(resolve("", &ids), 0);
	rootfs_discard_app(&config, "a");
}

static void test_remove(void **state)
{
	(void)state;
	add("a");
	add("b");
	put("run/apps/a/root/new", "x", 1);
	put("run/apps/b/root/new", "x", 1);
	assert_int_equal(rootfs_remove_app(&config, "a", 1, &fault), 0);
	assert_false(is_there("run/apps/a") || is_there("run/scratch/a"));
	assert_string_equal(get("run/apps/b/root/new"), "x");
	assert_string_equal(get("image/file"), "image");
	add("a"); /* as if it had never been there */
	assert_false(is_there("run/apps/a/root/new"));
	rootfs_unmount_root(&config, "a");
	assert_false(is_there("run/apps/a/root/file"));
	assert_true(is_there("run/apps/a/lower/file"));
	rootfs_discard_app(&config, "a");
	rootfs_discard_app(&config, "b");
	assert_int_equal(rootfs_seal_scratch(&config), 0); /* the host's: nothing to do */
	assert_int_equal(rootfs_unmount_scratch(&config, &fault), 0);
	assert_false(is_there("run/scratch/b"));
	assert_int_equal(rootfs_unmount_scratch(&config, &fault), 0); /* there is none */
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		puts("SKIP: mounts need root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		TEST(test_merged),       TEST(test_overlay_attributes_of_image),
		TEST(test_not_an_image), TEST(test_users),
		TEST(test_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
