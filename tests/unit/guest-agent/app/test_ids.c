/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "broken line\n"
			     "noids:x:abc:def::/:\n"
			     "bob:x:1000:1001:Bob:/home/bob:/bin/sh\n"
			     "last:x:4294967294:7::/:";
static const char group[] = "root:x:0:\n"
			    "bob:x:1001:\n"
			    "wheel:x:10:root,bob\n"
			    "audio:x:29:bobby,alice\n"
			    "own:x:1001:bob\n"
			    "video:x:44:alice,bob";

static int owner(void *ctx, const char *path, uid_t *ret_uid, gid_t *ret_gid)
{
	(void)ctx;
	if (strcmp(path, "/bin/tool") != 0)
		return strcmp(path, "/locked") == 0 ? -EACCES : -ENOENT;
	*ret_uid = 77;
	*ret_gid = 78;
	return 0;
}

static struct ids ids;
static struct fault fault;

static int resolve(const char *user, const char *grp)
{
	const struct ids_source src = { passwd, strlen(passwd), group, strlen(group), owner, NULL };
	memset(&ids, 0xee, sizeof(ids));
	fault = (struct fault){ 0 };
	return ids_resolve(&src, user, grp, &ids, &fault);
}

static void expect(const char *user, const char *grp, uid_t uid, gid_t gid)
{
	assert_int_equal(resolve(user, grp), 0);
	assert_int_equal(ids.uid, uid);
	assert_int_equal(ids.gid, gid);
}

static void test_found(void **state)
{
	(void)state;
	expect("", "", 0, 0);
	expect("root", "", 0, 0);
	expect("bob", "", 1000, 1001);
	assert_int_equal(ids.n_groups, 2);
	assert_int_equal(ids.groups[0], 10);
	assert_int_equal(ids.groups[1], 44);
	expect("1000", "", 1000, 1001);
	assert_int_equal(ids.n_groups, 2);
	expect("4711", "", 4711, 0);
	assert_int_equal(ids.n_groups, 0);
	expect("bob", "wheel", 1000, 10);
	expect("bob:audio", "", 1000, 29);
	expect("bob:29", "", 1000, 29);
	expect("bob:", "", 1000, 1001);
	expect(":wheel", "", 0, 10);
	expect("last", "", 4294967294U, 7);
	expect("4294967294", "4294967294", 4294967294U, 4294967294U);
	expect("/bin/tool", "/bin/tool", 77, 78);
	expect("/bin/tool", "", 77, 0);
}

/* With a group that is said, in whatever way, those of the user do not count. */
static void test_group_said(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{ "bob", "bob" },    { "bob", "1001" }, { "bob:wheel", "" },
		{ "1000:1001", "" }, { "1000", "0" },   { "bob", "/bin/tool" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(resolve(pairs[i][0], pairs[i][1]), 0);
		assert_int_equal(ids.uid, 1000);
		assert_int_equal(ids.n_groups, 0);
	}
	expect("bob:", "", 1000, 1001); /* says none */
	assert_int_equal(ids.n_groups, 2);
}

static void expect_home(const char *line, size_t len, const char *name, const char *home)
{
	const struct ids_source src = { .passwd = line, .passwd_len = len };
	memset(&ids, 0xee, sizeof(ids));
	assert_int_equal(ids_resolve(&src, "1000", "", &ids, &fault), 0);
	assert_string_equal(ids.name, name);
	assert_string_equal(ids.home, home);
}

#define EXPECT_HOME(line, name, home) expect_home(line, sizeof(line) - 1, name, home)

