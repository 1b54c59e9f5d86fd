/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel parameters below /proc/sys, of the namespaces that the caller is in. */
#ifndef LIB_NET_PROC_SYS_H
#define LIB_NET_PROC_SYS_H

#include "lib/base/err.h"

/* Sets "NAME=VALUE" (lib/wire/sysctls.h). 0; -EINVAL and others of open(2) and write(2), and @e. */
int proc_sys_set(const char *text, struct err *e);

#endif
