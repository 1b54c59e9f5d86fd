/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the directories that count are read in this order: those for all names,
 * system then local; then those of the system for each prefix of the name, the shortest first; then
 * the local ones for the same prefixes. A key replaces one of the same fingerprint that was there
 * before, an empty file removes it: this is how a host takes back trust that its distribution gave.
 * Only then are the texts looked into, so what is masked may be broken.
 *
 * Nothing is followed or passed over silently that might have been meant to take trust away: a
 * symbolic link or a device in place of a key or a directory is an error.
 */
#include "images/appc/trust/keyring.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/trust/armour.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define DIR_MODE 0755

static void free_key(struct keyring_key *key)
{
	free(key->path);
	free(key->text);
}

void keyring_deinit(struct keyring *ring)
{
	for (size_t i = 0; i < ring->n; i++)
		free_key(&ring->v[i]);
	free(ring->v);
	*ring = KEYRING_INIT;
}

/* The index of the key, ring->n if it is not there. */
static size_t index_of(const struct keyring *ring, const char *fingerprint)
{
	size_t i = 0;
	while (i < ring->n && strcmp(ring->v[i].fingerprint, fingerprint) != 0)
		i++;
	return i;
}

const struct keyring_key *keyring_find(const struct keyring *ring, const char *fingerprint)
{
	size_t i = index_of(ring, fingerprint);
	return i < ring->n ? &ring->v[i] : NULL;
}

static void keyring_forget(struct keyring *ring, const char *fingerprint)
{
	size_t i = index_of(ring, fingerprint);
	if (!ring->v || i == ring->n)
		return;
	ring->bytes -= ring->v[i].len;
	free_key(&ring->v[i]);
	ring->v[i] = ring->v[--ring->n];
}

/* Moves *@key into @ring. */
static int take_key(struct keyring *ring, struct keyring_key *key, struct err *e)
{
	if (ring->n >= KEYRING_KEYS_MAX)
		return err_set(e, -E2BIG, "more than %zu keys count for one name (remove some)",
			       KEYRING_KEYS_MAX);
	if (key->len > KEYRING_BYTES_MAX - ring->bytes)
		return err_set(e, -E2BIG,
			       "the keys that count for one name have more than %zu bytes (remove "
			       "some)",
			       KEYRING_BYTES_MAX);
	struct keyring_key *v = reallocarray(ring->v, ring->n + 1, sizeof(*v));
	if (!v)
		return err_sys(e, -ENOMEM, "cannot keep the key");
	ring->v = v;
	ring->v[ring->n++] = *key;
	ring->bytes += key->len;
	*key = (struct keyring_key){ 0 };
	return 0;
}

static void cleanup_key(struct keyring_key *key)
{
	free_key(key);
}

static int read_text(int dirfd, const char *file, struct keyring_key *key, struct err *e)
{
	cleanup_fd int fd = -EBADF;
	int r = file_open_regular_at(dirfd, file, &fd);
	if (r == FILE_E_OTHER)
		return err_set(
			e, -EINVAL,
			"it is not a regular file (put the key there, or an empty file; links "
			"are not followed)");
	if (r == 0)
		r = file_read_fd(fd, TRUST_KEY_MAX, &key->text, &key->len);
	if (r == -EFBIG)
		return err_set(e, r, "it has more than %zu bytes (export the key with less)",
			       TRUST_KEY_MAX);
	return r < 0 ? err_sys(e, r, "cannot read it") : 0;
}