static void test_name_and_home(void **state)
{
	(void)state;
	static char text[AGENT_PATH_MAX + 64];
	EXPECT_HOME("bob:x:1000:1001:Bob:/home/bob:/bin/sh\n", "bob", "/home/bob");
	EXPECT_HOME("bob:x:1000:1001:Bob:/home/bob", "bob", "/home/bob");
	EXPECT_HOME("bob:x:1000:1001", "bob", "");
	EXPECT_HOME("bob:x:1000:1001:Bob:home/bob:/bin/sh\n", "bob", "");
	EXPECT_HOME("bob:x:1000:1001:Bob::/bin/sh\n", "bob", "");
	EXPECT_HOME("bob:x:1000:1001:Bob:/ho\0me:/bin/sh\n", "bob", "");
	EXPECT_HOME("other:x:1:1::/:\n", "", "");
	for (size_t len = AGENT_PATH_MAX; len <= AGENT_PATH_MAX + 1; len++) {
		int at = snprintf(text, sizeof(text), "bob:x:1000:1::/");
		memset(text + at, 'h', len - 1);
		text[at + (int)len - 1] = '\0';
		expect_home(text, strlen(text), "bob", len <= AGENT_PATH_MAX ? text + at - 1 : "");
	}
}

static void test_not_found(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {
		{ "nobody", "" },     { "bob", "nogroup" },    { "noids", "" },
		{ "4294967295", "" }, { "bob", "4294967295" }, { "-1", "" },
		{ "/bin/none", "" },  { "bob:wheel", "x" },    { "0x10", "" },
		{ " bob", "" },       { "", "/bin/none" },
	};
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_int_equal(resolve(pairs[i][0], pairs[i][1]), FAULT_SET);
		assert_int_equal(fault.code, AGENT_E_USER);
		assert_true(fault.text[0]);
	}
	assert_int_equal(resolve("nobody", ""), FAULT_SET);
	assert_string_equal(
		fault.text,
		"failed to configure user \"nobody\": \"nobody\" user not found (give a "
		"number, or a name that the image has)");
	assert_int_equal(resolve("bob", "group2"), FAULT_SET);
	assert_non_null(strstr(fault.text, "\"group2\" group not found"));
	assert_int_equal(resolve("/none", ""), FAULT_SET);
	assert_string_equal(fault.text,
			    "failed to configure user \"/none\": no such file or directory");
	assert_int_equal(resolve("bob", "/locked"), FAULT_SET);
	assert_string_equal(fault.text, "failed to configure group \"/locked\": Permission denied");
}

/* An image without passwd and group still has root, and numbers. */
static void test_no_files(void **state)
{
	(void)state;
	const struct ids_source none = { 0 };
	assert_int_equal(ids_resolve(&none, "root", "root", &ids, &fault), 0);
	assert_int_equal(ids.uid + ids.gid, 0);
	assert_int_equal(ids_resolve(&none, "5", "6", &ids, &fault), 0);
	assert_int_equal(ids.uid, 5);
	assert_int_equal(ids.gid, 6);
	assert_int_equal(ids_resolve(&none, "bob", "", &ids, &fault), FAULT_SET);
	assert_int_equal(ids_resolve(&none, "/bin/tool", "", &ids, &fault), FAULT_SET);
}

/*
 * What @uid and @gid in a passwd line, and @gid in a line of group, make of the user and of the
 * group.
 */
static void check_numbers(const char *uid, const char *gid, bool good)
{
	char users[128], groups[128];
	snprintf(users, sizeof(users), "u:x:%s:%s::/:\n", uid, gid);
	snprintf(groups, sizeof(groups), "g:x:%s:\n", gid);
	const struct ids_source src = { .passwd = users,
					.passwd_len = strlen(users),
					.group = groups,
					.group_len = strlen(groups) };
	assert_int_equal(ids_resolve(&src, "u", "", &ids, &fault), good ? 0 : FAULT_SET);
	assert_int_equal(ids_resolve(&src, "0", "g", &ids, &fault), good ? 0 : FAULT_SET);
	assert_int_equal(ids_resolve(&src, uid, gid, &ids, &fault), good ? 0 : FAULT_SET);
}

