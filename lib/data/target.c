/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/data/temp_name.h"
#include "lib/os/fd.h"

#define TARGET_MODE 0644

/* Opens the directory of @path, and takes the name in it. */
static int open_directory(const char *path, struct target *t, struct err *e)
{
	char dir[PATH_MAX];
	int r = temp_name_split(path, dir, sizeof(dir), t->name);
	if (r == -EISDIR)
		return err_set(e, r, "unable to open target \"%s\": it names no file", path);
	if (r < 0)
		return err_sys(e, r, "unable to open target \"%.300s\"", path);
	t->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir_fd < 0)
		return err_sys(e, -errno, "unable to open target \"%s\": its directory", path);
	return 0;
}

static int target_exists(const struct target *t, struct err *e)
{
	return err_set(e, -EEXIST, "%s exists (try --overwrite)", t->what);
}

static int check_existing(const struct target *t, const char *path, struct err *e)
{
	struct stat st;
	if (fstatat(t->dir_fd, t->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : err_sys(e, -errno, "unable to open target \"%s\"", path);
	if (!t->overwrite)
		return target_exists(t, e);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EEXIST, "unable to open target \"%s\": it is not a regular file",
			       path);
	return 0;
}

static int open_file(struct target *t)
{
	t->fd = openat(t->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, TARGET_MODE);
	if (t->fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return t->fd < 0 ? -errno : 0;
	int r = temp_name_make(t->temp);
	if (r < 0)
		return r;
	t->fd = openat(t->dir_fd, t->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       TARGET_MODE);
	if (t->fd >= 0)
		return 0;
	t->temp[0] = '\0';
	return -errno;
}

int target_open(const char *path, const char *what, bool overwrite, struct target *ret,
		struct err *e)
{
	CLEANUP(target_deinit) struct target t = TARGET_INIT;
	t.what = what;
	t.overwrite = overwrite;
	int r = open_directory(path, &t, e);
	if (r == 0)
		r = check_existing(&t, path, e);
	if (r < 0)
		return r;
	r = open_file(&t);
	if (r < 0)
		return err_sys(e, r, "unable to open target \"%s\"", path);
	*ret = t;
	t = TARGET_INIT;
	return 0;
}

static int publish_new(struct target *t)
{
	if (!t->temp[0])
		return fd_link_at(t->fd, t->dir_fd, t->name);
	return linkat(t->dir_fd, t->temp, t->dir_fd, t->name, 0) < 0 ? -errno : 0;
}

/* linkat(2) replaces nothing, so the file needs another name for a moment. */
static int publish_over(struct target *t)
{
	int r = 0;
	if (!t->temp[0]) {
		r = temp_name_make(t->temp);
		if (r == 0)
			r = fd_link_at(t->fd, t->dir_fd, t->temp);
	}
	if (r == 0 && renameat(t->dir_fd, t->temp, t->dir_fd, t->name) < 0)
		r = -errno;
	if (r == 0)
		t->temp[0] = '\0';
	return r;
}

int target_publish(struct target *t, struct err *e)
{
	int r = fsync(t->fd) < 0 ? -errno : 0;
	if (r == 0)
		r = t->overwrite ? publish_over(t) : publish_new(t);
	if (r == -EEXIST)
		return target_exists(t, e);
	if (r == 0 && fsync(t->dir_fd) < 0 && errno != EINVAL)
		r = -errno;
	return r < 0 ? err_sys(e, r, "cannot complete \"%s\"", t->name) : 0;
}

void target_deinit(struct target *t)
{
	if (t->temp[0])
		unlinkat(t->dir_fd, t->temp, 0);
	fd_close(t->fd);
	fd_close(t->dir_fd);
	*t = TARGET_INIT;
}
