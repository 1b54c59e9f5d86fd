/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up privileges, in named steps. Each step is final for the process.
 *
 * The order that works: descriptors opened, then sandbox_drop_capabilities() or
 * sandbox_keep_capabilities(), sandbox_no_files() or sandbox_only_below(), sandbox_seccomp(). Every
 * step returns 0 or -errno and a caller that gets an error must exit.
 */
#ifndef LIB_OS_SANDBOX_H
#define LIB_OS_SANDBOX_H

#include <stddef.h>

/*
 * Empties the bounding set alone, which a process can only as long as it has CAP_SETPCAP: for root
 * that becomes another user before it takes the other steps. No error without that capability;
 * no_new_privs makes the set moot.
 */
int sandbox_drop_bounding_set(void);

/* The same, but the @n capabilities numbered in @kept stay in the set. */
int sandbox_keep_bounding_set(const int *kept, size_t n);

/*
 * Sets no_new_privs and empties the bounding, ambient, inheritable, permitted and effective
 * capability sets. Also marks the process undumpable, so that no other process of the same user
 * can read its memory.
 */
int sandbox_drop_capabilities(void);

/*
 * The same, but the @n capabilities numbered in @kept (CAP_CHOWN, ...) stay permitted, effective
 * and bounding, those of them that the process had.
 */
int sandbox_keep_capabilities(const int *kept, size_t n);

/*
 * Landlock with no rule: no file-system access by path any more. Where the kernel has no Landlock
 * this succeeds without effect and seccomp alone keeps files out of reach. Needs no_new_privs.
 */
int sandbox_no_files(void);

/*
 * Landlock with one rule: by path, files of all types can be made, written and linked and
 * directories be listed below the open directory @dir_fd; nothing elsewhere, and even there nothing
 * is read, removed or executed. Without effect where the kernel has no Landlock, and where it has
 * the first version of it (Linux 5.13 to 5.18), which forbids hard links between directories. Needs
 * no_new_privs.
 */
int sandbox_only_below(int dir_fd);

/*
 * Likewise: by path, files and directories can be read below the open directory @dir_fd, and
 * nothing else. Without effect where the kernel has no Landlock.
 */
int sandbox_only_read(int dir_fd);

/*
 * Installs a seccomp filter that allows the @n system calls numbered in @allowed and kills the
 * process on any other. mmap and mprotect, if listed, are allowed only without PROT_EXEC: no code
 * that was not there before. Needs no_new_privs. -ENOMEM or -errno.
 */
int sandbox_seccomp(const int *allowed, size_t n);

#endif
