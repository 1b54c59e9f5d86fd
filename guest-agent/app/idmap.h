/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which users and groups there are where the agent is: all in a machine of its own, some in a user
 * namespace (user_namespaces(7)). The kernel calls any use of others an invalid argument.
 */
#ifndef GUEST_AGENT_APP_IDMAP_H
#define GUEST_AGENT_APP_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest-agent/fault.h"

/* Of a map; the kernel takes 340 lines, and whoever makes a pod writes one or two. */
#define IDMAP_TEXT_MAX 4096

/*
 * Whether the @map of a namespace, lines of "INSIDE OUTSIDE COUNT", has @id, and which is its last
 * one. Pure.
 */
bool idmap_has(const char *map, uint32_t id, uint32_t *ret_last);

/*
 * Whether this namespace has the user @uid, and the @n @groups. 0, or FAULT_SET with AGENT_E_USER
 * naming one that it lacks. Where that cannot be found out, the kernel has the last word.
 */
int idmap_check_user(uid_t uid, struct fault *f);
int idmap_check_groups(const gid_t *groups, size_t n, struct fault *f);

#endif
