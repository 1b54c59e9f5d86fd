/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel parameters of a pod, sysctl(8), as "NAME=VALUE", and in a pod manifest as the isolator
 * "os/unix/sysctl" of the pod (appc spec 0.8.11): an object of names and texts.
 */
#ifndef LIB_WIRE_SYSCTLS_H
#define LIB_WIRE_SYSCTLS_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

struct json_object;

#define SYSCTLS_MAX      64   /* of a pod */
#define SYSCTL_NAME_MAX  253  /* bytes; what Kubernetes takes */
#define SYSCTL_VALUE_MAX 1024 /* bytes */
#define SYSCTL_TEXT_MAX  (SYSCTL_NAME_MAX + 1 + SYSCTL_VALUE_MAX)

/*
 * Takes "NAME=VALUE" apart: *ret_path is the file below /proc/sys, *ret_value points into @text.
 * Where the first of '.' and '/' in the name is a '/', these are what separates, and a '.' is one;
 * else it is the other way round, as sysctl(8) has it. No path leads out of /proc/sys. -EINVAL if
 * it is anything else, -E2BIG beyond the limits above.
 */
int sysctl_split(const char *text, char ret_path[SYSCTL_NAME_MAX + 1], const char **ret_value);

/* Appends "NAME=VALUE" to @list, which has room for SYSCTLS_MAX. 0, or -errno and @e. */
int sysctls_add(struct strv *list, const char *text, struct err *e);

/*
 * Whether pods that share the kernel of the host can have all of @list: only what an IPC or network
 * namespace has for itself, and of a network only one that is not the host's. 0, or -EOPNOTSUPP and
 * @e.
 */
int sysctls_check_shared(const struct strv *list, bool is_host_net, struct err *e);

/* Appends what the isolators of @pod say; other ones are an error. 0, or -errno and @e. */
int sysctls_read(struct json_object *pod, struct strv *list, struct err *e);

/* Adds the isolators to @pod, unless @list is empty. The last of a name counts. 0 or -ENOMEM. */
int sysctls_write(const struct strv *list, struct json_object *pod);

#endif
