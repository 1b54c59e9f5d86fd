/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces with names, as ip-netns(8) has them: files of /run/netns on which the
 * namespace is mounted, so that plugins can be given a path, and people see them.
 */
#ifndef STAGE1_NET_NETNS_H
#define STAGE1_NET_NETNS_H

#include <limits.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

#define NETNS_DIR "/run/netns"

/* Where the namespace of the pod @uuid is: NETNS_DIR "/husk-UUID". */
void netns_path(const char *uuid, char ret[PATH_MAX]);

/* Makes a namespace without a name. The descriptor, or -errno and @e. */
int netns_make(struct err *e);

/* Opens the namespace at @path, which must be one. The descriptor, or -errno and @e. */
int netns_open(const char *path, struct err *e);

/* Whether @fd is the caller's own namespace. */
bool netns_is_own(int fd);

/* Gives the namespace @fd the name @path of netns_path(). 0, or -errno and @e. */
int netns_name(int fd, const char *path, struct err *e);

/* Whether there is a network namespace at @path. */
bool netns_exists(const char *path);

/* Takes the name away; no failure if there is none. 0, or -errno and @e. */
int netns_forget(const char *path, struct err *e);

/* Calls @fn(@ctx) in the namespace @fd and comes back. What @fn returned, or -errno and @e. */
int netns_call(int fd, int (*fn)(void *ctx, struct err *e), void *ctx, struct err *e);

/*
 * Sets those of @list ("NAME=VALUE", lib/wire/sysctls.h) that a network has for itself, in the
 * namespace @fd, and takes them off the list: root of the users of a pod, whose namespace it is
 * not, may not. 0, or -errno and @e.
 */
int netns_take_sysctls(int fd, struct strv *list, struct err *e);

#endif
