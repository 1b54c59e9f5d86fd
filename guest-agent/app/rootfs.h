/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file systems of a pod. Everything here blocks on disks: call it in a process of its own.
 *
 * Below the run directory, whose path has no ',' or ':':
 *   empty/                nothing
 *   scratch/              the scratch disk (ext4) or a tmpfs
 *   scratch/APP/upper     what the app has written (read by "husk export")
 *   scratch/APP/work      overlayfs
 *   apps/APP/lower        the app's image (squashfs or erofs), read-only
 *   apps/APP/extra        what the image lacks: /tmp, mount points, a few files in /etc
 *   apps/APP/root         all three, as an overlay; or a volume in their place
 *   apps/APP/memory/NAME  a volume that the app has to itself, a tmpfs
 *   scratch/APP/volumes/NAME  another, on the disk
 *   memory/NAME, scratch/+volumes/NAME  volumes of the pod; no app is called so
 *   host/SLOT             volumes of the host: a virtiofs, or without a VM what is mounted there
 *   host/apps/APP/SLOT    those of an app: links to the next
 *   host/apps/+shared/KEY what is mounted, for all apps that have brought the same
 *   blocks/SLOT           file systems on disks of their own
 *   shm                   /dev/shm of all apps, a tmpfs
 */
#ifndef GUEST_AGENT_APP_ROOTFS_H
#define GUEST_AGENT_APP_ROOTFS_H

#include <stdint.h>

#include "guest-agent/app/ids.h"
#include "guest-agent/fault.h"

/* The longest run directory, so that the paths of an overlay fit into one page of mount options. */
#define ROOTFS_RUN_DIR_MAX 512

/* Room for the run directory, two fixed names and an app's name. */
#define ROOTFS_PATH_MAX (ROOTFS_RUN_DIR_MAX + AGENT_NAME_MAX + 32)

struct rootfs_config {
	const char *run_dir; /* "" is the root directory */
	/*
	 * See disk_wait(). Not NULL: there is no VM. The kernel and the file systems are the
	 * host's, and what a pod cannot do there in a user namespace is done in another way.
	 */
	const char *disk_dir;
};

/* Mounts the memory that the apps of the pod share, as they share IPC. 0 or FAULT_SET. */
int rootfs_mount_shm(const struct rootfs_config *c, struct fault *f);

/* A mount of it, attached nowhere. The caller's descriptor, or -errno. */
int rootfs_open_shm(const struct rootfs_config *c);

/* Mounts scratch disk @lun, or a tmpfs if that is -1. 0 or FAULT_SET. */
int rootfs_mount_scratch(const struct rootfs_config *c, int64_t lun, struct fault *f);

/* What an app calls itself and others. Borrowed. */
struct rootfs_names {
	const char *hostname;
	const char *resolv_conf; /* text of the file in place of the image's; NULL: the image's */
	const char *hosts;       /* likewise; NULL: the image's, or what names the pod itself */
};

/*
 * Mounts image @lun and the overlay of @app, in which /tmp, /etc/mtab, /etc/hostname and /etc/hosts
 * are added if the image lacks them. What a failure leaves is for rootfs_discard_app(). 0 or
 * FAULT_SET.
 */
int rootfs_mount_app(const struct rootfs_config *c, const char *app, int64_t lun,
		     const struct rootfs_names *names, struct fault *f);

/*
 * For an app whose root directory is a volume: makes the directories that all apps have, of which
 * rootfs_app_path() is where it is to be mounted. As above.
 */
int rootfs_make_app(const struct rootfs_config *c, const char *app, struct fault *f);

/*
 * Resolves user and group of @app in its mounted root; see ids_resolve(). User 0 by number is that
 * whatever the image has: it has no supplementary groups, and of passwd, if that can be used, name
 * and home.
 */
int rootfs_resolve_ids(const struct rootfs_config *c, const char *app, const char *user,
		       const char *group, struct ids *ret, struct fault *f);

/*
 * Unmounts the file systems of @app, deletes what it has written, gives the freed blocks back to
 * the host and takes disk @lun out of the kernel's list. 0 or FAULT_SET; then it can be tried
 * again.
 */
int rootfs_remove_app(const struct rootfs_config *c, const char *app, int64_t lun, struct fault *f);

/*
 * Unmounts the root of @app if it is there, so that nothing holds the scratch disk. The image below
 * stays: nobody can have written to it, and to forget what was read of it takes a while.
 */
void rootfs_unmount_root(const struct rootfs_config *c, const char *app);

/* Takes back what rootfs_mount_app() made for an app that cannot be added, as far as it came. */
void rootfs_discard_app(const struct rootfs_config *c, const char *app);

/*
 * Writes the scratch disk out and makes it read-only, after which it is as clean as an unmounted
 * one. Without a VM there is nothing to do. What is mounted above it stays: to take that apart is
 * work for nothing when the machine goes off. 0 or -errno: -EBUSY if somebody may still write.
 */
int rootfs_seal_scratch(const struct rootfs_config *c);

/* Syncs and unmounts the scratch disk. 0 or FAULT_SET. */
int rootfs_unmount_scratch(const struct rootfs_config *c, struct fault *f);

/* Path of a directory for nothing, which may not exist yet; as rootfs_app_path(). */
const char *rootfs_empty_path(const struct rootfs_config *c, char *ret);

/* Path of @app's root directory, written to @ret of ROOTFS_PATH_MAX bytes and returned. */
const char *rootfs_app_path(const struct rootfs_config *c, const char *app, char *ret);

#endif
