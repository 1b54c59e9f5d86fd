/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Directories and files are remembered by number: the number of their
 * directory, and their name there. To read one, the directories on the way to it are opened, one
 * name at a time; those of the last one stay open (the chain), and as both the walk and the archive
 * go down and come back, each is opened a few times at most.
 */
#include "images/export/upper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "images/render/layer.h"
#include "lib/base/buf.h"
#include "lib/os/fd.h"

#define NAMES_MAX   (TREE_NODES_MAX * (TREE_NAME_MAX + 1)) /* bytes; the tree has less room */
#define DIRENTS_MAX ((size_t)32 * 1024)                    /* bytes of entries read at a time */

struct upper_file {
	uint32_t dir;  /* number */
	uint32_t name; /* offset among the names */
};

struct link {
	ino_t ino;
	struct tree_inode *inode;
};

struct chain_link {
	uint32_t number;
	int fd;
};

struct upper {
	int root; /* number 0 */
	dev_t dev;
	uint64_t bytes_left; /* that contents may have */
	struct upper_file *files;
	size_t n_files;
	struct buf names;
	struct chain_link *chain; /* below the root; TREE_DEPTH_MAX */
	size_t n_chain;
	int fd; /* the current file, or -EBADF */

	/* While the tree is read. */
	struct tree *t;
	void *links; /* tsearch(3): those with several names */
	char *dirents;
	char *attributes, *value; /* XATTR_LIST_MAX, XATTR_SIZE_MAX */
	struct err *e;
};

static int full(const struct upper *u)
{
	return err_set(u->e, -E2BIG,
		       "the app's changes have too many files, or they are too deep, or their "
		       "attributes are too large, or they have too many owners");
}

static int failed(const struct upper *u, int r, const char *name)
{
	return err_sys(u->e, r, "the app's file \"%s\"", name);
}

int upper_open(int dir, struct upper **ret, struct err *e)
{
	CLEANUP(upper_freep) struct upper *u = calloc(1, sizeof(*u));
	struct statvfs fs;
	struct stat st;
	if (!u)
		return err_sys(e, -ENOMEM, "out of memory");
	u->fd = -EBADF;
	buf_init(&u->names, NAMES_MAX);
	u->root = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (u->root < 0 || fstat(u->root, &st) < 0 || fstatvfs(u->root, &fs) < 0)
		return err_sys(e, -errno, "the directory with the app's changes");
	u->dev = st.st_dev;
	u->bytes_left = (uint64_t)fs.f_blocks * fs.f_frsize;
	u->chain = calloc(TREE_DEPTH_MAX, sizeof(*u->chain));
	u->dirents = malloc(DIRENTS_MAX);
	u->attributes = malloc(XATTR_LIST_MAX);
	u->value = malloc(XATTR_SIZE_MAX);
	if (!u->chain || !u->dirents || !u->attributes || !u->value)
		return err_sys(e, -ENOMEM, "out of memory");
	*ret = TAKE_PTR(u);
	return 0;
}

static void close_chain(struct upper *u, size_t keep)
{
	while (u->n_chain > keep)
		fd_close(u->chain[--u->n_chain].fd);
}

void upper_free(struct upper *u)
{
	if (!u)
		return;
	close_chain(u, 0);
	fd_close(u->root);
	fd_close(u->fd);
	tdestroy(u->links, free);
	buf_deinit(&u->names);
	free(u->files);
	free(u->chain);
	free(u->dirents);
	free(u->attributes);
	free(u->value);
	free(u);
}

/* ---- numbers ---- */

static const char *name_of(const struct upper *u, uint32_t number)
{
	return (const char *)buf_data(&u->names) + u->files[number].name;
}

/* A number for the file @name of the directory number @dir. 0, or -errno and u->e. */
static int remember(struct upper *u, uint32_t dir, const char *name, uint32_t *ret)
{
	size_t at = buf_len(&u->names);
	if (!GROW(u->files, u->n_files))
		return err_sys(u->e, -ENOMEM, "out of memory");
	if (buf_append(&u->names, name, strlen(name) + 1) < 0)
		return full(u);
	u->files[u->n_files] = (struct upper_file){ dir, (uint32_t)at };
	*ret = (uint32_t)u->n_files++;
	return 0;
}

