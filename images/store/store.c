/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a rendered file appears under its name complete (linkat(2) of a file that
 * had none) or not at all, so whoever finds the name can use it. So do records and references, by
 * rename(2). There are these locks:
 *
 * - One byte of locks/render, at an offset that the chain ID gives (fcntl(2), open file description
 *   lock): its holder renders that chain. Whoever comes second waits and then finds the file. No
 *   file per image, so nothing can be left behind; two chains with one offset just wait.
 * - One byte of locks/fetch, likewise, at an offset that the reference gives: its holder fetches
 *   it. Who has one never waits for another.
 * - locks/images, flock(2): held while images are put into place or removed, so that no blob goes
 *   that a new image counts on. For moments only.
 * - The rendered file itself, shared flock(2): held while an image is open. Removal takes it
 *   exclusively.
 *
 * Who holds several takes them in the order fetch, render, images.
 *
 * The group of a shared data directory (lib/data/datadir.h) may fetch images, but not touch
 * what is rendered or the work of others (tmp/ has the sticky bit).
 */
#include "images/store/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/render/render.h"
#include "images/store/layout.h"
#include "images/store/store_int.h"
#include "lib/base/num.h"
#include "lib/data/datadir.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"

static const char hex_digits[] = "0123456789abcdef";

/*
 * Who gets to one is for the directories to say. An emulator that runs as another user, as that of
 * a VM of libvirt, is shown single ones.
 */
#define TREE_MODE 0444

/* "HEX.vN" */
#define TREE_NAME_LEN (DIGEST_HEX_LEN + 8)

/* "HEX.vN.digest" */
#define DIGEST_NAME_LEN (TREE_NAME_LEN + sizeof(".digest"))

static const struct {
	const char *name;
	mode_t shared_mode; /* in a shared data directory */
} dirs[STORE_DIRS] = {
	[STORE_LAYOUT] = { "oci", DATADIR_GROUP_WRITES },
	[STORE_IMAGES] = { "images", DATADIR_GROUP_WRITES },
	[STORE_REFS] = { "refs", DATADIR_GROUP_WRITES },
	[STORE_TREES] = { "trees", DATADIR_GROUP_READS },
	[STORE_TMP] = { "tmp", DATADIR_GROUP_ADDS },
	[STORE_LOCKS] = { "locks", DATADIR_GROUP_ADDS },
};

struct store {
	int dirs[STORE_DIRS];
	bool shared;
	struct store_settings settings;
	char path[PATH_MAX];
};

static void tree_name(const struct digest *chain, char out[TREE_NAME_LEN])
{
	snprintf(out, TREE_NAME_LEN, "%s.v%d", chain->hex, RENDER_VERSION);
}

/* The name of the file beside it, with its content digest. */
static void digest_name(const struct digest *chain, char out[DIGEST_NAME_LEN])
{
	snprintf(out, DIGEST_NAME_LEN, "%s.v%d.digest", chain->hex, RENDER_VERSION);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < STORE_DIRS; i++)
		fd_close(s->dirs[i]);
	free(s);
}

/* Opens all directories, made if they are missing. */
static int open_dirs(struct store *s, int data_dirfd, struct err *e)
{
	struct datadir data;
	char what[PATH_MAX + 16];
	int r = datadir_read(data_dirfd, &data);
	if (r < 0)
		return err_sys(e, r, "cannot open %s", s->path);
	s->shared = data.shared;
	for (enum store_dir d = 0; d < STORE_DIRS; d++) {
		snprintf(what, sizeof(what), "%s/%s", s->path, dirs[d].name);
		s->dirs[d] = datadir_open(&data, data_dirfd, dirs[d].name, what, true,
					  dirs[d].shared_mode, e);
		if (s->dirs[d] < 0)
			return s->dirs[d];
	}
	r = datadir_sync(&data, data_dirfd, s->path, e);
	if (r < 0)
		return r;
	r = layout_make(s->dirs[STORE_LAYOUT], true);
	return r < 0 ? err_sys(e, r, "cannot make the OCI layout %s/oci", s->path) : 0;
}

void store_configure(struct store *s, const struct store_settings *settings)
{
	s->settings = *settings;
}

