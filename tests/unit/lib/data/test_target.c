/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data/target.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/file.h"
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

static void check_content(void **state, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	assert_int_equal(file_read_at(fixture_dir(state), name, 100, &text, NULL), 0);
	assert_string_equal(text, want);
}

static void test_publish(void **state)
{
	CLEANUP(target_deinit) struct target t = TARGET_INIT;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	struct stat st;
	path_in(state, "file", path);
	umask(022);
	assert_int_equal(target_open(path, "target file", false, &t, &e), 0);
	assert_int_equal(count_names(state), 0);
	assert_int_equal(fd_write_all(t.fd, "new", 3), 0);
	assert_int_equal(target_publish(&t, &e), 0);
	check_content(state, "file", "new");
	assert_int_equal(fstat(t.fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(count_names(state), 1);
}

static void test_nothing_left(void **state)
{
	struct target t = TARGET_INIT;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	path_in(state, "file", path);
	assert_int_equal(target_open(path, "target file", true, &t, &e), 0);
	target_deinit(&t);
	target_deinit(&t);
	assert_int_equal(count_names(state), 0);
}

static void test_exists(void **state)
{
	CLEANUP(target_deinit) struct target t = TARGET_INIT;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	path_in(state, "file", path);
	fixture_write(state, "file", "old", 3);
	assert_int_equal(target_open(path, "target file", false, &t, &e), -EEXIST);
	assert_string_equal(e.text, "target file exists (try --overwrite)");
	assert_int_equal(target_open(path, "target file", true, &t, &e), 0);
	assert_int_equal(fd_write_all(t.fd, "new", 3), 0);
	check_content(state, "file", "old");
	assert_int_equal(target_publish(&t, &e), 0);
	check_content(state, "file", "new");
	assert_int_equal(count_names(state), 1);
}

/* A file that came while the archive was written stays. */
static void test_came_meanwhile(void **state)
{
	CLEANUP(target_deinit) struct target t = TARGET_INIT;
	struct err e = ERR_INIT;
	char path[PATH_MAX];
	path_in(state, "file", path);
	assert_int_equal(target_open(path, "target file", false, &t, &e), 0);
	fixture_write(state, "file", "other", 5);
	assert_int_equal(target_publish(&t, &e), -EEXIST);
	check_content(state, "file", "other");
}

static void check_refused(const char *path, bool overwrite, const char *want)
{
	struct target t = TARGET_INIT;
	struct err e = ERR_INIT;
	assert_true(target_open(path, "target file", overwrite, &t, &e) < 0);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

static void test_refused(void **state)
{
	char path[PATH_MAX];
	path_in(state, "dir", path);
	assert_int_equal(mkdir(path, 0755), 0);
	check_refused(path, true, "it is not a regular file");
	path_in(state, "link", path);
	assert_int_equal(symlink("/dev/null", path), 0);
	check_refused(path, true, "it is not a regular file");
	path_in(state, "none/file", path);
	check_refused(path, false, "its directory: No such file or directory");
	path_in(state, "dir/", path);
	check_refused(path, false, "it names no file");
	check_refused("", false, "it names no file");
	check_refused("..", false, "it names no file");
	memset(path, 'n', NAME_MAX + 1);
	path[NAME_MAX + 1] = '\0';
	check_refused(path, false, "File name too long");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_publish), fixture_test(test_nothing_left),
		fixture_test(test_exists),  fixture_test(test_came_meanwhile),
		fixture_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
