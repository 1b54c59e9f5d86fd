/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one directory is open at a time. Going down, its identity and the name below
 * it are put on a stack; going up is opening "..", which must be the directory on the stack. Each
 * directory is read from its start again after a subdirectory is gone; there are few names left
 * then. Where the stack is full, a subdirectory is moved into the topmost directory, and is met
 * again there.
 */
#include "lib/os/rmtree.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

struct level {
	dev_t dev; /* of the directory */
	ino_t ino;
	char name[NAME_MAX + 1]; /* that is being emptied in it */
};

struct walk {
	int fd;  /* the directory that is being emptied, or the one that has the tree */
	int top; /* the tree itself, once something was moved there */
	unsigned n_moved;
	struct level *levels;
	size_t n;
};

static void walk_deinit(struct walk *w)
{
	fd_close(w->fd);
	fd_close(w->top);
	free(w->levels);
}

/* Lets the owner into the directory @name, if he may say so. */
static void make_accessible(int dirfd, const char *name)
{
	char self[sizeof("/proc/self/fd/") + 11];
	cleanup_fd int fd = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	(void)!chmod(self, 0700); /* or the next open fails */
}

/* The descriptor or -errno. */
static int open_dir(int dirfd, const char *name)
{
	if (faccessat(dirfd, name, R_OK | W_OK | X_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno == EACCES)
		make_accessible(dirfd, name);
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int rmtree_push(struct walk *w, const char *name)
{
	struct stat st;
	if (!GROW(w->levels, w->n))
		return -ENOMEM;
	if (fstat(w->fd, &st) < 0)
		return -errno;
	struct level *level = &w->levels[w->n];
	level->dev = st.st_dev;
	level->ino = st.st_ino;
	int r = str_copy(level->name, sizeof(level->name), name);
	w->n += r == 0 ? 1 : 0;
	return r;
}

/* The stack has no room for the directory @name, which we may change by now. */
static int move_up(struct walk *w, const char *name)
{
	char moved[32];
	for (;;) {
		snprintf(moved, sizeof(moved), "husk-moved-%u", w->n_moved++);
		if (renameat2(w->fd, name, w->top, moved, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST || w->n_moved == UINT_MAX)
			return errno == ENOENT ? 0 : -errno;
	}
}

/* Goes into the directory @name, or back out of it if something is mounted there. */
static int go_down(struct walk *w, const char *name)
{
	struct statx st;
	cleanup_fd int fd = open_dir(w->fd, name);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) < 0)
		return fd < 0 ? fd : -errno;
	if (w->n == RMTREE_DEPTH_MAX)
		return move_up(w, name);
	int r = rmtree_push(w, name);
	if (r < 0)
		return r;
	if (w->n == 1 && (w->top = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
		return -errno;
	/* The tree itself may be on another file system than the directory that has it. */
	if (w->n > 1 && (makedev(st.stx_dev_major, st.stx_dev_minor) != w->levels[w->n - 1].dev ||
			 st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return -EXDEV;
	fd_replace(&w->fd, TAKE_FD(fd));
	return 0;
}

/* Goes back to the directory on the stack, and removes there what has been emptied. */
static int go_up(struct walk *w)
{
	struct stat st;
	const struct level *level = &w->levels[--w->n];
	cleanup_fd int fd = openat(w->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != level->dev || st.st_ino != level->ino)
		return -ESTALE;
	if (unlinkat(fd, level->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -errno;
	fd_replace(&w->fd, TAKE_FD(fd));
	return 0;
}

/* 1 if @name is a directory that has to be emptied first. */
static int remove_name(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno == ENOTEMPTY || errno == EEXIST ? 1 : -errno;
}

/*
 * Removes what it can in the current directory. 1: the directory @name, NAME_MAX + 1 bytes, is
 * left.
 */
static int empty_names(const struct walk *w, char *name)
{
	cleanup_dir DIR *d = fd_list_dir(w->fd);
	if (!d)
		return -errno;
	for (;;) {
		errno = 0;
		const struct dirent *de = readdir(d);
		if (!de)
			return -errno;
		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		int r = remove_name(w->fd, de->d_name);
		if (r != 0)
			return r < 0 ? r : str_copy(name, NAME_MAX + 1, de->d_name) + 1;
	}
}

int rmtree(int dirfd, const char *path)
{
	char next[NAME_MAX + 1], parent[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	CLEANUP(walk_deinit) struct walk w = { .fd = -EBADF, .top = -EBADF };
	int r = remove_name(dirfd, path);
	if (r <= 0)
		return r;
	if (slash) /* remove_name() has found it: it is not too long */
		snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	w.fd = openat(dirfd, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = w.fd < 0 ? -errno : go_down(&w, name);
	while (r == 0 && w.n > 0) {
		r = empty_names(&w, next);
		if (r >= 0)
			r = r > 0 ? go_down(&w, next) : go_up(&w);
	}
	return r;
}
