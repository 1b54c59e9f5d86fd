/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. The directory may be read-only for all who see it, so names in there are
 * made and removed through another mount of it. Mounts are attached and detached where they are
 * seen.
 *
 * A link is made when its place is mounted, and removed before that is unmounted: so what has no
 * link can go at any time, and nothing has to be remembered.
 */
#include "stage1/volumes/volume_places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/wire/agent.h"
#include "stage1/volumes/host_volume.h"

#define LINK     "../" AGENT_HOST_SHARED "/"
#define LINK_MAX (sizeof(LINK) - 1 + VOLUME_KEY_MAX) /* with a key behind it */

/* Of all apps, and as many that are to be removed. */
#define LINKS_MAX ((size_t)2 * AGENT_APPS_MAX * AGENT_VOLUME_SLOTS)

/* One directory, as others see it, and as it can be changed. */
struct views {
	int seen, writable;
};

#define VIEWS_INIT ((struct views){ .seen = -EBADF, .writable = -EBADF })

static void views_deinit(struct views *v)
{
	fd_close(v->seen);
	fd_close(v->writable);
}

/* Another mount of the directory, in which things can be made. */
static int open_writable(int dir)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY, .propagation = MS_PRIVATE };
	cleanup_fd int fd = open_tree(dir, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_top(int dir, struct views *ret)
{
	ret->seen = open_dir(dir, ".");
	ret->writable = open_writable(dir);
	return MIN(MIN(ret->seen, ret->writable), 0);
}

static int open_below(const struct views *top, const char *name, struct views *ret)
{
	ret->seen = open_dir(top->seen, name);
	ret->writable = open_dir(top->writable, name);
	return MIN(MIN(ret->seen, ret->writable), 0);
}

/* ---- what nobody has ---- */

/* @name in the directory @dir, of which the working directory is as others see it. */
static int remove_name(int dir, const char *name)
{
	if (umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
		return -errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno == ENOTDIR && unlinkat(dir, name, 0) == 0 ? 0 : -errno;
}

/* Adds the keys to which links in the directory @app lead. */
static int note_links_of(int app, struct strv *keys)
{
	char target[LINK_MAX + 1];
	int r = 0;
	cleanup_dir DIR *names = fd_list_dir(app);
	if (!names)
		return -errno;
	for (const struct dirent *de; r == 0 && (de = readdir(names));) {
		ssize_t n = readlinkat(app, de->d_name, target, LINK_MAX);
		target[MAX(n, 0)] = '\0';
		if (str_starts(target, LINK))
			r = strv_add(keys, target + strlen(LINK));
	}
	return r;
}

static int note_links(int top, struct strv *keys)
{
	int r = 0;
	cleanup_dir DIR *names = fd_list_dir(top);
	if (!names)
		return -errno;
	for (const struct dirent *de; r == 0 && (de = readdir(names));) {
		if (de->d_name[0] == '.' || strcmp(de->d_name, AGENT_HOST_SHARED) == 0)
			continue;
		cleanup_fd int app = open_dir(top, de->d_name);
		r = app == -ENOTDIR ? 0 : MIN(app, 0);
		if (app >= 0)
			r = note_links_of(app, keys);
	}
	return r;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has(const struct strv *sorted, const char *key)
{
	return sorted->n > 0 &&
	       bsearch(&key, sorted->v, sorted->n, sizeof(sorted->v[0]), compare) != NULL;
}

/* Unmounts and removes places to which no link leads. */
static int sweep(const struct views *top, const struct views *shared)
{
	cleanup_strv struct strv keys;
	strv_init(&keys, LINKS_MAX);
	int r = note_links(top->writable, &keys);
	if (r < 0 || fchdir(shared->seen) < 0)
		return r < 0 ? r : -errno;
	if (keys.n > 0)
		qsort(keys.v, keys.n, sizeof(keys.v[0]), compare);
	cleanup_dir DIR *names = fd_list_dir(shared->writable);
	if (!names)
		return -errno;
	for (const struct dirent *de; r == 0 && (de = readdir(names));)
		if (de->d_name[0] != '.' && !has(&keys, de->d_name))
			r = remove_name(shared->writable, de->d_name);
	return r;
}

/* ---- attaching ---- */

/* 1, 0 or -errno. Asks no server of the file system, which may not answer. */
static int is_mounted(int dir, const char *name)
{
	struct statx st;
	if (statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, 0, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static int mount_place(const struct views *shared, const struct volume_place *v)
{
	int r = is_mounted(shared->seen, v->key);
	if (r != 0)
		return MIN(r, 0);
	r = host_volume_make_place(v->mount, shared->writable, v->key);
	return r == 0 || r == -EEXIST ? host_volume_attach(v->mount, shared->seen, v->key) : r;
}

static int attach_one(const struct views *shared, int app, const struct volume_place *v)
{
	char target[LINK_MAX + 1];
	snprintf(target, sizeof(target), LINK "%s", v->key);
	int r = mount_place(shared, v);
	return r == 0 && symlinkat(target, app, v->slot) < 0 ? -errno : r;
}

/* The two directories. What others have left in the shared one is gone. */
static int make_dirs(const struct views *top, const char *app, struct views *ret_shared)
{
	if (mkdirat(top->writable, app, 0755) < 0 ||
	    (mkdirat(top->writable, AGENT_HOST_SHARED, 0755) < 0 && errno != EEXIST))
		return -errno;
	int r = open_below(top, AGENT_HOST_SHARED, ret_shared);
	return r == 0 ? sweep(top, ret_shared) : r;
}

int volume_places_attach(int dir, const char *app, const struct volume_place *v, size_t n)
{
	CLEANUP(views_deinit) struct views top = VIEWS_INIT;
	CLEANUP(views_deinit) struct views shared = VIEWS_INIT;
	int r = open_top(dir, &top);
	if (r == 0)
		r = make_dirs(&top, app, &shared);
	cleanup_fd int own = r < 0 ? r : open_dir(top.writable, app);
	r = MIN(own, 0);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = attach_one(&shared, own, &v[i]);
	return r;
}

/* ---- detaching ---- */

static int remove_all(const struct views *app)
{
	int r = 0;
	cleanup_dir DIR *names = fd_list_dir(app->writable);
	if (!names || fchdir(app->seen) < 0)
		return -errno;
	for (const struct dirent *de; r == 0 && (de = readdir(names));)
		if (de->d_name[0] != '.')
			r = remove_name(app->writable, de->d_name);
	return r;
}

static int remove_app(const struct views *top, const char *name)
{
	CLEANUP(views_deinit) struct views app = VIEWS_INIT;
	int r = open_below(top, name, &app);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = remove_all(&app);
	return r == 0 && unlinkat(top->writable, name, AT_REMOVEDIR) < 0 ? -errno : r;
}

int volume_places_detach(int dir, const char *app)
{
	CLEANUP(views_deinit) struct views top = VIEWS_INIT;
	CLEANUP(views_deinit) struct views shared = VIEWS_INIT;
	int r = open_top(dir, &top);
	if (r == 0)
		r = remove_app(&top, app);
	if (r < 0)
		return r;
	r = open_below(&top, AGENT_HOST_SHARED, &shared);
	return r == -ENOENT ? 0 : r < 0 ? r : sweep(&top, &shared);
}
