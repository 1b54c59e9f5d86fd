/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

static mode_t mode_of(int dirfd, const char *name)
{
	struct stat st;
	assert_int_equal(fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

/* The data directory itself: who may write in it. */
static void test_modes(void **state)
{
	static const struct {
		mode_t mode;
		int result;
		mode_t after;
	} cases[] = {
		{ 0700, 0, 0700 },        { 0750, 0, 0750 },      { 0755, 0, 0755 },
		{ 02750, 0, 02750 }, /* set-group-ID is inherited: that alone means nothing */
		{ 03770, 0, 03770 },      { 02770, 0, 03770 },    { 0770, -EPERM, 0770 },
		{ 01770, -EPERM, 01770 }, { 0777, -EPERM, 0777 }, { 01777, -EPERM, 01777 },
		{ 03777, -EPERM, 03777 }, { 0702, -EPERM, 0702 },
	};
	int dir = fixture_dir(state);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err e = ERR_INIT;
		assert_int_equal(fchmod(dir, cases[i].mode), 0);
		assert_int_equal(datadir_check(dir, "/data", &e), cases[i].result);
		assert_int_equal(mode_of(dir, "."), cases[i].after);
		assert_true(cases[i].result == 0 || strstr(e.text, "(chmod "));
	}
}

static int check_as_member(void **state, void *ctx)
{
	struct err e = ERR_INIT;
	return datadir_check(fixture_dir(state), "/data", &e) != *(int *)ctx;
}

static void test_owner(void **state)
{
	int fine = 0, refused = -EPERM;
	int dir = fixture_dir(state);
	struct err e = ERR_INIT;
	if (!share_store(state))
		return;
	run_as_member(state, check_as_member, &fine);
	/* He cannot mend it. */
	assert_int_equal(fchmod(dir, 02770), 0);
	run_as_member(state, check_as_member, &refused);
	/* Root's may be looked at. */
	assert_int_equal(fchmod(dir, 0755), 0);
	run_as_member(state, check_as_member, &fine);
	/* Neither root nor anybody else takes a third's, but they may share it. */
	assert_int_equal(fchown(dir, MEMBER_UID + 1, GROUP_GID), 0);
	run_as_member(state, check_as_member, &refused);
	assert_int_equal(datadir_check(dir, "/data", &e), -EPERM);
	assert_non_null(strstr(e.text, "belongs to user"));
	assert_int_equal(fchmod(dir, 03770), 0);
	run_as_member(state, check_as_member, &fine);
	assert_int_equal(datadir_check(dir, "/data", &e), 0);
}

static int open_part(int dir, const char *name, mode_t shared_mode, struct err *e)
{
	struct datadir d;
	*e = ERR_INIT;
	assert_int_equal(datadir_read(dir, &d), 0);
	cleanup_fd int fd = datadir_open(&d, dir, name, name, true, shared_mode, e);
	return MIN(fd, 0);
}

static void test_made(void **state)
{
	struct err e;
	struct datadir d;
	int dir = fixture_dir(state);
	umask(077);
	assert_int_equal(open_part(dir, "private", DATADIR_GROUP_WRITES, &e), 0);
	umask(022);
	assert_int_equal(mode_of(dir, "private"), 0700);
	assert_int_equal(datadir_read(dir, &d), 0);
	assert_int_equal(datadir_open(&d, dir, "none", "none", false, 0, &e), -ENOENT);
	assert_int_equal(e.code, 0);
	if (!share_store(state))
		return;
	umask(077);
	assert_int_equal(open_part(dir, "reads", DATADIR_GROUP_READS, &e), 0);
	assert_int_equal(open_part(dir, "adds", DATADIR_GROUP_ADDS, &e), 0);
	assert_int_equal(open_part(dir, "writes", DATADIR_GROUP_WRITES, &e), 0);
	umask(022);
	assert_int_equal(mode_of(dir, "reads"), 02750);
	assert_int_equal(mode_of(dir, "adds"), 03770);
	assert_int_equal(mode_of(dir, "writes"), 02770);
}

/* A part that others can change, or somebody else has put there. */
static void test_parts(void **state)
{
	static const struct {
		mode_t is, wanted;
		int result;
	} cases[] = {
		{ 02750, DATADIR_GROUP_READS, 0 },       { 02770, DATADIR_GROUP_READS, -EPERM },
		{ 03770, DATADIR_GROUP_READS, -EPERM },  { 03770, DATADIR_GROUP_ADDS, 0 },
		{ 02770, DATADIR_GROUP_ADDS, -EPERM },   { 02770, DATADIR_GROUP_WRITES, 0 },
		{ 02777, DATADIR_GROUP_WRITES, -EPERM }, { 03777, DATADIR_GROUP_ADDS, -EPERM },
	};
	struct err e;
	int dir = fixture_dir(state);
	if (!share_store(state))
		return;
	assert_int_equal(open_part(dir, "part", DATADIR_GROUP_READS, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(fchmodat(dir, "part", cases[i].is, 0), 0);
		assert_int_equal(open_part(dir, "part", cases[i].wanted, &e), cases[i].result);
		assert_true(cases[i].result == 0 || strstr(e.text, "chmod"));
	}
	/* What a group may in a shared one it may not in another. */
	assert_int_equal(fchmod(dir, 0755), 0);
	assert_int_equal(fchmodat(dir, "part", 02770, 0), 0);
	assert_int_equal(open_part(dir, "part", DATADIR_GROUP_WRITES, &e), -EPERM);
	assert_int_equal(fchmodat(dir, "part", 0700, 0), 0);
	assert_int_equal(open_part(dir, "part", DATADIR_GROUP_WRITES, &e), 0);
	assert_int_equal(fchownat(dir, "part", MEMBER_UID, GROUP_GID, 0), 0);
	assert_int_equal(open_part(dir, "part", DATADIR_GROUP_WRITES, &e), -EPERM);
	assert_non_null(strstr(e.text, "belongs to user"));
	assert_int_equal(symlinkat("part", dir, "link"), 0);
	assert_true(open_part(dir, "link", DATADIR_GROUP_READS, &e) < 0);
}

static int make_as_member(void **state, void *ctx)
{
	struct err e;
	(void)ctx;
	return open_part(fixture_dir(state), "part", DATADIR_GROUP_WRITES, &e) != -EACCES ||
	       !strstr(e.text, "has to use it first");
}

static int open_as_member(void **state, void *ctx)
{
	struct err e;
	(void)ctx;
	return open_part(fixture_dir(state), "part", DATADIR_GROUP_WRITES, &e);
}

/* Whoever makes a part has it, so members do not. */
static void test_member(void **state)
{
	struct err e;
	if (!share_store(state))
		return;
	run_as_member(state, make_as_member, NULL);
	assert_int_equal(open_part(fixture_dir(state), "part", DATADIR_GROUP_WRITES, &e), 0);
	run_as_member(state, open_as_member, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_modes), fixture_test(test_owner),  fixture_test(test_made),
		fixture_test(test_parts), fixture_test(test_member),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
