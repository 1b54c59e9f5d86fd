/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path is walked from the root, one descriptor after the other, so what was looked at is what
 * the next name is looked up in. When all of it belongs to the trusted and nobody else can write
 * there, nobody else can change it afterwards either, and the path may be executed by its name.
 */
#include "lib/os/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
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

/* Goes on to the name at the end of @path, below what is open as *@fd. */
static int descend(int *fd, const char *name, const char *path, uid_t user, struct err *e)
{
	int next = openat(*fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return err_sys(e, -errno, "\"%s\"", path);
	fd_replace(fd, next);
	return trusted_check(next, path, user, e);
}

int trusted_path(const char *path, uid_t user, struct err *e)
{
	char text[PATH_MAX];
	cleanup_fd int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = path[0] == '/' ? str_copy(text, sizeof(text), path) : -EINVAL;
	if (r == 0 && fd < 0)
		r = -errno;
	if (r < 0)
		return err_sys(e, r, "\"%.300s\"", path);
	r = trusted_check(fd, "/", user, e);
	/* The text ends behind the name that is looked up, then gets its slash back. */
	for (char *at = text; r == 0 && at;) {
		char *name = at + 1, *slash = strchr(name, '/');
		if (slash)
			*slash = '\0';
		if (*name)
			r = descend(&fd, name, text, user, e);
		if (slash)
			*slash = '/';
		at = slash;
	}
	return r;
}
