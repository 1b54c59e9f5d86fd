/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fixture.h"

/* Whether a/b/run of the fixture is trusted by us, and what is said otherwise. */
static int look(void **state, char text[ERR_TEXT_MAX])
{
	char path[PATH_MAX];
	struct err e = ERR_INIT;
	snprintf(path, sizeof(path), "%s/a/b/run", fixture_path(state));
	int r = trusted_path(path, geteuid(), &e);
	memcpy(text, e.text, ERR_TEXT_MAX);
	return r;
}

static void make(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "a", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "a/b", 0755), 0);
	fixture_write(state, "a/b/run", "", 0);
	assert_int_equal(fchmodat(fixture_dir(state), "a/b/run", 0755, 0), 0);
}

/* The fixture is below /tmp or the like: sticky, and everybody writes there. */
static void test_modes(void **state)
{
	static const struct {
		const char *name;
		mode_t mode;
		int result;
	} cases[] = {
		{ "a/b/run", 0700, 0 },      { "a/b/run", 0775, -EPERM },
		{ "a/b/run", 0757, -EPERM }, { "a/b/run", 01757, -EPERM }, /* means nothing there */
		{ "a", 0775, -EPERM },       { "a", 0757, -EPERM },
		{ "a", 01777, 0 },           { "a/b", 03770, 0 },
		{ "a/b", 02770, -EPERM },    { "a/b", 0700, 0 },
	};
	char text[ERR_TEXT_MAX], want[PATH_MAX + 64];
	make(state);
	assert_int_equal(look(state, text), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stat before;
		assert_int_equal(fstatat(fixture_dir(state), cases[i].name, &before, 0), 0);
		assert_int_equal(fchmodat(fixture_dir(state), cases[i].name, cases[i].mode, 0), 0);
		assert_int_equal(look(state, text), cases[i].result);
		snprintf(want, sizeof(want), "\"%s/%s\" can be changed by others (chmod go-w)",
			 fixture_path(state), cases[i].name);
		if (cases[i].result < 0)
			assert_string_equal(text, want);
		assert_int_equal(
			fchmodat(fixture_dir(state), cases[i].name, before.st_mode & 07777, 0), 0);
	}
}

/* What is ours is not another user's to run; what is root's is everybody's. */
static void test_owners(void **state)
{
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	make(state);
	snprintf(path, sizeof(path), "%s/a", fixture_path(state));
	assert_int_equal(trusted_path("/usr/bin/env", geteuid() + 1, &e), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(fixture_dir(state), "a/b", 4711, (gid_t)-1, 0), 0);
		assert_int_equal(trusted_path(path, 0, &e), 0);
		snprintf(path, sizeof(path), "%s/a/b/run", fixture_path(state));
		assert_int_equal(trusted_path(path, 4711, &e), 0);
		assert_int_equal(trusted_path(path, 0, &e), -EPERM);
		assert_non_null(strstr(e.text, "/a/b\" belongs to user 4711, whose programs are"));
		return;
	}
	assert_int_equal(trusted_path(path, geteuid(), &e), 0);
	assert_int_equal(trusted_path(path, geteuid() + 1, &e), -EPERM);
}

static void test_links(void **state)
{
	char text[ERR_TEXT_MAX];
	make(state);
	assert_int_equal(renameat(fixture_dir(state), "a/b", fixture_dir(state), "a/c"), 0);
	assert_int_equal(symlinkat("c", fixture_dir(state), "a/b"), 0);
	assert_int_equal(look(state, text), -ELOOP);
	assert_non_null(strstr(text, "/a/b\" is a symbolic link"));
	assert_int_equal(unlinkat(fixture_dir(state), "a/b", 0), 0);
	assert_int_equal(look(state, text), -ENOENT);
}

static void test_paths(void **state)
{
	static char name[PATH_MAX + 2];
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(trusted_path("/", geteuid(), &e), 0);
	assert_int_equal(trusted_path("//usr/./bin//", geteuid(), &e), 0);
	assert_int_equal(trusted_path("usr/bin", geteuid(), &e), -EINVAL);
	assert_int_equal(trusted_path("", geteuid(), &e), -EINVAL);
	memset(name, '/', PATH_MAX - 1);
	assert_int_equal(trusted_path(name, geteuid(), &e), 0);
	name[PATH_MAX - 1] = '/';
	assert_int_equal(trusted_path(name, geteuid(), &e), -ENAMETOOLONG);
}

static int next(void **state, struct trusted *t, const char *name)
{
	char path[PATH_MAX];
	struct err e = ERR_INIT;
	snprintf(path, sizeof(path), "%s/%s", fixture_path(state), name);
	return trusted_next(t, path, &e);
}

/* What is looked at is the same whatever came before; also behind a failure. */
static void test_several(void **state)
{
	int dir = fixture_dir(state);
	CLEANUP(trusted_deinit) struct trusted t;
	assert_int_equal(mkdirat(dir, "a", 0755) | mkdirat(dir, "b", 0777), 0);
	assert_int_equal(fchmodat(dir, "b", 0777, 0), 0);
	fixture_write(state, "a/one", "", 0);
	fixture_write(state, "a/two", "", 0);
	fixture_write(state, "b/one", "", 0);
	assert_int_equal(symlinkat("one", dir, "a/link"), 0);
	trusted_init(&t, geteuid());
	assert_int_equal(next(state, &t, "a/one"), 0);
	assert_int_equal(next(state, &t, "a/two"), 0);
	assert_int_equal(next(state, &t, "a/none"), -ENOENT);
	assert_int_equal(next(state, &t, "a/link"), -ELOOP);
	assert_int_equal(next(state, &t, "a/two"), 0);
	assert_int_equal(next(state, &t, "b/one"), -EPERM);
	assert_int_equal(next(state, &t, "none/one"), -ENOENT);
	assert_int_equal(next(state, &t, "a"), 0);
	assert_int_equal(fchmodat(dir, "a/two", 0666, 0), 0);
	assert_int_equal(next(state, &t, "a/one"), 0);
	assert_int_equal(next(state, &t, "a/two"), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_modes), fixture_test(test_owners),  fixture_test(test_links),
		fixture_test(test_paths), fixture_test(test_several),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
