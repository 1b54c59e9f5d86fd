/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/pod/mount_options.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>

#include "tests/support/fixture.h"

static void check_in(const char *dir, const char *const *words, size_t n, unsigned long flags,
		     const char *data)
{
	struct mount_words m;
	struct err e = ERR_INIT;
	assert_int_equal(mount_words_parse((char *const *)(uintptr_t)words, n, &m, &e), 0);
	assert_int_equal(m.flags, flags);
	assert_string_equal(m.data, data);
	assert_string_equal(m.dir, dir);
}

static void check(const char *const *words, size_t n, unsigned long flags, const char *data)
{
	check_in("", words, n, flags, data);
}

static void test_words(void **state)
{
	static const char *const bind[] = { "rbind", "ro" };
	static const char *const later[] = { "ro", "nosuid", "nodev", "rw", "suid", "size=64k" };
	(void)state;
	check(NULL, 0, 0, "");
	check(bind, ARRAY_SIZE(bind), MS_BIND | MS_REC | MS_RDONLY, "");
	check(later, ARRAY_SIZE(later), MS_NODEV, "size=64k"); /* the last word counts */
}

/* Layers are said relative to where all of them are, unless that is nowhere. */
static void test_layers(void **state)
{
	static const char *const overlay[] = { "index=off", "workdir=/s/9/work", "upperdir=/s/9/fs",
					       "lowerdir=/s/12/fs:/s/1/fs:/s/123/fs" };
	static const struct {
		const char *word, *dir, *data;
	} cases[] = {
		{ "lowerdir=/s/1/fs", "/s/1/", "lowerdir=fs" },
		{ "lowerdir=/s/a:/s/a/b", "/s/", "lowerdir=a:a/b" },
		{ "lowerdir=/a:/b", "/", "lowerdir=a:b" },
		{ "lowerdir=/a/b:c", "", "lowerdir=/a/b:c" },
		{ "lowerdir=a/b:a/c", "", "lowerdir=a/b:a/c" },
		{ "lowerdir=/a/b::/a/c", "", "lowerdir=/a/b::/a/c" },
		{ "lowerdir=/a/b\\:c:/a/d", "", "lowerdir=/a/b\\:c:/a/d" },
		{ "lowerdir=", "", "lowerdir=" },
		{ "upperdir=/a/b:/a/c", "", "upperdir=/a/b:/a/c" },
	};
	(void)state;
	check_in("/s/", overlay, ARRAY_SIZE(overlay), 0,
		 "index=off,workdir=/s/9/work,upperdir=/s/9/fs,lowerdir=12/fs:1/fs:123/fs");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_in(cases[i].dir, &cases[i].word, 1, 0, cases[i].data);
}

/* A directory longer than a path can be is not taken apart; nothing is written behind its room. */
static void test_long_directory(void **state)
{
	(void)state;
	for (size_t len = PATH_MAX - 2; len <= PATH_MAX; len++) {
		char word[PATH_MAX + 32] = "lowerdir=/";
		char *const words[] = { word };
		struct mount_words m;
		struct err e = ERR_INIT;
		memset(word + strlen("lowerdir=/"), 'x', len - 2);
		strcat(word, "/f"); /* the directory has @len bytes with both slashes */
		int r = mount_words_parse(words, 1, &m, &e);
		assert_int_equal(r, len < PATH_MAX ? 0 : -E2BIG);
		if (r == 0)
			assert_int_equal(strlen(m.dir), len);
	}
}

/* As much as mount(2) takes, and one byte more. */
static void test_longest(void **state)
{
	char first[MOUNT_DATA_MAX - 1], last[3] = "yy";
	char *const words[] = { first, last };
	struct mount_words m;
	struct err e = ERR_INIT;
	(void)state;
	memset(first, 'x', sizeof(first));
	first[sizeof(first) - 1] = '\0';
	first[MOUNT_DATA_MAX - 3] = '\0';
	assert_int_equal(mount_words_parse(words, 2, &m, &e), 0);
	assert_int_equal(strlen(m.data), MOUNT_DATA_MAX);
	first[MOUNT_DATA_MAX - 3] = 'x';
	assert_int_equal(mount_words_parse(words, 2, &m, &e), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_words),
		fixture_test(test_layers),
		fixture_test(test_long_directory),
		fixture_test(test_longest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
