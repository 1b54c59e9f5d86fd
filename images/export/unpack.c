/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: two walks. The first makes everything; directories are the user's own, mode
 * 0700, until the second walk gives them what the tree says, the innermost first. So nobody else
 * can meddle with what is not finished, links reach names in any directory, and times stay.
 *
 * The first name of an inode that has several makes the file; @firsts remembers it, and the others
 * are links to it.
 *
 * What a process without CAP_DAC_OVERRIDE can do decides the order at a file: user attributes while
 * it is still the user's, then owner (which takes set-ID bits and capabilities away), mode,
 * capability, times.
 */
#include "images/export/unpack.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"

#define CHUNK        ((size_t)1024 * 1024) /* bytes of content in memory */
#define SHOWN        ((size_t)512)         /* bytes of a path in a message */
#define SET_IDS      ((mode_t)(S_ISUID | S_ISGID))
#define DIR_FLAGS    (O_DIRECTORY | O_NOFOLLOW)
#define XATTR_USER   "user."
#define XATTR_CAPS   "security.capability"
#define MODE_WORKING 0700 /* of a directory that is not finished */

struct unpack {
	int top;
	dev_t dev;
	const struct content_reader *readers;
	const struct unpack_user *user;
	const struct tree_node **firsts; /* by tree_inode.number - 1 */
	size_t n_firsts;
	struct unpack_report report;
	uint64_t bytes_left; /* of UNPACK_BYTES_MAX */
	char *chunk;
	struct err *e;
	/* Here, not in functions that are deep in a recursion when they run. */
	const struct tree_node *steps[TREE_DEPTH_MAX];
	char shown[SHOWN];
};

static void unpack_deinit(struct unpack *u)
{
	free(u->firsts);
	free(u->chunk);
}

static bool is_root(const struct unpack *u)
{
	return u->user->uid == 0;
}

/* The path of @node for a message, the end of it if it is long. Valid until the next call. */
static const char *path_of(struct unpack *u, const struct tree_node *node)
{
	return tree_node_path(node, u->shown, SHOWN);
}

/* @r is -errno of a call for @node. */
static int unpack_fail(struct unpack *u, const struct tree_node *node, int r)
{
	if (r == -EEXIST)
		return err_set(u->e, r,
			       "\"%s\": something of this name is there already (does another "
			       "program write here?)",
			       path_of(u, node));
	if (r == -ENOSPC || r == -EDQUOT)
		return err_set(u->e, r, "\"%s\": %s (free some space or extract elsewhere)",
			       path_of(u, node), strerror(-r));
	return err_sys(u->e, r, "\"%s\"", path_of(u, node));
}

/* Which of the mode's bits the file gets. */
static mode_t mode_of(struct unpack *u, const struct tree_inode *inode)
{
	mode_t mode = inode->mode & 07777, lost = 0;
	if (!is_root(u) && (mode & S_ISUID) && tree_uid(inode) != u->user->uid)
		lost |= S_ISUID;
	if (!is_root(u) && (mode & S_ISGID) && tree_gid(inode) != u->user->gid)
		lost |= S_ISGID;
	u->report.set_ids += lost != 0 ? 1 : 0;
	return mode & ~lost;
}

/* Sets one attribute; what this user or this file system cannot keep is counted. */
static int set_xattr(struct unpack *u, const struct tree_node *node, int fd,
		     const struct tree_xattr *x)
{
	if (fsetxattr(fd, x->name, tree_xattr_value(x), x->size, 0) == 0)
		return 0;
	if (errno == EPERM || errno == EOPNOTSUPP) {
		u->report.xattrs++;
		return 0;
	}
	return err_sys(u->e, -errno, "\"%s\": extended attribute \"%s\"", path_of(u, node),
		       x->name);
}

/* The attributes that the owner may set. All others but the capability are left out. */
static int set_user_xattrs(struct unpack *u, const struct tree_node *node, int fd)
{
	const struct tree_inode *inode = tree_inode_of(node);
	int r = 0;
	for (const struct tree_xattr *x = tree_xattrs(inode); x && r == 0; x = tree_next_xattr(x)) {
		if (fd >= 0 && str_starts(x->name, XATTR_USER))
			r = set_xattr(u, node, fd, x);
		else if (!is_root(u) || !S_ISREG(inode->mode) || strcmp(x->name, XATTR_CAPS) != 0)
			u->report.xattrs++;
	}
	return r;
}

static int set_capability(struct unpack *u, const struct tree_node *node, int fd)
{
	const struct tree_inode *inode = tree_inode_of(node);
	if (!is_root(u) || !S_ISREG(inode->mode))
		return 0;
	for (const struct tree_xattr *x = tree_xattrs(inode); x; x = tree_next_xattr(x))
		if (strcmp(x->name, XATTR_CAPS) == 0)
			return set_xattr(u, node, fd, x);
	return 0;
}

static void times_of(const struct tree_inode *inode, struct timespec out[2])
{
	out[0] = out[1] = (struct timespec){ .tv_sec = (time_t)inode->mtime };
}