static bool is_dir(int dirfd, const char *name)
{
	struct stat st;
	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int read_key(struct keyring *ring, int dirfd, const char *dir, const char *file,
		    struct err *e)
{
	CLEANUP(cleanup_key) struct keyring_key key = { 0 };
	int r = str_copy(key.fingerprint, sizeof(key.fingerprint), file);
	if (r == 0 && asprintf(&key.path, "%s/%s", dir, file) < 0) {
		key.path = NULL; /* it is undefined */
		r = -ENOMEM;
	}
	if (r < 0)
		return err_sys(e, r, "cannot read trusted keys");
	r = read_text(dirfd, file, &key, e);
	if (r == 0) {
		keyring_forget(ring, file);
		r = key.len > 0 ? take_key(ring, &key, e) : 0;
	}
	return r < 0 ? err_context(e, "trusted key \"%s/%s\"", dir, file) : 0;
}

/*
 * Reads all keys in the directory @fd, which is consumed. Other names are those of longer prefixes.
 */
static int read_keys(struct keyring *ring, int fd, const char *path, struct err *e)
{
	cleanup_dir DIR *dir = fd_open_dir(fd);
	if (!dir)
		return err_sys(e, -errno, "cannot read \"%s\"", path);
	for (size_t n = 0;; n++) {
		errno = 0;
		struct dirent *de = readdir(dir);
		if (!de && errno)
			return err_sys(e, -errno, "cannot read \"%s\"", path);
		if (!de)
			return 0;
		if (n >= KEYRING_NAMES_MAX)
			return err_set(e, -E2BIG, "\"%s\" has more than %zu names (remove some)",
				       path, KEYRING_NAMES_MAX);
		if (!trust_is_fingerprint(de->d_name) || is_dir(dirfd(dir), de->d_name))
			continue;
		int r = read_key(ring, dirfd(dir), path, de->d_name, e);
		if (r < 0)
			return r;
	}
}

static int make_dir(int dirfd, const char *name)
{
	if (mkdirat(dirfd, name, DIR_MODE) < 0)
		return errno == EEXIST ? 0 : -errno;
	cleanup_fd int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* Whatever the umask is: keys are public. */
	return fd < 0 || fchmod(fd, DIR_MODE) < 0 ? -errno : 0;
}

int keyring_open_dir(int dirfd, const char *path, bool create)
{
	cleanup_fd int at = -EBADF;
	while (*path) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		if (len == 0 || len >= sizeof(name))
			return -EINVAL;
		memcpy(name, path, len);
		name[len] = '\0';
		int parent = at < 0 ? dirfd : at;
		int r = create ? make_dir(parent, name) : 0;
		if (r < 0)
			return r;
		int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return errno == ELOOP ? -ENOTDIR : -errno;
		fd_replace(&at, fd);
		path += len + (path[len] == '/');
	}
	return TAKE_FD(at);
}

/* Reads the keys in @subdir of the configuration directory @dir; either may be missing. */
static int read_subdir(struct keyring *ring, const char *dir, const char *subdir, struct err *e)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, subdir);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "trusted keys in \"%s\"", dir);
	cleanup_fd int base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base < 0)
		return errno == ENOENT ? 0 : err_sys(e, -errno, "cannot open \"%s\"", dir);
	int fd = keyring_open_dir(base, subdir, false);
	if (fd == -ENOENT)
		return 0;
	if (fd == -ENOTDIR)
		return err_set(
			e, fd,
			"\"%s\" or one above it is not a directory (make it one; symbolic links "
			"are not followed)",
			path);
	if (fd < 0)
		return err_sys(e, fd, "cannot open \"%s\"", path);
	return read_keys(ring, fd, path, e);
}

/* Reads the keys for each prefix of @name, the shortest first. */
static int read_prefixes(struct keyring *ring, const char *dir, const char *name, struct err *e)
{
	for (size_t len = strcspn(name, "/");; len += 1 + strcspn(name + len + 1, "/")) {
		char subdir[sizeof(KEYRING_PREFIX_DIR) + 1 + TRUST_NAME_MAX];
		snprintf(subdir, sizeof(subdir), KEYRING_PREFIX_DIR "/%.*s", (int)len, name);
		int r = read_subdir(ring, dir, subdir, e);
		if (r < 0 || !name[len])
			return r;
	}
}

static int find_armours(struct keyring *ring, struct err *e)
{
	for (size_t i = 0; i < ring->n; i++) {
		struct keyring_key *key = &ring->v[i];
		int r = armour_find_key(key->text, key->len, &key->start, &key->len, e);
		if (r < 0)
			return err_context(e, "trusted key \"%s\"", key->path);
	}
	return 0;
}

int keyring_read(const char *system_dir, const char *local_dir, const char *name,
		 struct keyring *ret, struct err *e)
{
	const char *const dirs[] = { system_dir, local_dir };
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		if (dirs[i])
			r = read_subdir(&ring, dirs[i], KEYRING_ROOT_DIR, e);
	for (size_t i = 0; r == 0 && name && i < ARRAY_SIZE(dirs); i++)
		if (dirs[i])
			r = read_prefixes(&ring, dirs[i], name, e);
	if (r == 0)
		r = find_armours(&ring, e);
	if (r < 0)
		return r;
	*ret = ring;
	ring = KEYRING_INIT;
	return 0;
}
