/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User namespaces (user_namespaces(7)) of 65536 ids.
 *
 * Root maps ids that nobody else has, by writing the map. Anybody else is root in there himself,
 * and has the subordinate ids that subuid(5) and subgid(5) give him for all others, by newuidmap(1)
 * and newgidmap(1).
 */
#ifndef LIB_OS_USERNS_H
#define LIB_OS_USERNS_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

#define USERNS_IDS 65536 /* what images use; uid_t is larger, people's programs are not */

/*
 * Ids for whatever has the UUID @uuid, of those from 0x70000000 to 0x7ffdffff, which belong to
 * nobody who keeps to https://systemd.io/UIDS-GIDS. Where those of a namespace begin that root
 * makes: one of 3840 ranges. Two that share a range share no file and no namespace.
 */
uint32_t userns_base(const char *uuid);

/*
 * One id without a namespace, behind these ranges. Two that share one still share no file, socket
 * or descriptor.
 */
uint32_t userns_single_id(const char *uuid);

/*
 * Finds the first range of at least USERNS_IDS - 1 subordinate ids that @text, subuid(5) or
 * subgid(5) of @len bytes, gives the user @name with the number @uid. Pure. 0 and *ret, or -ENOENT.
 */
int userns_find_range(const char *text, size_t len, const char *name, uid_t uid, uint32_t *ret);

/* Whether the caller could map ids. 0, or -errno and @e with what is missing. */
int userns_check(struct err *e);

/*
 * Maps the ids of process @pid, which is in a new user namespace of the caller: from @base on if
 * root calls, else the caller's own. 0, or -errno and @e.
 */
int userns_map(pid_t pid, uint32_t base, struct err *e);

/*
 * Calls @fn(@ctx) as root of a new user namespace with the caller's own ids, in a process of its
 * own, and waits for it. For files that only subordinate ids own. 0, or what @fn returned (-1 to
 * -255), or -errno and @e.
 */
int userns_call(int (*fn)(void *ctx), void *ctx, struct err *e);

/*
 * Makes a user namespace with the ids of userns_map(), in which no process is. For root, to see
 * what can be done with one. The descriptor, or -errno and @e.
 */
int userns_make(struct err *e);

/*
 * Becomes root, in the namespace that the process is in or has joined. Its parent's end kills it
 * from then on: the change of ids would take back what was said of that before. 0 or -errno.
 */
int userns_become_root(void);

#endif
