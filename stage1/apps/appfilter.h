/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system call filter of an app, from its isolators to the program that the agent installs.
 *
 * A program has two parts. The first is the same for all policies, "no filter" included, and comes
 * before any other rule:
 *
 *	another architecture, x32                     ENOSYS, as if the kernel had none of them
 *	socket(), socketpair() of AF_VSOCK            EAFNOSUPPORT: the agent's and the host's ports
 *	io_uring_setup()                              ENOSYS: its operations pass no filter
 *	mknod() of other devices than an app has      EPERM; but not with "no filter"
 *
 * It compares the lower 32 bits of the address family, which is what the kernel looks at; a rule of
 * libseccomp compares all 64, and a caller could set the upper ones. The second part is
 * libseccomp's:
 *
 *	default      appfilter_default and what the capabilities grant; clone() without namespaces,
 *	             personality() of harmless values; clone3(), whose flags no filter can see, is ENOSYS,
 *	             so that libraries take clone(); so is what is younger than the list. All else: EPERM
 *	retain set   the set and isolators_essential_calls; all else kills the process or is the errno given
 *	remove set   everything but the set
 *	profile      as it says (appfilter_profile.h)
 *	off          everything
 */
#ifndef STAGE1_APPS_APPFILTER_H
#define STAGE1_APPS_APPFILTER_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/isolators.h"

/* BPF_MAXINSNS: a longer program is refused by the kernel. */
#define APPFILTER_INSNS_MAX 4096

/*
 * Compiles the filter of an app with these isolators and @capabilities (bit N: number N) into the
 * hex digits of agent_confinement.seccomp, owned by the caller. 0; -EINVAL if there is no system
 * call of a name; -E2BIG beyond APPFILTER_INSNS_MAX; -errno. With @e.
 */
int appfilter_compile(const struct isolators *isolators, int64_t capabilities, char **ret,
		      struct err *e);

/*
 * The first member of the set of @isolators, which has one, by which an app without capabilities
 * beyond the default gets more than the default filter lets through, in *ret; NULL if there is
 * none. A remove set, which lets through all that it does not name, is named as a whole. 0, or
 * -EINVAL and @e.
 */
int appfilter_find_wider(const struct isolators *isolators, const char **ret, struct err *e);

/* appfilter_compile() for an app that may call what the kernel lets it. */
int appfilter_compile_off(char **ret, struct err *e);

#endif
