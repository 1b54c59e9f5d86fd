/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/pod/layers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

#define LOWER "lowerdir="
#define UPPER "upperdir="
#define WORK  "workdir="

#define ATTRIBUTES_MAX 1024 /* bytes of names: overlayfs has ten of 20 */

_Static_assert(LAYERS_TEXT_LEN == (size_t)2 * SHA256_DIGEST_SIZE, "a digest");

/* What is known so far. */
struct identity {
	struct sha256_ctx ctx;
	bool has_lower, has_dev;
	uint64_t dev; /* of all directories */
};

/* A copy without padding, as it is hashed. */
struct layer_id {
	uint64_t dev, ino;
	int64_t made_s, made_ns, changed_s, changed_ns;
};

static int open_dir(const char *path)
{
	return path[0] == '/' ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

/*
 * Numbers of inodes and times tell directories of one file system apart, not file systems: all ext4
 * begin with inode 2, and their numbers are given anew.
 */
static bool is_on_one_file_system(struct identity *id, const struct statx *st)
{
	uint64_t dev = makedev(st->stx_dev_major, st->stx_dev_minor);
	bool is_same = !id->has_dev || id->dev == dev;
	id->has_dev = true;
	id->dev = dev;
	return is_same && st->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	       !(st->stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/*
 * One that is below, and stays as it is: which directory that is, and that it is not another one by
 * now, under the same number.
 */
static bool add_layer(struct identity *id, const char *path)
{
	struct statx st;
	cleanup_fd int fd = open_dir(path);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0 ||
	    !(st.stx_mask & STATX_BTIME) || !is_on_one_file_system(id, &st))
		return false;
	const struct layer_id layer = {
		.dev = id->dev,
		.ino = st.stx_ino,
		.made_s = st.stx_btime.tv_sec,
		.made_ns = st.stx_btime.tv_nsec,
		.changed_s = st.stx_ctime.tv_sec,
		.changed_ns = st.stx_ctime.tv_nsec,
	};
	sha256_update(&id->ctx, sizeof(layer), (const uint8_t *)&layer);
	return true;
}

static bool add_layers(struct identity *id, const char *list)
{
	char path[PATH_MAX];
	bool ok = !strchr(list, '\\'); /* a colon may be part of a name */
	size_t count = 0;
	for (size_t n; ok; list += n + 1) {
		n = strcspn(list, ":");
		if (n >= sizeof(path) || ++count > LAYERS_MAX)
			return false;
		memcpy(path, list, n);
		path[n] = '\0';
		ok = add_layer(id, path);
		if (!list[n])
			break;
	}
	id->has_lower = ok;
	return ok;
}

static bool is_empty(int dir)
{
	cleanup_dir DIR *d = fd_list_dir(dir);
	struct dirent *de = NULL;
	errno = 0;
	while (d && (de = readdir(d)) &&
	       (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0))
		;
	return d && !de && errno == 0;
}

/* Changes nothing of what is seen: others, such as "opaque", hide what is below. */
static bool is_harmless(const char *name)
{
	static const char *const names[] = {
		"security.selinux",     "trusted.overlay.impure", "trusted.overlay.origin",
		"trusted.overlay.uuid", "user.overlay.impure",    "user.overlay.origin",
		"user.overlay.uuid",
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static bool has_harmless_only(int fd)
{
	char names[ATTRIBUTES_MAX];
	ssize_t len = flistxattr(fd, names, sizeof(names)), i = 0;
	while (i < len && is_harmless(names + i))
		i += (ssize_t)strlen(names + i) + 1;
	return len < 0 ? errno == ENOTSUP : i == len;
}

/*
 * What is written goes here: nothing yet, or it is not told. The root directory has its owner and
 * mode.
 */
static bool add_upper(struct identity *id, const char *path)
{
	struct statx st;
	cleanup_fd int fd = open_dir(path);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) < 0 ||
	    !is_on_one_file_system(id, &st) || !has_harmless_only(fd) || !is_empty(fd))
		return false;
	const uint32_t root[] = { st.stx_mode, st.stx_uid, st.stx_gid };
	sha256_update(&id->ctx, sizeof(root), (const uint8_t *)root);
	return true;
}

/* Of what containerd says only "userxattr" changes something else: which attributes hide files. */
static bool add_option(struct identity *id, const char *option)
{
	static const char of_user[] = "userxattr";
	if (str_starts(option, LOWER))
		return add_layers(id, option + strlen(LOWER));
	if (str_starts(option, UPPER))
		return add_upper(id, option + strlen(UPPER));
	if (strcmp(option, of_user) == 0)
		sha256_update(&id->ctx, sizeof(of_user), (const uint8_t *)of_user);
	return strcmp(option, of_user) == 0 || str_starts(option, WORK) ||
	       strcmp(option, "index=off") == 0 || strcmp(option, "rw") == 0 ||
	       strcmp(option, "ro") == 0;
}

bool layers_identify(const struct husk_mount *mounts, size_t n, char ret[LAYERS_TEXT_LEN + 1])
{
	struct identity id = { .has_lower = false };
	uint8_t digest[SHA256_DIGEST_SIZE];
	if (n != 1 || *mounts->target || strcmp(mounts->type, "overlay") != 0)
		return false;
	sha256_init(&id.ctx);
	for (size_t i = 0; i < mounts->n_options; i++)
		if (!add_option(&id, mounts->options[i]))
			return false;
	sha256_digest(&id.ctx, sizeof(digest), digest);
	hex_encode(digest, sizeof(digest), ret);
	return id.has_lower;
}
