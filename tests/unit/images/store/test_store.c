/* SPDX-License-Identifier: Apache-2.0 */
#include "images/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/render/render.h"
#include "images/store/store_int.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "tests/support/fixture.h"

static struct store *must_open(void **state)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;
	assert_int_equal(store_open(fixture_dir(state), "DIR", &s, &e), 0);
	return s;
}

static void publish(const struct store *s, const struct digest *chain)
{
	struct err e = ERR_INIT;
	cleanup_fd int fd = openat(store_tmp_dirfd(s), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(fd_write_all(fd, "image", 5), 0);
	struct digest content, back;
	digest_of("image", 5, &content);
	assert_int_equal(store_tree_content(s, chain, &back), -EBADMSG);
	assert_int_equal(store_publish_tree(s, chain, fd, &content, &e), 0);
	assert_int_equal(store_publish_tree(s, chain, fd, &content, &e), -EEXIST);
	assert_int_equal(store_tree_content(s, chain, &back), 0);
	assert_true(digest_equal(&content, &back));
}

static void test_directories(void **state)
{
	static const char *const names[] = { "trees", "tmp", "locks" };
	store_free(must_open(state));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct stat st;
		assert_int_equal(fstatat(fixture_dir(state), names[i], &st, 0), 0);
		assert_int_equal(st.st_mode, S_IFDIR | 0750);
	}
	store_free(must_open(state)); /* they are there already */
	/* A link in place of a directory is refused. */
	assert_int_equal(unlinkat(fixture_dir(state), "tmp", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/", fixture_dir(state), "tmp"), 0);
	struct store *s;
	struct err e = ERR_INIT;
	assert_true(store_open(fixture_dir(state), "DIR", &s, &e) < 0);
	assert_string_equal(e.text, "cannot open DIR/tmp: Not a directory");
}

static void test_publish_and_find(void **state)
{
	cleanup_store struct store *s = must_open(state);
	struct digest chain, other;
	struct err e = ERR_INIT;
	digest_of("1", 1, &chain);
	digest_of("2", 1, &other);
	int fd = -EBADF;
	assert_int_equal(store_find_tree(s, &chain, &fd, &e), STORE_MISSING);
	publish(s, &chain);
	assert_int_equal(store_find_tree(s, &other, &fd, &e), STORE_MISSING);
	assert_int_equal(store_find_tree(s, &chain, &fd, &e), 0);
	/* Open: nobody gets the exclusive lock that removal takes. Two may share. */
	int second = -EBADF;
	assert_int_equal(store_find_tree(s, &chain, &second, &e), 0);
	cleanup_fd int remover = openat(fixture_dir(state), "trees", O_RDONLY | O_CLOEXEC);
	char name[80];
	snprintf(name, sizeof(name), "%s.v%d", chain.hex, RENDER_VERSION);
	fd_replace(&remover, openat(remover, name, O_RDONLY | O_CLOEXEC));
	assert_true(remover >= 0);
	assert_int_equal(lock_try_exclusive(remover), LOCK_TAKEN);
	fd_close(fd);
	assert_int_equal(lock_try_exclusive(remover), LOCK_TAKEN);
	fd_close(second);
	assert_int_equal(lock_try_exclusive(remover), 0);
}

/* Whoever waits for the lock of a file that is then removed sees that it is gone. */
static void test_find_during_removal(void **state)
{
	cleanup_store struct store *s = must_open(state);
	struct digest chain;
	struct err e = ERR_INIT;
	digest_of("1", 1, &chain);
	publish(s, &chain);
	char path[128];
	snprintf(path, sizeof(path), "trees/%s.v%d", chain.hex, RENDER_VERSION);
	cleanup_fd int remover = openat(fixture_dir(state), path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(lock_exclusive(remover), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd;
		_exit(store_find_tree(s, &chain, &fd, &e) == STORE_MISSING ? 0 : 1);
	}
	assert_int_equal(unlinkat(fixture_dir(state), path, 0), 0);
	assert_int_equal(lock_release(remover), 0);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* The same if a pod keeps the file that lost its name, and if another one has the name now. */
static void test_find_after_removal(void **state)
{
	cleanup_store struct store *s = must_open(state);
	struct digest chain;
	struct stat a, b;
	struct err e = ERR_INIT;
	char path[128];
	int ready[2], status, fd = -EBADF;
	digest_of("1", 1, &chain);
	publish(s, &chain);
	snprintf(path, sizeof(path), "trees/%s.v%d", chain.hex, RENDER_VERSION);
	assert_int_equal(store_link_tree(s, &chain, fixture_dir(state), "pod", &e), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	cleanup_fd int remover = openat(fixture_dir(state), path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(lock_exclusive(remover), 0);
	assert_int_equal(fstat(remover, &a), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool found = write(ready[1], "x", 1) == 1 &&
			     store_find_tree(s, &chain, &fd, &e) == 0 && fstat(fd, &b) == 0;
		_exit(found && a.st_ino != b.st_ino ? 0 : 1);
	}
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	fixture_write(state, "another", "another", 7);
	assert_int_equal(renameat(fixture_dir(state), "another", fixture_dir(state), path), 0);
	assert_int_equal(lock_release(remover), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd_close(ready[0]);
	fd_close(ready[1]);
}

/* The render lock excludes other descriptions of the same chain only, and ends with its holder. */
static void test_render_lock(void **state)
{
	cleanup_store struct store *s = must_open(state);
	struct digest chain, other;
	struct err e = ERR_INIT;
	digest_of("1", 1, &chain);
	digest_of("2", 1, &other);
	cleanup_fd int a = -EBADF;
	cleanup_fd int b = -EBADF;
	assert_int_equal(store_lock_tree(s, &chain, &a, &e), 0);
	assert_int_equal(store_lock_tree(s, &other, &b, &e), 0);
	int ready[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int c = -EBADF;
		fd_close(a); /* our copy of the holder's description */
		_exit(store_lock_tree(s, &chain, &c, &e) == 0 && write(ready[1], "x", 1) == 1 ? 0
											      : 1);
	}
	fd_close(ready[1]);
	assert_int_equal(fd_set_nonblock(ready[0], true), 0);
	char c;
	assert_true(read(ready[0], &c, 1) < 0 && errno == EAGAIN);
	fd_replace(&a, -EBADF);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(ready[0], &c, 1), 1);
	fd_close(ready[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_directories),         fixture_test(test_publish_and_find),
		fixture_test(test_find_during_removal), fixture_test(test_find_after_removal),
		fixture_test(test_render_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
