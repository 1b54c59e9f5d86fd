/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path is walked from the root, one descriptor after the other, so what was looked at is what
 * the next name is looked up in. When all of it belongs to the trusted and nobody else can write
 * there, nobody else can change it afterwards either, and the path may be executed by its name.
 */
#include "lib/os/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"

/* Looks at what is open as @fd, which is called @path. */
static int trusted_check(int fd, const char *path, uid_t user, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "\"%s\"", path);
	if (S_ISLNK(st.st_mode))
		return err_set(e, -ELOOP, "\"%s\" is a symbolic link, which is not followed here",
			       path);
	if (st.st_uid != 0 && st.st_uid != user)
		return err_set(e, -EPERM,
			       "\"%s\" belongs to user %u, whose programs are not executed here",
			       path, (unsigned)st.st_uid);
	bool sticky = S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX;
	if (st.st_mode & (S_IWGRP | S_IWOTH) && !sticky)
		return err_set(e, -EPERM, "\"%s\" can be changed by others (chmod go-w)", path);
	return 0;
}

/* Opens the name at the end of @path, below @dir. The descriptor, or -errno and @e. */
static int open_child(int dir, const char *name, const char *path, uid_t user, struct err *e)
{
	cleanup_fd int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "\"%s\"", path);
	int r = trusted_check(fd, path, user, e);
	return r < 0 ? r : TAKE_FD(fd);
}

static int open_root(uid_t user, struct err *e)
{
	cleanup_fd int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? err_sys(e, -errno, "\"/\"") : trusted_check(fd, "/", user, e);
	return r < 0 ? r : TAKE_FD(fd);
}

/* Opens the directory @text, which is changed meanwhile; "" is the root. */
static int open_dir(char *text, uid_t user, struct err *e)
{
	cleanup_fd int fd = open_root(user, e);
	/* The text ends behind the name that is looked up, then gets its slash back. */
	for (char *at = *text ? text : NULL; fd >= 0 && at;) {
		char *name = at + 1, *slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		if (*name)
			fd_replace(&fd, open_child(fd, name, text, user, e));
		if (slash)
			*slash = '/';
		at = slash;
	}
	return TAKE_FD(fd);
}

void trusted_init(struct trusted *t, uid_t user)
{
	t->user = user;
	t->fd = -EBADF;
	t->dir[0] = '\0';
}

void trusted_deinit(struct trusted *t)
{
	t->fd = fd_close(t->fd);
}

int trusted_next(struct trusted *t, const char *path, struct err *e)
{
	const char *name = strrchr(path, '/');
	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return err_sys(e, path[0] == '/' ? -ENAMETOOLONG : -EINVAL, "\"%.300s\"", path);
	size_t len = (size_t)(name - path);
	if (t->fd < 0 || strlen(t->dir) != len || memcmp(t->dir, path, len) != 0) {
		memcpy(t->dir, path, len);
		t->dir[len] = '\0';
		fd_replace(&t->fd, open_dir(t->dir, t->user, e));
	}
	if (t->fd < 0 || !name[1])
		return MIN(t->fd, 0);
	cleanup_fd int fd = open_child(t->fd, name + 1, path, t->user, e);
	return MIN(fd, 0);
}

int trusted_path(const char *path, uid_t user, struct err *e)
{
	CLEANUP(trusted_deinit) struct trusted t;
	trusted_init(&t, user);
	return trusted_next(&t, path, e);
}
