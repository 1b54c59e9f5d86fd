/* SPDX-License-Identifier: Apache-2.0 */
/* Names that people use for numbers of the kernel's interface: capabilities, system calls. */
#ifndef LIB_OS_NAMES_H
#define LIB_OS_NAMES_H

/* The number of the capability @name, like "CAP_CHOWN"; -EINVAL if there is none. */
int names_capability(const char *name);

/*
 * The number of the system call @name on this architecture; -ENOENT if only others have it; -EINVAL
 * if none has.
 */
int names_syscall(const char *name);

#endif
