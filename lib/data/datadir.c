/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define PRIVATE_MODE ((mode_t)0750)
#define SHARING      ((mode_t)(S_ISGID | S_IWGRP))

static void datadir_describe(const struct stat *st, struct datadir *ret)
{
	*ret = (struct datadir){
		.owner = st->st_uid,
		.shared = (st->st_mode & SHARING) == SHARING,
		.ours = geteuid() == 0 || geteuid() == st->st_uid,
	};
}

int datadir_read(int fd, struct datadir *ret)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	datadir_describe(&st, ret);
	return 0;
}

/*
 * The sticky bit takes nothing from anybody but the power to replace what is another's. What may
 * have been replaced before belongs to who did it, which datadir_open() finds out.
 */
static int make_sticky(int fd, const struct stat *st, const char *path, const struct datadir *d,
		       struct err *e)
{
	if (d->ours && fchmod(fd, (st->st_mode & 07777) | S_ISVTX) == 0)
		return 0;
	return err_set(e, -EPERM,
		       "data directory \"%s\": its group can replace what is in it (its owner has "
		       "to use it once, or: chmod 3770 %s)",
		       path, path);
}

int datadir_check(int fd, const char *path, struct err *e)
{
	struct stat st;
	struct datadir d;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "data directory \"%s\"", path);
	datadir_describe(&st, &d);
	if (st.st_mode & S_IWOTH)
		return err_set(e, -EPERM,
			       "data directory \"%s\": everybody can write there (chmod o-w %s)",
			       path, path);
	if (d.shared)
		return st.st_mode & S_ISVTX ? 0 : make_sticky(fd, &st, path, &d, e);
	if (st.st_mode & S_IWGRP)
		return err_set(e, -EPERM,
			       "data directory \"%s\": its group can write there (chmod g-w %s; to "
			       "share it with the group: chmod 3770 %s)",
			       path, path, path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(
			e, -EPERM,
			"data directory \"%s\" belongs to user %u (run husk as that user, or "
			"use another one with --dir)",
			path, (unsigned)st.st_uid);
	return 0;
}

/* What of the mode @is lets others write where @wanted does not. */
static bool is_too_open(mode_t is, mode_t wanted)
{
	if (is & S_IWOTH)
		return true;
	if (!(is & S_IWGRP))
		return false;
	return !(wanted & S_IWGRP) || (wanted & S_ISVTX && !(is & S_ISVTX));
}

static int check_part(const struct datadir *d, int fd, const char *what, mode_t wanted,
		      struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "cannot open %s", what);
	if (st.st_uid != d->owner && st.st_uid != 0)
		return err_set(e, -EPERM,
			       "%s belongs to user %u instead of %u (if you trust what is in it: "
			       "chown %u; else remove it)",
			       what, (unsigned)st.st_uid, (unsigned)d->owner, (unsigned)d->owner);
	if (is_too_open(st.st_mode, wanted))
		return err_set(e, -EPERM,
			       "%s can be changed by others, mode %o (if you trust what is in it: "
			       "chmod %o; else remove it)",
			       what, (unsigned)(st.st_mode & 07777), (unsigned)wanted);
	return 0;
}

/*
 * Makes the directory, which then has its mode whatever the umask is. 0, also if it is there, or
 * -errno and @e.
 */
static int make_part(struct datadir *d, int parent, const char *name, const char *what,
		     mode_t wanted, struct err *e)
{
	if (!d->ours) {
		if (!d->shared || faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return 0;
		return err_set(e, -EACCES,
			       "%s is missing: the owner of the data directory has to use it first "
			       "(husk image list)",
			       what);
	}
	if (mkdirat(parent, name, PRIVATE_MODE) < 0)
		return errno == EEXIST ? 0 : err_sys(e, -errno, "cannot create %s", what);
	d->made = true;
	if (!d->shared)
		return 0;
	cleanup_fd int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, wanted) < 0)
		return err_sys(e, -errno, "cannot share %s with the group", what);
	return 0;
}

int datadir_open(struct datadir *d, int parent, const char *name, const char *what, bool create,
		 mode_t shared_mode, struct err *e)
{
	mode_t wanted = d->shared ? shared_mode : PRIVATE_MODE;
	int r = create ? make_part(d, parent, name, what, wanted, e) : 0;
	if (r < 0)
		return r;
	cleanup_fd int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !create)
		return -ENOENT;
	if (fd < 0)
		return err_sys(e, -errno, "cannot open %s", what);
	r = check_part(d, fd, what, wanted, e);
	return r < 0 ? r : TAKE_FD(fd);
}

int datadir_sync(struct datadir *d, int fd, const char *what, struct err *e)
{
	if (d->made && fsync(fd) < 0)
		return err_sys(e, -errno, "cannot sync %s", what);
	d->made = false;
	return 0;
}
