/*
 * Theory of operation: a rendered file appears under its name complete (linkat(2) of a file that had
 * none) or not at all, so whoever finds the name can use it. Two locks exist:
 *
 * - One byte of locks/render, at an offset that the chain ID gives (fcntl(2), open file description
 *   lock): its holder renders that chain. Whoever comes second waits and then finds the file. No
 *   file per image, so nothing can be left behind; two chains with one offset just wait.
 * - The rendered file itself, shared flock(2): held while an image is open. Removal takes it
 *   exclusively.
 */
#include "host/store/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/render/render.h"
#include "host/store/store_int.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"

static const char hex_digits[] = "0123456789abcdef";

#define DIR_MODE  0750
#define TREE_MODE 0440

/* "HEX.vN" */
#define TREE_NAME_LEN (DIGEST_HEX_LEN + 8)

struct store {
	int trees;
	int tmp;
	int locks;
	uint64_t bytes_max;
	char path[PATH_MAX];
};

static void tree_name(const struct digest *chain, char out[TREE_NAME_LEN])
{
	snprintf(out, TREE_NAME_LEN, "%s.v%d", chain->hex, RENDER_VERSION);
}

void store_free(struct store *s)
{
	if (!s)
		return;
	fd_close(s->trees);
	fd_close(s->tmp);
	fd_close(s->locks);
	free(s);
}

/* Creates and opens a directory of the store. The descriptor or -errno. */
static int open_dir(const struct store *s, int parent, const char *name, struct err *e)
{
	if (mkdirat(parent, name, DIR_MODE) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "cannot create %s/%s", s->path, name);
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "cannot open %s/%s", s->path, name) : fd;
}

/* The limit on unpacked bytes from the environment. */
static int read_limit(struct store *s, struct err *e)
{
	const char *text = getenv("HUSK_IMAGE_BYTES_MAX");
	s->bytes_max = RENDER_BYTES_MAX;
	if (text && num_parse_size(text, UINT64_C(1) << 50, &s->bytes_max) < 0)
		return err_set(
			e, -EINVAL,
			"HUSK_IMAGE_BYTES_MAX=\"%s\" is not a size (give bytes, or 128G, 1T)",
			text);
	return 0;
}

int store_open(int data_dirfd, const char *data_path, struct store **ret, struct err *e)
{
	cleanup_store struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	s->trees = s->tmp = s->locks = -EBADF;
	int r = str_copy(s->path, sizeof(s->path), data_path);
	r = r < 0 ? err_sys(e, r, "data directory") : read_limit(s, e);
	if (r < 0)
		return r;
	s->trees = open_dir(s, data_dirfd, "trees", e);
	if (s->trees < 0)
		return s->trees;
	s->tmp = open_dir(s, data_dirfd, "tmp", e);
	if (s->tmp < 0)
		return s->tmp;
	s->locks = open_dir(s, data_dirfd, "locks", e);
	if (s->locks < 0)
		return s->locks;
	*ret = TAKE_PTR(s);
	return 0;
}

int store_tmp_dirfd(const struct store *s)
{
	return s->tmp;
}

const char *store_path(const struct store *s)
{
	return s->path;
}

uint64_t store_bytes_max(const struct store *s)
{
	return s->bytes_max;
}

int store_find_tree(const struct store *s, const struct digest *chain, int *ret_fd, struct err *e)
{
	char name[TREE_NAME_LEN];
	tree_name(chain, name);
	for (;;) {
		cleanup_fd int fd = openat(s->trees, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			return STORE_MISSING;
		if (fd < 0)
			return err_sys(e, -errno, "cannot open %s/trees/%s", s->path, name);
		int r = lock_shared(fd);
		struct stat st = { 0 };
		if (r == 0 && fstat(fd, &st) < 0)
			r = -errno;
		if (r < 0)
			return err_sys(e, r, "cannot lock %s/trees/%s", s->path, name);
		/* It may have been removed before the lock was ours; then its name is free. */
		if (st.st_nlink == 0)
			continue;
		*ret_fd = TAKE_FD(fd);
		return 0;
	}
}

/* Takes the render lock of @chain on @fd, waiting for it. 0 or -errno. */
static int lock_range(int fd, const struct digest *chain)
{
	uint64_t offset = 0;
	for (size_t i = 0; i < 15; i++) /* 60 bits, a valid offset */
		offset = offset << 4 | (uint64_t)(strchr(hex_digits, chain->hex[i]) - hex_digits);
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)offset,
		.l_len = 1,
	};
	int r;
	do
		r = fcntl(fd, F_OFD_SETLKW, &lock);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int store_lock_tree(const struct store *s, const struct digest *chain, int *ret_fd, struct err *e)
{
	cleanup_fd int fd =
		openat(s->locks, "render", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : lock_range(fd, chain);
	if (r < 0)
		return err_sys(e, r, "cannot lock %s/locks/render", s->path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int store_publish_tree(const struct store *s, const struct digest *chain, int fd, struct err *e)
{
	char name[TREE_NAME_LEN], self[sizeof("/proc/self/fd/") + 11];
	tree_name(chain, name);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (fchmod(fd, TREE_MODE) < 0 || fsync(fd) < 0)
		return err_sys(e, -errno, "cannot sync the rendered image in %s/trees", s->path);
	if (linkat(AT_FDCWD, self, s->trees, name, AT_SYMLINK_FOLLOW) < 0)
		return err_sys(e, -errno, "cannot create %s/trees/%s", s->path, name);
	if (fsync(s->trees) < 0)
		return err_sys(e, -errno, "cannot sync %s/trees", s->path);
	return 0;
}

int store_link_tree(const struct store *s, const struct digest *chain, int dirfd, const char *name,
		    struct err *e)
{
	char tree[TREE_NAME_LEN];
	tree_name(chain, tree);
	if (linkat(s->trees, tree, dirfd, name, 0) < 0)
		return err_sys(e, -errno, "cannot link %s/trees/%s into the pod as \"%s\"", s->path,
			       tree, name);
	return 0;
}
