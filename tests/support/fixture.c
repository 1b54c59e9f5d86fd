/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define FIXTURE_FD_MAX 1024 /* the soft limit of descriptors that a test starts with */

struct fixture {
	bool open[FIXTURE_FD_MAX]; /* descriptors that were open before the test */
	int dirfd;
	char path[PATH_MAX]; /* "" until the directory is wanted */
};

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

int fixture_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	if (!f)
		return -1;
	f->dirfd = -EBADF;
	for (int fd = 0; fd < FIXTURE_FD_MAX; fd++)
		f->open[fd] = is_open(fd);
	*state = f;
	return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Says what @fd is and closes it, so that the next test starts clean. */
static void report_leak(int fd)
{
	char link[64], target[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	print_error("descriptor %d leaked: %s\n", fd, target);
	close(fd);
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	int r = 0;
	fd_close(f->dirfd);
	if (f->path[0] && nftw(f->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
		r = -1;
	for (int fd = 0; fd < FIXTURE_FD_MAX; fd++) {
		if (f->open[fd] || !is_open(fd))
			continue;
		report_leak(fd);
		r = -1;
	}
	free(f);
	return r;
}

static void make_directory(struct fixture *f)
{
	const char *base = getenv("TMPDIR");
	snprintf(f->path, sizeof(f->path), "%s/husk-test-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(f->path)) {
		f->path[0] = '\0';
		fail_msg("mkdtemp: %s", strerror(errno));
	}
	f->dirfd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->dirfd >= 0);
}

int fixture_dir(void **state)
{
	struct fixture *f = *state;
	if (!f->path[0])
		make_directory(f);
	return f->dirfd;
}

const char *fixture_path(void **state)
{
	fixture_dir(state);
	return ((struct fixture *)*state)->path;
}

void fixture_write(void **state, const char *name, const void *data, size_t len)
{
	cleanup_fd int fd =
		openat(fixture_dir(state), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, len), 0);
}
