/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/rmtree.h"

#define PLACE_MODE 0700

static int place_exists(struct err *e)
{
	return err_set(e, -EEXIST, "output directory exists (try --overwrite)");
}

/* True for "/" and for what else it is called: "/..", a link to it, a bind mount of it. */
static bool is_root_directory(const struct stat *st)
{
	struct stat root;
	return stat("/", &root) < 0 || (st->st_dev == root.st_dev && st->st_ino == root.st_ino);
}

/*
 * Finds out what @path stands for, in @out of PATH_MAX bytes: what is to be replaced, or to be
 * made.
 */
static int resolve(const char *path, bool overwrite, char *out, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		if (errno == ENOENT && lstat(path, &st) == 0)
			return err_set(e, -ENOENT,
				       "output directory \"%s\" is a symbolic link to nothing",
				       path);
		if (errno != ENOENT)
			return err_sys(e, -errno, "output directory \"%.300s\"", path);
		int r = str_copy(out, PATH_MAX, path);
		return r < 0 ? err_sys(e, r, "output directory \"%.300s\"", path) : 0;
	}
	if (!overwrite)
		return place_exists(e);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "output directory \"%s\": it is not a directory", path);
	if (is_root_directory(&st))
		return err_set(e, -EPERM, "this would delete your root filesystem. Refusing.");
	return realpath(path, out) ? 0 : err_sys(e, -errno, "output directory \"%s\"", path);
}

static int open_parent(const char *path, bool overwrite, struct place *p, struct err *e)
{
	char full[PATH_MAX], dir[PATH_MAX];
	int r = resolve(path, overwrite, full, e);
	if (r < 0)
		return r;
	for (size_t len = strlen(full); len > 1 && full[len - 1] == '/'; len--)
		full[len - 1] = '\0';
	r = temp_name_split(full, dir, sizeof(dir), p->name);
	if (r == -EISDIR)
		return err_set(e, r, "output directory \"%s\": this is not a name for one", path);
	if (r < 0)
		return err_sys(e, r, "output directory \"%.300s\"", path);
	p->parent_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->parent_fd < 0)
		return err_sys(e, -errno, "output directory \"%s\": the directory above it", path);
	return 0;
}

/* What the directory above hands down would be in all that is made. */
static int place_settle(const struct place *p)
{
	(void)fremovexattr(p->fd, "system.posix_acl_access"); /* it may have none */
	(void)fremovexattr(p->fd, "system.posix_acl_default");
	if (fchown(p->fd, (uid_t)-1, getegid()) < 0)
		return -errno;
	return fchmod(p->fd, PLACE_MODE) < 0 ? -errno : 0;
}

static int make_new(struct place *p)
{
	int r = temp_name_make(p->temp);
	if (r == 0 && mkdirat(p->parent_fd, p->temp, PLACE_MODE) < 0)
		r = -errno;
	if (r < 0) {
		p->temp[0] = '\0';
		return r;
	}
	p->fd = openat(p->parent_fd, p->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return p->fd < 0 ? -errno : place_settle(p);
}

int place_open(const char *path, bool overwrite, struct place *ret, struct err *e)
{
	CLEANUP(place_deinit) struct place p = PLACE_INIT;
	p.overwrite = overwrite;
	int r = open_parent(path, overwrite, &p, e);
	if (r < 0)
		return r;
	r = make_new(&p);
	if (r < 0)
		return err_sys(e, r, "cannot create output directory \"%s\"", path);
	*ret = p;
	p = PLACE_INIT;
	return 0;
}

/* Where the file system cannot exchange names the old directory steps aside for a moment. */
static int replace_in_steps(struct place *p)
{
	char aside[TEMP_NAME_LEN + 1];
	int r = temp_name_make(aside);
	if (r == 0 && renameat(p->parent_fd, p->name, p->parent_fd, aside) < 0)
		r = -errno;
	if (r == 0 && renameat(p->parent_fd, p->temp, p->parent_fd, p->name) < 0) {
		r = -errno;
		renameat(p->parent_fd, aside, p->parent_fd, p->name);
	}
	if (r == 0)
		memcpy(p->temp, aside, sizeof(aside));
	return r;
}

/* Gives the new directory its name. An old one has the temporary name then. */
static int place_exchange(struct place *p)
{
	int r = renameat2(p->parent_fd, p->temp, p->parent_fd, p->name, RENAME_NOREPLACE);
	if (r == 0) {
		p->temp[0] = '\0';
		return 0;
	}
	if (errno == EINVAL || errno == ENOSYS) { /* the file system does not know the flag */
		if (renameat(p->parent_fd, p->temp, p->parent_fd, p->name) == 0) {
			p->temp[0] = '\0';
			return 0;
		}
		errno = errno == ENOTEMPTY ? EEXIST : errno;
	}
	if (errno != EEXIST || !p->overwrite)
		return -errno;
	if (renameat2(p->parent_fd, p->temp, p->parent_fd, p->name, RENAME_EXCHANGE) == 0)
		return 0;
	return errno == EINVAL || errno == ENOSYS ? replace_in_steps(p) : -errno;
}

int place_publish(struct place *p, struct err *e)
{
	if (syncfs(p->fd) < 0)
		return err_sys(e, -errno, "cannot write output directory \"%s\" to disk", p->name);
	int r = place_exchange(p);
	if (r == -EEXIST)
		return place_exists(e);
	if (r == -EBUSY)
		return err_set(e, r, "cannot replace output directory \"%s\": it is a mount point",
			       p->name);
	if (r < 0)
		return err_sys(e, r, "cannot complete output directory \"%s\"", p->name);
	if (fsync(p->parent_fd) < 0 && errno != EINVAL)
		return err_sys(e, -errno, "cannot write output directory \"%s\" to disk", p->name);
	r = p->temp[0] ? rmtree(p->parent_fd, p->temp) : 0;
	if (r < 0)
		err_sys(e, r,
			"output directory \"%s\" is complete, but what it replaces cannot be "
			"removed; it is in \"%s\" now",
			p->name, p->temp);
	p->temp[0] = '\0';
	return r;
}

void place_deinit(struct place *p)
{
	fd_close(p->fd);
	if (p->temp[0])
		rmtree(p->parent_fd, p->temp);
	fd_close(p->parent_fd);
	*p = PLACE_INIT;
}
