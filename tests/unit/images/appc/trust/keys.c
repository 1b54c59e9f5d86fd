/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/appc/trust/keys.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/appc/trust/names.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/rmtree.h"
#include "lib/os/spawn.h"
#include "tests/support/cmocka.h"

#define FILE_MAX ((size_t)64 * 1024)

static const char *const empty_dirs[] = { "tmp", "user", "gnupg" };
static char dir[PATH_MAX];
static int dir_fd = -EBADF;

static void path_of(const char *name, char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
	assert_true(n > 0 && n < PATH_MAX);
}

static int run(const char *program, char *const *argv)
{
	struct spawn_plan plan = { .program = program, .argv = argv };
	pid_t pid;
	int status = 0;
	spawn_plan_fd(&plan, 2, 2);
	return spawn(&plan, &pid, NULL) < 0 || spawn_wait(pid, &status) < 0 || status != 0 ? -1 : 0;
}

void keys_wait_for_processes(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

int keys_setup(void **state)
{
	(void)state;
	char script[PATH_MAX], home[PATH_MAX], gnupg[PATH_MAX];
	const char *source = getenv("HUSK_SOURCE_DIR"), *base = getenv("TMPDIR");
	assert_non_null(source);
	snprintf(script, sizeof(script), "%s/tests/unit/images/appc/trust/make-keys.sh", source);
	snprintf(dir, sizeof(dir), "%s/husk-test-XXXXXX", base && *base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *const argv[] = { script, dir, NULL };
	/* The agent that made the keys ends before the first test. */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	if (run(script, argv) < 0)
		return -1;
	keys_wait_for_processes();
	for (size_t i = 0; i < ARRAY_SIZE(empty_dirs); i++)
		assert_int_equal(mkdirat(dir_fd, empty_dirs[i], 0700), 0);
	path_of("user", home);
	path_of("gnupg", gnupg);
	setenv("HOME", home, 1);
	setenv("GNUPGHOME", gnupg, 1);
	return 0;
}

int keys_teardown(void **state)
{
	(void)state;
	fd_close(dir_fd);
	return rmtree(AT_FDCWD, dir);
}

int keys_open(const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	assert_true(fd > 2);
	return fd;
}

char *keys_read(const char *name, size_t *ret_len)
{
	char *text = NULL;
	assert_int_equal(file_read_at(dir_fd, name, FILE_MAX, &text, ret_len), 0);
	return text;
}

/* Good for the next three calls, too. */
const char *keys_fingerprint(const char *name)
{
	static char found[4][TRUST_FINGERPRINT_MAX + 1];
	static size_t next;
	char file[NAME_MAX];
	size_t len;
	snprintf(file, sizeof(file), "%s.fpr", name);
	char *text = keys_read(file, &len);
	char *out = found[next++ % ARRAY_SIZE(found)];
	assert_int_equal(trust_copy_fingerprint(out, text), 0);
	free(text);
	return out;
}

const char *keys_tmp(void)
{
	static char path[PATH_MAX];
	path_of("tmp", path);
	return path;
}

static void check_empty(const char *name)
{
	cleanup_dir DIR *d = fd_open_dir(openat(dir_fd, name, O_RDONLY | O_CLOEXEC));
	assert_non_null(d);
	for (struct dirent *de = readdir(d); de; de = readdir(d))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			fail_msg("%s/%s was left", name, de->d_name);
}

void keys_check_clean(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(empty_dirs); i++)
		check_empty(empty_dirs[i]);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}
