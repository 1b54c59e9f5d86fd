/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a directory's entries are read into the tree first, then its subdirectories
 * in turn. Each inode is read once; a second name of a directory is an error, so circles cannot be.
 * TREE_DEPTH_MAX bounds the recursion, TREE_NODES_MAX the rest.
 */
#include "images/export/ext4_acl.h"
#include "images/export/ext4_int.h"

#include <string.h>
#include <sys/stat.h>

#include "images/render/layer.h"
#include "lib/wire/agent.h"

/* Their blocks are not what they seem, and stage1's mkfs.ext4 did not allow them. */
#define FLAGS_REFUSED (EXT4_INLINE_DATA_FL | EXT4_ENCRYPT_FL | EXT4_EA_INODE_FL | EXT4_CASEFOLD_FL)

/* WALK_LOST: the inode was never written. */
enum {
	WALK_LOST = 1,
};

struct walk {
	struct ext4 *d;
	struct tree *t;
	struct tree_inode **known;     /* by inode number */
	struct ext2_inode_large *disk; /* the current inode, as large as on the disk */
	size_t disk_size;
	struct tree_node *dir;    /* the current directory */
	struct tree_inode *inode; /* the current inode */
	ext2_ino_t ino;           /* its number, while attributes are read */
	size_t n_xattrs;          /* of the current inode */
	size_t lost;
	int error; /* of a callback */
	struct err *e;
};

static int full(struct walk *w)
{
	return err_set(w->e, -E2BIG,
		       "the app's changes have too many files, or they are too deep, or their "
		       "attributes are too large, or they have too many owners");
}

static struct ext2_inode *small(struct walk *w)
{
	return (struct ext2_inode *)w->disk;
}

/* Adds one attribute to the current inode. */
static int add_xattr(struct walk *w, const char *name, const void *value, size_t size)
{
	if (w->n_xattrs++ >= LAYER_XATTRS_MAX || strlen(name) > LAYER_XATTR_NAME_MAX ||
	    size > LAYER_XATTR_VALUE_MAX)
		return full(w);
	return tree_add_xattr(w->t, w->inode, name, value, size) == 0 ? 0 : full(w);
}

/* As the kernel shows it. */
static int add_acl(struct walk *w, const char *name, const void *disk, size_t size)
{
	char value[LAYER_XATTR_VALUE_MAX];
	int len = ext4_acl_convert(disk, size, value, sizeof(value));
	return len < 0 ? ext4_damaged(w->e, "has an access control list that is none", w->ino)
		       : add_xattr(w, name, value, (size_t)len);
}

static int take_xattr(char *name, char *value, size_t size, void *ctx)
{
	struct walk *w = ctx;
	w->error = ext4_acl_is(name) ? add_acl(w, name, value, value ? size : 0)
				     : add_xattr(w, name, value, value ? size : 0);
	return w->error < 0 ? XATTR_ABORT : 0;
}

static int read_xattrs(struct walk *w, ext2_ino_t ino)
{
	struct ext2_xattr_handle *handle;
	errcode_t code = ext2fs_xattrs_open(w->d->fs, ino, &handle);
	if (code != 0)
		return ext4_fail(w->d, code, ino, w->e);
	w->n_xattrs = 0;
	w->ino = ino;
	w->error = 0;
	code = ext2fs_xattrs_read_inode(handle, w->disk);
	if (code == 0)
		code = ext2fs_xattrs_iterate(handle, take_xattr, w);
	ext2fs_xattrs_close(&handle);
	if (w->error < 0)
		return w->error;
	return code != 0 ? ext4_fail(w->d, code, ino, w->e) : 0;
}

/* Reads the target of a symbolic link that is too long for the inode. */
static int read_long_target(struct walk *w, ext2_ino_t ino, char *mem, size_t size)
{
	CLEANUP(content_map_deinit) struct content_map map = CONTENT_MAP_INIT;
	int r = ext4_map(w->d, ino, small(w), &map, w->e);
	if (r < 0)
		return r;
	if (map.n != 1 || map.v[0].offset != 0 || map.v[0].len != size)
		return ext4_damaged(w->e, "is a symbolic link without a target", ino);
	r = ext4_read_at(w->d, map.v[0].at, mem, size);
	return r < 0 ? err_sys(w->e, r, "the scratch disk cannot be read") : 0;
}

