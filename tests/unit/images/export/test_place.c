/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static void path_in(void **state, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", fixture_path(state), name);
}

/* How many names the test's directory has. */
static int count_names(void **state)
{
	DIR *d = fd_open_dir(openat(fixture_dir(state), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void make_file(int dir, const char *name)
{
	fd_close(openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	assert_int_equal(faccessat(dir, name, F_OK, 0), 0);
}

static void open_well(const char *path, bool overwrite, struct place *p)
{
	struct err e = ERR_INIT;
	if (place_open(path, overwrite, p, &e) < 0)
		fail_msg("%s", e.text);
}

static void publish_well(struct place *p)
{
	struct err e = ERR_INIT;
	if (place_publish(p, &e) < 0)
		fail_msg("%s", e.text);
}

static void check_error(const char *path, bool overwrite, int code, const char *text)
{
	CLEANUP(place_deinit) struct place p = PLACE_INIT;
	struct err e = ERR_INIT;
	assert_int_equal(place_open(path, overwrite, &p, &e), code);
	if (!strstr(e.text, text))
		fail_msg("\"%s\" instead of \"%s\"", e.text, text);
}

static void test_new(void **state)
{
	CLEANUP(place_deinit) struct place p = PLACE_INIT;
	char path[PATH_MAX];
	struct stat st;
	path_in(state, "new//", path);
	assert_int_equal(fchmod(fixture_dir(state), 02755), 0);
	mode_t mask = umask(0);
	open_well(path, false, &p);
	umask(mask);
	assert_int_equal(fstatat(fixture_dir(state), "new", &st, 0), -1);
	make_file(p.fd, "f");
	publish_well(&p);
	assert_int_equal(fstatat(fixture_dir(state), "new", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(st.st_gid, getegid());
	assert_int_equal(faccessat(fixture_dir(state), "new/f", F_OK, 0), 0);
	place_deinit(&p);
	assert_int_equal(count_names(state), 1);
	check_error(path, false, -EEXIST, "output directory exists (try --overwrite)");
}

static void test_nothing_left(void **state)
{
	struct place p = PLACE_INIT;
	char path[PATH_MAX];
	path_in(state, "new", path);
	open_well(path, false, &p);
	make_file(p.fd, "f");
	assert_int_equal(mkdirat(p.fd, "d", 0700), 0);
	make_file(p.fd, "d/f");
	assert_int_equal(count_names(state), 1);
	place_deinit(&p);
	assert_int_equal(count_names(state), 0);
	place_deinit(&p);
}

static void test_overwrite(void **state)
{
	CLEANUP(place_deinit) struct place p = PLACE_INIT;
	char path[PATH_MAX];
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "old", 0755), 0);
	make_file(dir, "old/f");
	assert_int_equal(symlinkat("old", dir, "link"), 0);
	/* The directory that the link leads to is meant. */
	path_in(state, "link", path);
	check_error(path, false, -EEXIST, "output directory exists (try --overwrite)");
	open_well(path, true, &p);
	make_file(p.fd, "g");
	assert_int_equal(faccessat(dir, "old/f", F_OK, 0), 0);
	publish_well(&p);
	assert_int_equal(faccessat(dir, "old/f", F_OK, 0), -1);
	assert_int_equal(faccessat(dir, "link/g", F_OK, 0), 0);
	assert_int_equal(count_names(state), 2);
}

/* Nothing was there when the work began. */
static void test_race(void **state)
{
	struct place p = PLACE_INIT;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	int dir = fixture_dir(state);
	path_in(state, "new", path);
	open_well(path, false, &p);
	assert_int_equal(mkdirat(dir, "new", 0755), 0);
	make_file(dir, "new/theirs");
	assert_int_equal(place_publish(&p, &e), -EEXIST);
	assert_string_equal(e.text, "output directory exists (try --overwrite)");
	place_deinit(&p);
	assert_int_equal(faccessat(dir, "new/theirs", F_OK, 0), 0);
	assert_int_equal(count_names(state), 1);
}

static void test_refused(void **state)
{
	static const char refusing[] = "this would delete your root filesystem. Refusing.";
	char path[PATH_MAX];
	int dir = fixture_dir(state);
	fixture_write(state, "file", "x", 1);
	assert_int_equal(symlinkat("/", dir, "root"), 0);
	assert_int_equal(symlinkat("missing", dir, "dangling"), 0);
	check_error("/", true, -EPERM, refusing);
	check_error("/..", true, -EPERM, refusing);
	check_error("/./", true, -EPERM, refusing);
	path_in(state, "root", path);
	check_error(path, true, -EPERM, refusing);
	check_error("/", false, -EEXIST, "output directory exists");
	path_in(state, "file", path);
	check_error(path, true, -ENOTDIR, "it is not a directory");
	path_in(state, "dangling", path);
	check_error(path, true, -ENOENT, "is a symbolic link to nothing");
	path_in(state, "missing/new", path);
	check_error(path, true, -ENOENT, "the directory above it: No such file or directory");
	path_in(state, "missing/..", path);
	check_error(path, true, -EISDIR, "this is not a name for one");
	check_error("", true, -EISDIR, "this is not a name for one");
	assert_int_equal(count_names(state), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_new),       fixture_test(test_nothing_left),
		fixture_test(test_overwrite), fixture_test(test_race),
		fixture_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
