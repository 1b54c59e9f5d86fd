/*
 * Giving up privileges, in named steps. Each step is final for the process.
 *
 * The order that works: descriptors opened, then sandbox_drop_capabilities(), sandbox_no_files(),
 * sandbox_seccomp(). Every step returns 0 or -errno and a caller that gets an error must exit.
 */
#ifndef LIB_OS_SANDBOX_H
#define LIB_OS_SANDBOX_H

#include <stddef.h>

/*
 * Sets no_new_privs and empties the bounding, ambient, inheritable, permitted and effective
 * capability sets. Also marks the process undumpable, so that no other process of the same user
 * can read its memory.
 */
int sandbox_drop_capabilities(void);

/*
 * Landlock with no rule: no file-system access by path any more. Where the kernel has no Landlock
 * this succeeds without effect and seccomp alone keeps files out of reach. Needs no_new_privs.
 */
int sandbox_no_files(void);

/*
 * Installs a seccomp filter that allows the @n system calls numbered in @allowed and kills the
 * process on any other. mmap and mprotect, if listed, are allowed only without PROT_EXEC: no code
 * that was not there before. Needs no_new_privs. -ENOMEM or -errno.
 */
int sandbox_seccomp(const int *allowed, size_t n);

#endif
