/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles of system calls, as "linux.seccomp" of the OCI runtime specification 1.1 has them:
 *
 *	defaultAction, defaultErrnoRet      what happens to calls that no rule is about
 *	syscalls: [{names, action, errnoRet, args: [{index, value, valueTwo, op}]}]
 *
 * As with other runtimes a name that is not known is passed over, conditions on the same argument
 * are alternatives, and calls that are younger than all that the profile names do not exist unless
 * its default allows them: programs look for older ones then. What the agent needs between the
 * filter and the program is never refused, whatever the profile says: execve, capset (which only
 * gives up), write, exit_group. "architectures" means nothing, as there are no calls of others in a
 * pod, and of "flags" only that is taken which changes nothing there.
 */
#ifndef STAGE1_APPS_APPFILTER_PROFILE_H
#define STAGE1_APPS_APPFILTER_PROFILE_H

#include <seccomp.h>
#include <stdint.h>

#include "lib/base/err.h"

#define APPFILTER_PROFILE_RULES_MAX 4096 /* each takes an instruction of the program at least */

/*
 * Rules with conditions for one call, and conditions in all. libseccomp's time grows with the
 * fourth power of the former; containerd's own profile has five for one call, and ten in all.
 */
#define APPFILTER_PROFILE_CONDITIONAL_MAX 24
#define APPFILTER_PROFILE_CONDITIONS_MAX  256

/*
 * Makes rules of the JSON text @profile, in *ret (seccomp_release()); system calls from number
 * *limit on are unknown to it. 0; -EINVAL for what is no profile, -EOPNOTSUPP for what cannot be
 * done in a pod, -E2BIG, -ENOMEM, with @e.
 */
int appfilter_profile_compile(const char *profile, scmp_filter_ctx *ret, uint32_t *limit,
			      struct err *e);

#endif