static int read_target(struct walk *w, ext2_ino_t ino, struct tree_inode *to)
{
	char target[LAYER_TARGET_MAX + 1];
	uint64_t size = EXT2_I_SIZE(small(w));
	int r = 0;
	if (size == 0 || size > LAYER_TARGET_MAX)
		return ext4_damaged(w->e, "is a symbolic link without a target", ino);
	if (!ext2fs_is_fast_symlink(small(w)))
		r = read_long_target(w, ino, target, (size_t)size);
	else if (size < sizeof(w->disk->i_block))
		memcpy(target, w->disk->i_block, (size_t)size);
	else
		r = ext4_damaged(w->e, "is a symbolic link without a target", ino);
	if (r < 0)
		return r;
	if (strnlen(target, (size_t)size) < size)
		return ext4_damaged(w->e, "is a symbolic link with a NUL in its target", ino);
	return tree_set_target(w->t, to, target, (size_t)size) == 0 ? 0 : full(w);
}

/* Both encodings of the kernel: ext4_iget(), new_decode_dev(). */
static void take_device(const struct ext2_inode_large *from, struct tree_inode *to)
{
	uint32_t old = from->i_block[0], dev = from->i_block[1];
	if (old) {
		tree_set_device(to, old >> 8 & 0xff, old & 0xff);
		return;
	}
	tree_set_device(to, dev >> 8 & 0xfff, (dev & 0xff) | (dev >> 12 & 0xfff00));
}

/* Seconds since 1970, the upper bits of which are among the nanoseconds. */
static uint32_t take_time(const struct walk *w)
{
	const struct ext2_inode_large *from = w->disk;
	int64_t t = (int32_t)from->i_mtime;
	if (w->disk_size > EXT2_GOOD_OLD_INODE_SIZE &&
	    from->i_extra_isize >=
		    offsetof(struct ext2_inode_large, i_mtime_extra) + 4 - EXT2_GOOD_OLD_INODE_SIZE)
		t += (int64_t)(from->i_mtime_extra & 3) << 32;
	return t < 0 ? 0 : (uint32_t)MIN(t, (int64_t)UINT32_MAX);
}

/* Reads the inode @ino into w->disk. 0, WALK_LOST, -errno. */
static int read_disk_inode(struct walk *w, ext2_ino_t ino)
{
	const struct ext2_super_block *super = w->d->fs->super;
	if (ino > super->s_inodes_count || (ino < EXT2_FIRST_INODE(super) && ino != EXT2_ROOT_INO))
		return ext4_damaged(w->e, "does not exist", ino);
	memset(w->disk, 0, w->disk_size);
	errcode_t code = ext2fs_read_inode_full(w->d->fs, ino, small(w), (int)w->disk_size);
	if (code != 0)
		return ext4_fail(w->d, code, ino, w->e);
	bool used = w->disk->i_links_count > 0 && w->disk->i_mode != 0 && w->disk->i_dtime == 0;
	if (!used && !ext4_is_clean(w->d))
		return WALK_LOST;
	if (!used)
		return ext4_damaged(w->e, "is not in use, but has a name", ino);
	if (w->disk->i_flags & FLAGS_REFUSED)
		return ext4_damaged(w->e, "has flags that husk did not allow", ino);
	return 0;
}

/* Fields that only some types have. */
static int take_type(struct walk *w, ext2_ino_t ino, struct tree_inode *to)
{
	if (S_ISREG(to->mode)) {
		struct tree_content c = { .size = EXT2_I_SIZE(small(w)),
					  .fragment = TREE_NO_FRAGMENT };
		if (c.size / ext4_block_size(w->d) > UINT32_MAX)
			return ext4_damaged(w->e, "is larger than a file can be", ino);
		return tree_set_content(w->t, to, &c) == 0 ? 0 : full(w);
	} else if (S_ISLNK(to->mode)) {
		return read_target(w, ino, to);
	} else if (S_ISCHR(to->mode) || S_ISBLK(to->mode)) {
		take_device(w->disk, to);
	} else if (!S_ISDIR(to->mode) && !S_ISFIFO(to->mode) && !S_ISSOCK(to->mode)) {
		return ext4_damaged(w->e, "has no type", ino);
	}
	return 0;
}

/* Makes the inode @ino. 0, WALK_LOST, -errno. */
static int take_inode(struct walk *w, ext2_ino_t ino, struct tree_inode **ret)
{
	struct tree_inode *to;
	int r = read_disk_inode(w, ino);
	if (r != 0)
		return r;
	if (tree_inode_new(w->t, &to) != 0)
		return full(w);
	to->layer = CONTENT_DISK;
	to->place = ino;
	to->mode = w->disk->i_mode;
	uint32_t uid = inode_uid(*w->disk), gid = inode_gid(*w->disk);
	to->mtime = take_time(w);
	if (uid == UINT32_MAX || gid == UINT32_MAX)
		return ext4_damaged(w->e, "has no owner", ino);
	if (tree_set_owner(w->t, to, uid, gid) != 0)
		return full(w);
	w->inode = to;
	r = take_type(w, ino, to);
	if (r == 0)
		r = read_xattrs(w, ino);
	if (r == 0)
		*ret = w->known[ino] = to;
	return r;
}

