/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory in which QEMU finds what a domain opens by path
 * (stage1-kvm/vmm/libvirt/domain_xml.h has the names). It is there as long as the pod runs; a file
 * is in it from just before QEMU opens it, at the start or when it is plugged in, until it has.
 *
 * Theory of operation. The files of a pod lie where only husk gets to, and the user under whom
 * libvirt runs QEMU is not husk's. So root's pods get a directory below DOMAIN_DIR_ROOT, which
 * QEMU's user may enter and nobody else, by an access control list: its group may be one that
 * people are members of, and as the owner a QEMU that was taken over could put other files there.
 * In it is a mount of each file: read-only where the disk is, in each mount namespace that gets it.
 * The mounts are in everybody's mountinfo, so that a name says nothing is no protection. The pods
 * of others, whose QEMU runs as they do, have it in the pod directory, with symbolic links.
 */
#ifndef STAGE1_KVM_VMM_LIBVIRT_DOMAIN_DIR_H
#define STAGE1_KVM_VMM_LIBVIRT_DOMAIN_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/base/err.h"

#define DOMAIN_DIR_ROOT "/run/husk"
#define DOMAIN_DIR_POD  "domain" /* in the pod directory */

/* Of the path; that of a socket in it has to fit in an address (unix(7)). */
#define DOMAIN_DIR_MAX 94

/*
 * The absolute path of the directory of the pod @uuid, whose own is @pod_fd. 0; -ENAMETOOLONG or
 * -errno with @e.
 */
int domain_dir_path(int pod_fd, const char *uuid, char ret[DOMAIN_DIR_MAX + 1], struct err *e);

/* Makes it anew, for us alone; what was left of one is removed. 0 or -errno with @e. */
int domain_dir_make(const char *dir, struct err *e);

/*
 * Lets the user @uid enter it, but not list it. 0; -EOPNOTSUPP if the file system has no access
 * control lists; -errno.
 */
int domain_dir_open_to(const char *dir, uid_t uid);

/*
 * The path of the file @fd, which has to be asked for in the mount namespace that it was opened in.
 * 0 or -errno.
 */
int domain_dir_path_of(int fd, char ret[PATH_MAX]);

/*
 * Puts the file @fd, which is at @path, into it as @name: mounted, @read_only, if we are root, else
 * linked. 0; -ESTALE if @path is another file by now; -errno.
 */
int domain_dir_put(const char *dir, const char *name, int fd, const char *path, bool read_only);

/* Writes the @len bytes at @data to a new file @name that only its owner can read. 0 or -errno. */
int domain_dir_write(const char *dir, const char *name, const void *data, size_t len);

/* Removes the file @name, which whoever has it open keeps. 0 or -errno. */
int domain_dir_take(const char *dir, const char *name);

/* Removes what it can of everything in it. 0, also if there is no directory, or -errno. */
int domain_dir_empty(const char *dir);

/* The same, and the directory itself. 0, also if there is none, or -errno. */
int domain_dir_remove(const char *dir);

/* The same for what a pod of root, @uuid, has left when it was killed; nobody else leaves any. */
int domain_dir_remove_left(const char *uuid);

#endif