/* Opens the directory @number, whose descriptor stays ours, or yields -errno. */
static int open_number(struct upper *u, uint32_t number)
{
	uint32_t way[TREE_DEPTH_MAX];
	size_t n = 0, common = 0;
	for (uint32_t at = number; at != 0; at = u->files[at].dir) {
		if (n == ARRAY_SIZE(way))
			return -ELOOP;
		way[n++] = at;
	}
	while (common < u->n_chain && common < n && u->chain[common].number == way[n - 1 - common])
		common++;
	close_chain(u, common);
	for (size_t i = common; i < n; i++) {
		int above = i == 0 ? u->root : u->chain[i - 1].fd;
		uint32_t at = way[n - 1 - i];
		int fd = openat(above, name_of(u, at),
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		u->chain[u->n_chain++] = (struct chain_link){ at, fd };
	}
	return n == 0 ? u->root : u->chain[n - 1].fd;
}

/* ---- inodes; the working directory is that of the name ---- */

static int add_attribute(struct upper *u, struct tree_inode *to, const char *name, const char *key)
{
	ssize_t size = lgetxattr(name, key, u->value, XATTR_SIZE_MAX);
	if (size < 0)
		return failed(u, -errno, name);
	if (strlen(key) > LAYER_XATTR_NAME_MAX || (size_t)size > LAYER_XATTR_VALUE_MAX)
		return full(u);
	return tree_add_xattr(u->t, to, key, u->value, (size_t)size) == 0 ? 0 : full(u);
}

static int read_attributes(struct upper *u, struct tree_inode *to, const char *name)
{
	ssize_t len = llistxattr(name, u->attributes, XATTR_LIST_MAX);
	size_t n = 0;
	int r = 0;
	if (len < 0)
		return errno == EOPNOTSUPP ? 0 : failed(u, -errno, name);
	for (const char *key = u->attributes; r == 0 && key < u->attributes + len;
	     key += strlen(key) + 1)
		r = ++n > LAYER_XATTRS_MAX ? full(u) : add_attribute(u, to, name, key);
	return r;
}

static int read_target(struct upper *u, struct tree_inode *to, const char *name)
{
	char target[LAYER_TARGET_MAX + 1];
	ssize_t len = readlink(name, target, sizeof(target));
	if (len < 0)
		return failed(u, -errno, name);
	if (len == 0 || (size_t)len > LAYER_TARGET_MAX)
		return failed(u, -ENAMETOOLONG, name);
	return tree_set_target(u->t, to, target, (size_t)len) == 0 ? 0 : full(u);
}

/* Fields that only some types have. */
static int take_type(struct upper *u, struct tree_inode *to, const char *name,
		     const struct stat *st)
{
	const struct tree_content c = { .size = (uint64_t)st->st_size,
					.fragment = TREE_NO_FRAGMENT };
	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		if (c.size > UPPER_FILE_MAX)
			return failed(u, -EFBIG, name);
		return tree_set_content(u->t, to, &c) == 0 ? 0 : full(u);
	case S_IFLNK:
		return read_target(u, to, name);
	case S_IFCHR:
	case S_IFBLK:
		tree_set_device(to, major(st->st_rdev), minor(st->st_rdev));
		return 0;
	case S_IFDIR:
	case S_IFIFO:
	case S_IFSOCK:
		return 0;
	default:
		return failed(u, -EINVAL, name);
	}
}

static int take_inode(struct upper *u, const char *name, const struct stat *st,
		      struct tree_inode **ret)
{
	struct tree_inode *to;
	if (st->st_dev != u->dev)
		return failed(u, -EXDEV, name);
	if (tree_inode_new(u->t, &to) != 0)
		return full(u);
	to->layer = CONTENT_DISK;
	to->mode = (uint16_t)st->st_mode;
	to->mtime = (uint32_t)MIN(MAX(st->st_mtime, (time_t)0), (time_t)UINT32_MAX);
	if (tree_set_owner(u->t, to, st->st_uid, st->st_gid) != 0)
		return full(u);
	*ret = to;
	int r = take_type(u, to, name, st);
	return r == 0 ? read_attributes(u, to, name) : r;
}

static int compare_links(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* The place for the inode of a file with several names: empty, or it was there before. */
static struct tree_inode **find_link(struct upper *u, ino_t ino)
{
	struct link *fresh = malloc(sizeof(*fresh));
	if (!fresh)
		return NULL;
	*fresh = (struct link){ .ino = ino };
	struct link **found = tsearch(fresh, &u->links, compare_links);
	if (!found || *found != fresh)
		free(fresh);
	return found ? &(*found)->inode : NULL;
}

/* ---- directories ---- */

/* The inode of @name in the directory number @dir. 0, or -errno and u->e. */
static int find_inode(struct upper *u, uint32_t dir, const char *name, struct tree_inode **ret)
{
	struct tree_inode *mine = NULL, **known = &mine;
	struct stat st;
	if (fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return failed(u, -errno, name);
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1)
		known = find_link(u, st.st_ino);
	if (!known)
		return err_sys(u->e, -ENOMEM, "out of memory");
	int r = *known ? 0 : take_inode(u, name, &st, known);
	if (r == 0 && (*known)->place == 0 &&
	    (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && st.st_size > 0)))
		r = remember(u, dir, name, &(*known)->place);
	*ret = *known;
	return r;
}

static int add_entry(struct upper *u, struct tree_node *dir, const char *name)
{
	struct tree_inode *inode = NULL;
	struct tree_node *node;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (!tree_is_name(name, strlen(name)))
		return failed(u, -EINVAL, name);
	int r = find_inode(u, tree_inode_of(dir)->place, name, &inode);
	if (r < 0)
		return r;
	return tree_add(u->t, dir, name, strlen(name), inode, &node) == 0 ? 0 : full(u);
}