const struct store_settings *store_settings(const struct store *s)
{
	return &s->settings;
}

int store_open(int data_dirfd, const char *data_path, struct store **ret, struct err *e)
{
	cleanup_store struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < STORE_DIRS; i++)
		s->dirs[i] = -EBADF;
	store_settings_init(&s->settings);
	int r = str_copy(s->path, sizeof(s->path), data_path);
	r = r < 0 ? err_sys(e, r, "data directory") : open_dirs(s, data_dirfd, e);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

int store_dirfd(const struct store *s, enum store_dir d)
{
	return s->dirs[d];
}

int store_tmp_dirfd(const struct store *s)
{
	return s->dirs[STORE_TMP];
}

bool store_is_shared(const struct store *s)
{
	return s->shared;
}

mode_t store_file_mode(const struct store *s)
{
	return s->shared ? 0660 : 0640;
}

bool store_is_damage(int r)
{
	static const int damages[] = { EBADMSG, EOPNOTSUPP, E2BIG, ENOENT, EFBIG,
				       EINVAL,  ELOOP,      ENXIO, ENOTDIR };
	for (size_t i = 0; i < ARRAY_SIZE(damages); i++)
		if (r == -damages[i])
			return true;
	return false;
}

bool store_may_render(const struct store *s)
{
	return faccessat(s->dirs[STORE_TREES], ".", W_OK, AT_EACCESS) == 0;
}

const char *store_path(const struct store *s)
{
	return s->path;
}

uint64_t store_bytes_max(const struct store *s)
{
	return s->settings.bytes_max;
}