/* Gives the open file or directory everything but content. */
static int set_attributes(struct unpack *u, const struct tree_node *node, int fd)
{
	const struct tree_inode *inode = tree_inode_of(node);
	struct timespec times[2];
	times_of(inode, times);
	int r = set_user_xattrs(u, node, fd);
	if (r < 0)
		return r;
	if ((is_root(u) && fchown(fd, tree_uid(inode), tree_gid(inode)) < 0) ||
	    fchmod(fd, mode_of(u, inode)) < 0)
		return unpack_fail(u, node, -errno);
	r = set_capability(u, node, fd);
	if (r < 0)
		return r;
	return futimens(fd, times) < 0 ? unpack_fail(u, node, -errno) : 0;
}

/* The same for what cannot be opened, by its name in @dir. The mode is right already. */
static int set_attributes_at(struct unpack *u, const struct tree_node *node, int dir)
{
	const struct tree_inode *inode = tree_inode_of(node);
	struct timespec times[2];
	times_of(inode, times);
	int r = set_user_xattrs(u, node, -EBADF);
	if (r < 0)
		return r;
	if ((is_root(u) && fchownat(dir, node->name, tree_uid(inode), tree_gid(inode),
				    AT_SYMLINK_NOFOLLOW) < 0) ||
	    utimensat(dir, node->name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return unpack_fail(u, node, -errno);
	return 0;
}

static int write_piece(struct unpack *u, const struct tree_node *node, int fd,
		       const struct content_piece *piece)
{
	const struct content_reader *reader = &u->readers[tree_inode_of(node)->layer];
	for (uint64_t done = 0; done < piece->len;) {
		size_t n = (size_t)MIN(piece->len - done, (uint64_t)CHUNK);
		int r = reader->read(reader->ctx, piece, done, u->chunk, n, u->e);
		if (r < 0)
			return r;
		r = fd_write_at(fd, u->chunk, n, piece->offset + done);
		if (r < 0)
			return unpack_fail(u, node, r);
		done += n;
	}
	return 0;
}

/* Writes the content into the empty file @fd. Holes stay holes. */
static int write_content(struct unpack *u, const struct tree_node *node, int fd)
{
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	const struct tree_inode *inode = tree_inode_of(node);
	const struct content_reader *reader = &u->readers[inode->layer];
	uint64_t size = tree_size(inode);
	if (size > u->bytes_left)
		return err_set(u->e, -EFBIG,
			       "\"%s\": all files together have more than %llu GiB, holes included",
			       path_of(u, node), (unsigned long long)(UNPACK_BYTES_MAX >> 30));
	u->bytes_left -= size;
	if (size == 0)
		return 0;
	int r = reader->map(reader->ctx, inode, &map, u->e);
	if (r < 0)
		return err_context(u->e, "\"%s\"", path_of(u, node));
	for (size_t i = 0; i < map.n && r == 0; i++)
		if (map.v[i].at != CONTENT_ZEROS)
			r = write_piece(u, node, fd, &map.v[i]);
	if (r == 0 && ftruncate(fd, (off_t)size) < 0)
		r = unpack_fail(u, node, -errno);
	return r;
}

static int make_file(struct unpack *u, const struct tree_node *node, int dir)
{
	cleanup_fd int fd =
		openat(dir, node->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return unpack_fail(u, node, -errno);
	int r = write_content(u, node, fd);
	return r == 0 ? set_attributes(u, node, fd) : r;
}

static int make_symlink(struct unpack *u, const struct tree_node *node, int dir)
{
	if (symlinkat(tree_target(tree_inode_of(node)), dir, node->name) < 0)
		return unpack_fail(u, node, -errno);
	return set_attributes_at(u, node, dir);
}

/* 1 if it was left out. */
static int make_special(struct unpack *u, const struct tree_node *node, int dir)
{
	const struct tree_inode *inode = tree_inode_of(node);
	bool is_device = S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
	dev_t dev = is_device ? makedev(tree_major(inode), tree_minor(inode)) : 0;
	if (is_device && !is_root(u)) {
		u->report.devices++;
		return 1;
	}
	/* The umask is 0. */
	int r = mknodat(dir, node->name, inode->mode & ~SET_IDS, dev) < 0 ? -errno : 0;
	if (r == -EPERM && is_device) { /* root of a container */
		u->report.devices++;
		return 1;
	}
	return r < 0 ? unpack_fail(u, node, r) : set_attributes_at(u, node, dir);
}

/* Opens the directory of @node, step by step. The descriptor or -errno. */
static int open_dir_of(struct unpack *u, const struct tree_node *node)
{
	size_t n = 0;
	for (node = tree_parent(node); node && tree_parent(node); node = tree_parent(node)) {
		if (n == TREE_DEPTH_MAX)
			return -ELOOP;
		u->steps[n++] = node;
	}
	cleanup_fd int fd = openat(u->top, ".", O_PATH | DIR_FLAGS | O_CLOEXEC);
	while (fd >= 0 && n > 0)
		fd_replace(&fd, openat(fd, u->steps[--n]->name, O_PATH | DIR_FLAGS | O_CLOEXEC));
	return fd < 0 ? -errno : TAKE_FD(fd);
}

static int make_link(struct unpack *u, const struct tree_node *node, int dir)
{
	const struct tree_node *first = u->firsts[tree_inode_of(node)->number - 1];
	cleanup_fd int from = open_dir_of(u, first);
	if (from < 0)
		return unpack_fail(u, node, from);
	if (linkat(from, first->name, dir, node->name, 0) < 0)
		return unpack_fail(u, node, -errno);
	return 0;
}

/*
 * Opens a directory of ours that was just made, or is to be finished. The descriptor, or -errno
 * with u->e.
 */
static int open_own_dir(struct unpack *u, const struct tree_node *node, int dir)
{
	struct stat st;
	cleanup_fd int fd = openat(dir, node->name, O_RDONLY | DIR_FLAGS | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return unpack_fail(u, node, -errno);
	if (st.st_dev != u->dev || st.st_uid != u->user->uid)
		return err_set(u->e, -ESTALE, "\"%s\": another program has put a directory there",
			       path_of(u, node));
	return TAKE_FD(fd);
}

static int make_children(struct unpack *u, const struct tree_node *parent, int dir);

static int make_dir(struct unpack *u, const struct tree_node *node, int dir)
{
	if (mkdirat(dir, node->name, MODE_WORKING) < 0)
		return unpack_fail(u, node, -errno);
	cleanup_fd int fd = open_own_dir(u, node, dir);
	return fd < 0 ? fd : make_children(u, node, fd);
}

/* Makes the first or only name of what is not a directory. */
static int make_inode(struct unpack *u, const struct tree_node *node, int dir)
{
	struct tree_inode *inode = tree_inode_of(node);
	int r = S_ISREG(inode->mode)   ? make_file(u, node, dir)
		: S_ISLNK(inode->mode) ? make_symlink(u, node, dir)
				       : make_special(u, node, dir);
	if (r == 0 && inode->nlink > 1) {
		u->firsts[u->n_firsts++] = node;
		inode->number = (uint32_t)u->n_firsts;
	}
	return r < 0 ? r : 0;
}

static int make_node(struct unpack *u, const struct tree_node *node, int dir)
{
	const struct tree_inode *inode = tree_inode_of(node);
	/* The tree's reader has looked already; what was forgotten there ends here. */
	if (!tree_is_name(node->name, strlen(node->name)))
		return err_set(u->e, -EBADMSG, "the tree has the name \"%s\", which none can be",
			       node->name);
	if (S_ISSOCK(inode->mode))
		return 0;
	if (S_ISDIR(inode->mode))
		return make_dir(u, node, dir);
	return inode->number != 0 ? make_link(u, node, dir) : make_inode(u, node, dir);
}

static int make_children(struct unpack *u, const struct tree_node *parent, int dir)
{
	int r = 0;
	for (const struct tree_node *n = tree_children(parent); n && r == 0; n = tree_next(n))
		r = make_node(u, n, dir);
	return r;
}

/* Finishes the directory @fd, and before that those below it. */
static int finish_dir(struct unpack *u, const struct tree_node *node, int fd)
{
	for (const struct tree_node *n = tree_children(node); n; n = tree_next(n)) {
		if (!S_ISDIR(tree_inode_of(n)->mode))
			continue;
		cleanup_fd int child = open_own_dir(u, n, fd);
		int r = child < 0 ? child : finish_dir(u, n, child);
		if (r < 0)
			return r;
	}
	return set_attributes(u, node, fd);
}

static int unpack_prepare(struct unpack *u, const struct tree *t)
{
	struct stat st;
	u->chunk = malloc(CHUNK);
	u->firsts = calloc(tree_count(t), sizeof(struct tree_node *));
	if (!u->chunk || !u->firsts)
		return err_set(u->e, -ENOMEM, "out of memory");
	if (fstat(u->top, &st) < 0)
		return err_sys(u->e, -errno, "the new directory");
	u->dev = st.st_dev;
	return 0;
}

int unpack_tree(int dir_fd, const struct tree *t,
		const struct content_reader readers[CONTENT_COUNT_], const struct unpack_user *user,
		struct unpack_report *ret, struct err *e)
{
	CLEANUP(unpack_deinit)
	struct unpack u = {
		.top = dir_fd,
		.readers = readers,
		.user = user,
		.bytes_left = UNPACK_BYTES_MAX,
		.e = e,
	};
	int r = unpack_prepare(&u, t);
	if (r < 0)
		return r;
	mode_t mask = umask(0);
	r = make_children(&u, tree_root(t), dir_fd);
	if (r == 0)
		r = finish_dir(&u, tree_root(t), dir_fd);
	umask(mask);
	if (r == 0)
		*ret = u.report;
	return r;
}