/* 0, WALK_LOST, -errno. */
static int find_inode(struct walk *w, ext2_ino_t ino, struct tree_inode **ret)
{
	if (ino > w->d->fs->super->s_inodes_count)
		return ext4_damaged(w->e, "does not exist", ino);
	if (!w->known[ino])
		return take_inode(w, ino, ret);
	if (S_ISDIR(w->known[ino]->mode))
		return ext4_damaged(w->e, "is a directory with two names", ino);
	*ret = w->known[ino];
	return 0;
}

static int add_entry(struct walk *w, const char *name, size_t len, ext2_ino_t ino)
{
	struct tree_inode *inode = NULL;
	struct tree_node *node;
	if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
		return 0;
	if (!tree_is_name(name, len))
		return ext4_damaged(w->e, "has a name that no file can have", ino);
	if (tree_find(w->t, w->dir, name, len))
		return ext4_damaged(w->e, "has a name that another file has", ino);
	int r = find_inode(w, ino, &inode);
	if (r == WALK_LOST) {
		w->lost++;
		return 0;
	}
	if (r < 0)
		return r;
	return tree_add(w->t, w->dir, name, len, inode, &node) != 0 ? full(w) : 0;
}

static int take_entry(ext2_ino_t dir, int number, struct ext2_dir_entry *entry, int offset,
		      int block_size, char *block, void *ctx)
{
	struct walk *w = ctx;
	(void)dir;
	(void)number;
	(void)offset;
	(void)block_size;
	(void)block;
	w->error = add_entry(w, entry->name, (size_t)ext2fs_dirent_name_len(entry), entry->inode);
	return w->error < 0 ? DIRENT_ABORT : 0;
}

static int read_dir(struct walk *w, struct tree_node *dir)
{
	w->dir = dir;
	w->error = 0;
	ext2_ino_t ino = (ext2_ino_t)tree_inode_of(dir)->place;
	errcode_t code = ext2fs_dir_iterate2(w->d->fs, ino, 0, NULL, take_entry, w);
	if (w->error < 0)
		return w->error;
	if (code != 0)
		return ext4_fail(w->d, code, ino, w->e);
	for (struct tree_node *n = tree_children(dir); n; n = tree_next(n)) {
		int r = S_ISDIR(tree_inode_of(n)->mode) ? read_dir(w, n) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The inode of the directory @dir/upper. -ENOENT is for the caller to explain. */
static int find_upper(struct ext4 *d, const char *dir, ext2_ino_t *ret, struct err *e)
{
	const char *const path[] = { dir, "upper" };
	ext2_ino_t ino = EXT2_ROOT_INO;
	for (size_t i = 0; i < ARRAY_SIZE(path); i++) {
		errcode_t code =
			ext2fs_lookup(d->fs, ino, path[i], (int)strlen(path[i]), NULL, &ino);
		if (code == EXT2_ET_FILE_NOT_FOUND)
			return -ENOENT;
		if (code != 0)
			return ext4_fail(d, code, ino, e);
	}
	*ret = ino;
	return 0;
}

static int read_all(struct walk *w, const char *app)
{
	ext2_ino_t ino = 0;
	struct tree_node *root = tree_root(w->t);
	struct tree_inode *inode = NULL;
	int r = find_upper(w->d, app, &ino, w->e);
	if (r == -ENOENT)
		return err_set(w->e, -ENOENT,
			       "the scratch disk has no directory %s/upper (did the virtual "
			       "machine come so far?)",
			       app);
	if (r == 0)
		r = find_inode(w, ino, &inode);
	if (r == WALK_LOST || (r == 0 && !(inode && S_ISDIR(inode->mode))))
		r = ext4_damaged(w->e, "should be the app's directory", ino);
	if (r < 0)
		return r;
	tree_set_dir_inode(w->t, root, inode);
	return read_dir(w, root);
}

int ext4_tree(struct ext4 *d, const char *app, struct ext4_changes *ret, struct err *e)
{
	struct walk w = { .d = d, .e = e };
	w.disk_size = MAX((size_t)EXT2_INODE_SIZE(d->fs->super), sizeof(*w.disk));
	cleanup_free struct ext2_inode_large *disk = w.disk = malloc(w.disk_size);
	cleanup_free struct tree_inode **known = w.known =
		calloc((size_t)d->fs->super->s_inodes_count + 1, sizeof(struct tree_inode *));
	if (!disk || !known || tree_new(&w.t) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	int r = read_all(&w, app);
	if (r < 0) {
		tree_free(w.t);
		return r;
	}
	*ret = (struct ext4_changes){ w.t, w.lost };
	return 0;
}
