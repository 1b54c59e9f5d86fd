/* SPDX-License-Identifier: Apache-2.0 */
/* With directories of the file system that tests are on, which remembers when each was made. */
#include "shim/pod/layers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define OPTIONS_MAX 8
#define TEXT_MAX    65536 /* 500 paths */
#define WORDS(...)  ((const char *const[]){ __VA_ARGS__, NULL })

/* Of overlayfs with @words, in which each "@" is the fixture's directory. */
static bool identify(void **state, const char *const *words, char ret[LAYERS_TEXT_LEN + 1])
{
	char *options[OPTIONS_MAX];
	struct husk_mount m = {
		.type = "overlay", .source = "overlay", .target = "", .options = options
	};
	for (; words[m.n_options]; m.n_options++) {
		char *text = calloc(1, TEXT_MAX), *to = text;
		assert_non_null(text);
		for (const char *from = words[m.n_options]; *from; from++)
			if (*from == '@')
				to = stpcpy(to, fixture_path(state));
			else
				*to++ = *from;
		options[m.n_options] = text;
	}
	bool r = layers_identify(&m, 1, ret);
	assert_int_equal(r ? strlen(ret) : LAYERS_TEXT_LEN, LAYERS_TEXT_LEN);
	for (size_t i = 0; i < m.n_options; i++)
		free(options[i]);
	return r;
}

static void make_dir(void **state, const char *name)
{
	assert_int_equal(mkdirat(fixture_dir(state), name, 0755), 0);
}

static void make_dirs(void **state)
{
	static const char *const names[] = { "1", "2", "upper", "other", "work" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		make_dir(state, names[i]);
}

#define UPPER "upperdir=@/upper"

/* The same layers in the same order are the same, wherever what is written goes. */
static void test_same(void **state)
{
	char a[LAYERS_TEXT_LEN + 1], b[LAYERS_TEXT_LEN + 1];
	make_dirs(state);
	assert_true(identify(state, WORDS("index=off", "workdir=@/work", UPPER, "lowerdir=@/2:@/1"),
			     a));
	assert_true(identify(state, WORDS("workdir=@/work", "upperdir=@/other", "lowerdir=@/2:@/1"),
			     b));
	assert_string_equal(a, b);
	assert_true(identify(state, WORDS("workdir=@/work", UPPER, "lowerdir=@/1:@/2"), b));
	assert_string_not_equal(a, b);
	assert_true(identify(state, WORDS("workdir=@/work", UPPER, "lowerdir=@/2"), b));
	assert_string_not_equal(a, b);
	/* Nothing can be written; which is another root directory. */
	assert_true(identify(state, WORDS("ro", "lowerdir=@/2:@/1"), b));
	assert_string_not_equal(a, b);
}

/* Another directory under the same name, and the root directory's mode. */
static void test_other(void **state)
{
	char a[LAYERS_TEXT_LEN + 1], b[LAYERS_TEXT_LEN + 1];
	make_dirs(state);
	static const char *const words[] = { UPPER, "lowerdir=@/1", NULL };
	assert_true(identify(state, words, a));
	assert_int_equal(unlinkat(fixture_dir(state), "1", AT_REMOVEDIR), 0);
	make_dir(state, "1");
	assert_true(identify(state, words, b));
	assert_string_not_equal(a, b);
	assert_int_equal(fchmodat(fixture_dir(state), "upper", 0700, 0), 0);
	assert_true(identify(state, words, a));
	assert_string_not_equal(a, b);
}

/* Where it cannot be told, it is not. */
static void test_unknown(void **state)
{
	char text[LAYERS_TEXT_LEN + 1], word[] = "rbind", *bind[] = { word };
	struct husk_mount m = { "bind", "/", "", bind, 1 };
	make_dirs(state);
	assert_false(layers_identify(&m, 1, text));
	assert_false(layers_identify(NULL, 0, text));
	assert_false(identify(state, WORDS(UPPER), text));
	assert_false(identify(state, WORDS(UPPER, "lowerdir=@/1", "metacopy=on"), text));
	assert_false(identify(state, WORDS(UPPER, "lowerdir=@/1:@/3"), text));
	assert_false(identify(state, WORDS(UPPER, "lowerdir=1"), text));
	assert_false(identify(state, WORDS(UPPER, "lowerdir="), text));
	assert_false(identify(state, WORDS(UPPER, "lowerdir=@/1::@/2"), text));
	assert_false(identify(state, WORDS(UPPER, "lowerdir=@/1\\:"), text));
	assert_false(identify(state, WORDS("upperdir=@/3", "lowerdir=@/1"), text));
	/* Of a file system that does not remember it. */
	assert_false(identify(state, WORDS("lowerdir=/proc/self"), text));
}

/* Something is written, or written so as to hide what is below. */
static void test_written(void **state)
{
	char path[PATH_MAX], text[LAYERS_TEXT_LEN + 1];
	static const char *const words[] = { UPPER, "lowerdir=@/1", NULL };
	make_dirs(state);
	snprintf(path, sizeof(path), "%s/upper", fixture_path(state));
	fixture_write(state, "upper/.f", "", 0);
	assert_false(identify(state, words, text));
	assert_int_equal(unlinkat(fixture_dir(state), "upper/.f", 0), 0);
	assert_true(identify(state, words, text));
	if (setxattr(path, "trusted.overlay.origin", "x", 1, 0) < 0)
		return; /* not root, or there are none here */
	assert_true(identify(state, words, text));
	assert_int_equal(setxattr(path, "trusted.overlay.opaque", "y", 1, 0), 0);
	assert_false(identify(state, words, text));
}

/* Directories of two file systems, or the top of one: another may be there by now. */
static void test_file_systems(void **state)
{
	char other[] = "/dev/shm/layers-XXXXXX", list[128], text[LAYERS_TEXT_LEN + 1];
	make_dirs(state);
	assert_non_null(mkdtemp(other));
	snprintf(list, sizeof(list), "lowerdir=%s:@/1", other);
	assert_false(identify(state, WORDS(list), text));
	snprintf(list, sizeof(list), "lowerdir=%s", other);
	assert_false(identify(state, WORDS(UPPER, list), text));
	assert_int_equal(rmdir(other), 0);
	assert_false(identify(state, WORDS("lowerdir=/dev/shm"), text));
}

/* Which attributes of what is below hide something. */
static void test_attributes(void **state)
{
	char a[LAYERS_TEXT_LEN + 1], b[LAYERS_TEXT_LEN + 1];
	make_dirs(state);
	assert_true(identify(state, WORDS(UPPER, "lowerdir=@/2:@/1"), a));
	assert_true(identify(state, WORDS("userxattr", UPPER, "lowerdir=@/2:@/1"), b));
	assert_string_not_equal(a, b);
}

static void test_limits(void **state)
{
	char *list = calloc(1, TEXT_MAX), text[LAYERS_TEXT_LEN + 1];
	make_dirs(state);
	char *at = stpcpy(list, "lowerdir=@/1");
	for (size_t i = 1; i < LAYERS_MAX; i++)
		at = stpcpy(at, ":@/1");
	assert_true(identify(state, WORDS(list), text));
	strcpy(at, ":@/1");
	assert_false(identify(state, WORDS(list), text));
	memset(stpcpy(list, "lowerdir=/"), 'x', PATH_MAX); /* one path */
	assert_false(identify(state, WORDS(list), text));
	free(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_same),       fixture_test(test_other),
		fixture_test(test_unknown),    fixture_test(test_written),
		fixture_test(test_limits),     fixture_test(test_file_systems),
		fixture_test(test_attributes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