/* True if the file @fd is still that of its name. */
static bool has_name(const struct store *s, int fd, const char *name)
{
	struct stat is, named;
	return fstat(fd, &is) == 0 &&
	       fstatat(s->dirs[STORE_TREES], name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       is.st_dev == named.st_dev && is.st_ino == named.st_ino;
}

int store_find_tree(const struct store *s, const struct digest *chain, int *ret_fd, struct err *e)
{
	char name[TREE_NAME_LEN];
	tree_name(chain, name);
	for (;;) {
		cleanup_fd int fd =
			openat(s->dirs[STORE_TREES], name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			return STORE_MISSING;
		if (fd < 0)
			return err_sys(e, -errno, "cannot open %s/trees/%s", s->path, name);
		int r = lock_shared(fd);
		if (r < 0)
			return err_sys(e, r, "cannot lock %s/trees/%s", s->path, name);
		/*
		 * It may have been removed or replaced before the lock was ours, and live on in a
		 * pod.
		 */
		if (!has_name(s, fd, name))
			continue;
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
}

/*
 * Makes the file @name in the directory of locks. It has its mode before it has its name: nobody
 * ever finds one that keeps them out. 0, also if it is there, or -errno.
 */
static int make_lock(const struct store *s, const char *name)
{
	cleanup_fd int fd = openat(s->dirs[STORE_LOCKS], ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || (s->shared && fchmod(fd, 0660) < 0))
		return -errno;
	int r = fd_link_at(fd, s->dirs[STORE_LOCKS], name);
	return r == -EEXIST ? 0 : r;
}

/* Opens the file @name of the directory of locks. The descriptor or -errno. */
static int open_lock(const struct store *s, const char *name)
{
	int fd = openat(s->dirs[STORE_LOCKS], name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		int r = make_lock(s, name);
		if (r < 0)
			return r;
		fd = openat(s->dirs[STORE_LOCKS], name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

/* Takes the lock of @key on @fd, waiting for it or not. 0, STORE_BUSY or -errno. */
static int lock_range(int fd, const struct digest *key, bool wait)
{
	uint64_t offset = 0;
	for (size_t i = 0; i < 15; i++) /* 60 bits, a valid offset */
		offset = offset << 4 | (uint64_t)(strchr(hex_digits, key->hex[i]) - hex_digits);
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)offset,
		.l_len = 1,
	};
	int r;
	do
		r = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
	while (r < 0 && errno == EINTR);
	if (r < 0 && !wait && (errno == EAGAIN || errno == EACCES))
		return STORE_BUSY;
	return r < 0 ? -errno : 0;
}

static int lock_key(const struct store *s, const char *name, const struct digest *key, bool wait,
		    int *ret_fd, struct err *e)
{
	cleanup_fd int fd = open_lock(s, name);
	int r = fd < 0 ? fd : lock_range(fd, key, wait);
	if (r < 0)
		return err_sys(e, r, "cannot lock %s/locks/%s", s->path, name);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int store_lock_tree(const struct store *s, const struct digest *chain, int *ret_fd, struct err *e)
{
	return lock_key(s, "render", chain, true, ret_fd, e);
}

int store_lock_fetch(const struct store *s, const struct digest *key, bool wait, int *ret_fd,
		     struct err *e)
{
	return lock_key(s, "fetch", key, wait, ret_fd, e);
}

int store_lock_images(const struct store *s, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = open_lock(s, "images");
	int r = fd < 0 ? fd : lock_exclusive(fd);
	if (r < 0)
		return err_sys(e, r, "cannot lock %s/locks/images", s->path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int store_publish_tree(const struct store *s, const struct digest *chain, int fd,
		       const struct digest *content, struct err *e)
{
	char name[TREE_NAME_LEN], beside[DIGEST_NAME_LEN];
	tree_name(chain, name);
	digest_name(chain, beside);
	if (fchmod(fd, TREE_MODE) < 0 || fsync(fd) < 0)
		return err_sys(e, -errno, "cannot sync the rendered image in %s/trees", s->path);
	int r = file_write_at(s->dirs[STORE_TREES], beside, content->hex, DIGEST_HEX_LEN,
			      TREE_MODE);
	if (r < 0)
		return err_sys(e, r, "cannot write %s/trees/%s", s->path, beside);
	r = fd_link_at(fd, s->dirs[STORE_TREES], name);
	if (r < 0)
		return err_sys(e, r, "cannot create %s/trees/%s", s->path, name);
	if (fsync(s->dirs[STORE_TREES]) < 0)
		return err_sys(e, -errno, "cannot sync %s/trees", s->path);
	return 0;
}

int store_tree_content(const struct store *s, const struct digest *chain, struct digest *ret)
{
	char name[DIGEST_NAME_LEN];
	cleanup_free char *text = NULL;
	digest_name(chain, name);
	int r = file_read_at(s->dirs[STORE_TREES], name, DIGEST_HEX_LEN, &text, NULL);
	return r < 0 || digest_from_hex(text, ret) < 0 ? -EBADMSG : 0;
}

int store_remove_tree(const struct store *s, const struct digest *chain, struct err *e)
{
	char name[TREE_NAME_LEN];
	tree_name(chain, name);
	if (unlinkat(s->dirs[STORE_TREES], name, 0) < 0 && errno != ENOENT)
		return err_sys(e, -errno, "cannot remove %s/trees/%s", s->path, name);
	return 0;
}

uint64_t store_tree_size(const struct store *s, const struct digest *chain)
{
	struct stat st;
	char name[TREE_NAME_LEN];
	tree_name(chain, name);
	if (fstatat(s->dirs[STORE_TREES], name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_size;
}

bool store_chain_of_name(const char *name, struct digest *ret)
{
	char hex[DIGEST_HEX_LEN + 1] = "", own[TREE_NAME_LEN], beside[DIGEST_NAME_LEN];
	memcpy(hex, name, strnlen(name, DIGEST_HEX_LEN));
	if (digest_from_hex(hex, ret) < 0)
		return false;
	tree_name(ret, own);
	digest_name(ret, beside);
	return strcmp(own, name) == 0 || strcmp(beside, name) == 0;
}

int store_link_tree(const struct store *s, const struct digest *chain, int dirfd, const char *name,
		    struct err *e)
{
	char tree[TREE_NAME_LEN];
	tree_name(chain, tree);
	if (linkat(s->dirs[STORE_TREES], tree, dirfd, name, 0) < 0)
		return err_sys(e, -errno, "cannot link %s/trees/%s into the pod as \"%s\"", s->path,
			       tree, name);
	return 0;
}