/* 2^32 - 1 would leave the ids as they are: root's. Numbers have at most 15 digits. */
static void test_numbers(void **state)
{
	(void)state;
	check_numbers("4294967294", "4294967294", true);
	assert_int_equal(ids.uid, 4294967294U);
	assert_int_equal(ids.gid, 4294967294U);
	check_numbers("4294967295", "4294967295", false);
	check_numbers("4294967296", "4294967296", false);
	check_numbers("000000000000012", "000000000000034", true);
	assert_int_equal(ids.uid, 12);
	assert_int_equal(ids.gid, 34);
	check_numbers("0000000000000012", "0000000000000034", false);
	check_numbers("18446744073709551616", "18446744073709551617", false);
}

/* The groups of a directory service: one line has thousands of members. bob is the last of them. */
static void test_long_lines(void **state)
{
	(void)state;
	char *text = malloc(IDS_FILE_MAX + 1);
	assert_non_null(text);
	memset(text, 'x', IDS_FILE_MAX);
	memcpy(text, "staff:x:50:", strlen("staff:x:50:"));
	for (size_t i = 20; i < IDS_FILE_MAX; i += 10)
		text[i] = ',';
	strcpy(text + IDS_FILE_MAX - strlen(",bob\naudio:x:29:bob"), ",bob\naudio:x:29:bob");
	const struct ids_source groups = { passwd, strlen(passwd), text, IDS_FILE_MAX, NULL, NULL };
	assert_int_equal(ids_resolve(&groups, "bob", "staff", &ids, &fault), 0);
	assert_int_equal(ids.gid, 50);
	assert_int_equal(ids.n_groups, 0);
	assert_int_equal(ids_resolve(&groups, "bob", "", &ids, &fault), 0);
	assert_int_equal(ids.n_groups, 2);
	assert_int_equal(ids.groups[0], 50);
	assert_int_equal(ids.groups[1], 29);
	snprintf(text + IDS_FILE_MAX - sizeof(passwd), sizeof(passwd) + 1, "\n%s", passwd);
	const struct ids_source users = { .passwd = text, .passwd_len = IDS_FILE_MAX };
	assert_int_equal(ids_resolve(&users, "bob", "", &ids, &fault), 0);
	assert_int_equal(ids.uid, 1000);
	free(text);
}

static int with_groups(size_t n)
{
	size_t size = n * 24 + 1, at = 0;
	char *text = calloc(1, size);
	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, size - at, "g%zu:x:%zu:bob\n", i, 2000 + i);
	const struct ids_source src = { passwd, strlen(passwd), text, at, NULL, NULL };
	int r = ids_resolve(&src, "bob", "", &ids, &fault);
	free(text);
	return r;
}

static void test_groups_limit(void **state)
{
	(void)state;
	assert_int_equal(with_groups(IDS_GROUPS_MAX), 0);
	assert_int_equal(ids.n_groups, IDS_GROUPS_MAX);
	assert_int_equal(with_groups(IDS_GROUPS_MAX + 1), FAULT_SET);
	assert_int_equal(fault.code, AGENT_E_USER);
}

static void test_name_limit(void **state)
{
	(void)state;
	char name[AGENT_USER_MAX + 2];
	memset(name, '1', sizeof(name));
	name[AGENT_USER_MAX + 1] = '\0';
	assert_int_equal(resolve(name, ""), FAULT_SET);
	name[AGENT_USER_MAX] = '\0';
	assert_int_equal(resolve(name, ""), FAULT_SET); /* no number of that size */
}

/* NUL bytes in the files end no name early. */
static void test_nul(void **state)
{
	(void)state;
	static const char text[] = "bob\0x:x:1:1::/:\nbob:x:2\0:2::/:\nbob:x:3:4::/:\n";
	const struct ids_source src = { .passwd = text, .passwd_len = sizeof(text) - 1 };
	assert_int_equal(ids_resolve(&src, "bob", "", &ids, &fault), 0);
	assert_int_equal(ids.uid, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_found),         fixture_test(test_group_said),
		fixture_test(test_name_and_home), fixture_test(test_not_found),
		fixture_test(test_no_files),      fixture_test(test_long_lines),
		fixture_test(test_groups_limit),  fixture_test(test_name_limit),
		fixture_test(test_nul),           fixture_test(test_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
