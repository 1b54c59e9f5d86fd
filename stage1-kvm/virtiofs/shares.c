/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/virtiofs/shares.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "lib/os/fd.h"

#define CLOSED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* A small tmpfs, attached nowhere yet. */
static int make_dir(void)
{
	cleanup_fd int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    fsconfig(context, FSCONFIG_SET_STRING, "size", "1m", 0) < 0 ||
	    fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Descriptors of the volumes' mounts, in their order. */
struct shares {
	int mounts[AGENT_VOLUME_SLOTS];
	size_t n;
};

static void shares_deinit(struct shares *s)
{
	while (s->n > 0)
		fd_close(s->mounts[--s->n]);
}

static int open_shares(const struct host_volume *volumes, size_t n, int ids, struct shares *ret,
		       struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		int mount = host_volume_mount(&volumes[i], NULL, e);
		if (mount < 0)
			return mount;
		ret->mounts[ret->n++] = mount;
		if (ids >= 0)
			r = host_volume_map_ids(mount, &volumes[i], ids, "--volume-ids=host", e);
	}
	return r;
}

/* From now on nothing can be made in @dir, but by who makes a mount of it that is his own. */
static int close_dir(int dir, unsigned propagation)
{
	struct mount_attr attr = { .attr_set = CLOSED, .propagation = propagation };
	return mount_setattr(dir, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

/* The directory for what comes later, whose mounts are shared with namespaces made of this one. */
static int attach_apps(int dir)
{
	cleanup_fd int apps = make_dir();
	if (apps < 0)
		return apps;
	int r = host_volume_make_place(apps, dir, AGENT_HOST_APPS);
	if (r == 0)
		r = host_volume_attach(apps, dir, AGENT_HOST_APPS);
	return r == 0 ? close_dir(apps, MS_SHARED) : r;
}

/* Kernels before 6.15 attach mounts only to what is attached itself. */
static int attach_shares(int dir, const struct host_volume *volumes, const struct shares *s,
			 struct err *e)
{
	if (move_mount(dir, "", AT_FDCWD, SHARES_DIR, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, -errno, "volumes: cannot mount \"" SHARES_DIR "\"");
	for (size_t i = 0; i < s->n; i++) {
		int r = host_volume_make_place(s->mounts[i], dir, volumes[i].name);
		if (r == 0)
			r = host_volume_attach(s->mounts[i], dir, volumes[i].name);
		if (r < 0)
			return err_sys(e, r, "volume of \"%s\"", volumes[i].path);
	}
	int r = attach_apps(dir);
	if (r == 0)
		r = close_dir(dir, MS_PRIVATE);
	return r < 0 ? err_sys(e, r, "volumes: cannot set up \"" SHARES_DIR "\"") : 0;
}

/* SHARES_DIR may hide volumes, so they are opened before. */
int shares_mount(const struct host_volume *volumes, size_t n, int ids, struct err *e)
{
	CLEANUP(shares_deinit) struct shares s = { .n = 0 };
	int r = open_shares(volumes, n, ids, &s, e);
	if (r < 0)
		return r;
	cleanup_fd int dir = make_dir();
	return dir < 0 ? err_sys(e, dir, "volumes: cannot make a directory for them")
		       : attach_shares(dir, volumes, &s, e);
}