static int read_entries(struct upper *u, struct tree_node *dir, int fd)
{
	ssize_t len;
	while ((len = getdents64(fd, u->dirents, DIRENTS_MAX)) > 0) {
		const struct dirent64 *entry;
		for (ssize_t at = 0; at < len; at += entry->d_reclen) {
			entry = (const struct dirent64 *)(const void *)(u->dirents + at);
			int r = add_entry(u, dir, entry->d_name);
			if (r < 0)
				return r;
		}
	}
	return len < 0 ? err_sys(u->e, -errno, "a directory of the app's") : 0;
}

/* TREE_DEPTH_MAX bounds the recursion. */
static int read_dir(struct upper *u, struct tree_node *dir)
{
	int fd = open_number(u, tree_inode_of(dir)->place);
	if (fd < 0 || fchdir(fd) < 0)
		return failed(u, fd < 0 ? fd : -errno, dir->name);
	int r = read_entries(u, dir, fd);
	for (struct tree_node *n = tree_children(dir); r == 0 && n; n = tree_next(n))
		if (S_ISDIR(tree_inode_of(n)->mode))
			r = read_dir(u, n);
	return r;
}

static int read_root(struct upper *u)
{
	struct tree_inode *inode = NULL;
	struct stat st;
	uint32_t number;
	int r = remember(u, 0, "", &number); /* 0 */
	if (r < 0)
		return r;
	if (fchdir(u->root) < 0 || fstat(u->root, &st) < 0)
		return failed(u, -errno, "/");
	r = take_inode(u, ".", &st, &inode);
	if (r < 0)
		return r;
	tree_set_dir_inode(u->t, tree_root(u->t), inode);
	return read_dir(u, tree_root(u->t));
}

int upper_tree(struct upper *u, struct tree **ret, struct err *e)
{
	CLEANUP(tree_freep) struct tree *t = NULL;
	if (tree_new(&t) < 0)
		return err_sys(e, -ENOMEM, "out of memory");
	u->t = t;
	u->e = e;
	int r = read_root(u);
	u->t = NULL;
	if (r == 0)
		*ret = TAKE_PTR(t);
	return r;
}

/* ---- contents ---- */

/* The next piece of data from @from on. 0, 1 if there is none, -errno. */
static int find_data(int fd, off_t from, off_t *ret_start, off_t *ret_end)
{
	*ret_start = lseek(fd, from, SEEK_DATA);
	if (*ret_start < 0)
		return errno == ENXIO ? 1 : -errno;
	*ret_end = lseek(fd, *ret_start, SEEK_HOLE);
	return *ret_end < 0 ? -errno : 0;
}

static int map_data(struct upper *u, uint64_t size, struct content_map *ret)
{
	off_t start, end = 0;
	int r;
	while ((r = find_data(u->fd, end, &start, &end)) == 0) {
		uint64_t len = (uint64_t)(end - start);
		if (len > u->bytes_left)
			return -EFBIG;
		u->bytes_left -= len;
		r = content_map_add(ret, (uint64_t)start, len, (uint64_t)start);
		if (r < 0)
			return r;
	}
	content_map_clip(ret, size);
	return MIN(r, 0);
}

static int upper_map(void *ctx, const struct tree_inode *inode, struct content_map *ret,
		     struct err *e)
{
	struct upper *u = ctx;
	struct stat st;
	uint32_t number = inode->place;
	if (tree_size(inode) == 0)
		return 0;
	u->e = e;
	int dir = number < u->n_files ? open_number(u, u->files[number].dir) : -EBADF;
	if (dir < 0)
		return err_sys(e, dir, "a directory of the app's");
	const char *name = name_of(u, number);
	fd_replace(&u->fd,
		   openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
	if (u->fd < 0 || fstat(u->fd, &st) < 0)
		return failed(u, -errno, name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != tree_size(inode))
		return failed(u, -ESTALE, name);
	int r = map_data(u, tree_size(inode), ret);
	if (r == -EFBIG)
		return err_set(e, r,
			       "the app's files have more bytes than their file system (it has "
			       "made copies that share their blocks)");
	return r < 0 ? failed(u, r, name) : 0;
}

static int upper_read(void *ctx, const struct content_piece *piece, uint64_t skip, void *mem,
		      size_t len, struct err *e)
{
	const struct upper *u = ctx;
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(u->fd, (char *)mem + done, len - done,
				  (off_t)(piece->at + skip + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(e, n < 0 ? -errno : -ESTALE, "a file of the app's");
		done += (size_t)n;
	}
	return 0;
}

struct content_reader upper_reader(struct upper *u)
{
	return (struct content_reader){ .map = upper_map, .read = upper_read, .ctx = u };
}
