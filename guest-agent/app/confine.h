/* SPDX-License-Identifier: Apache-2.0 */
/* What confines an app and every further process in it, beside its namespaces. */
#ifndef GUEST_AGENT_APP_CONFINE_H
#define GUEST_AGENT_APP_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest-agent/fault.h"
#include "lib/cgroup/cgroup_limits.h"
#include "lib/wire/rlimit.h"

/*
 * What apps may raise their limit of open files to; the agent's own is as high, or it could not be.
 */
#define CONFINE_NOFILE_HARD 524288

struct ids;
struct sock_filter;

/* What struct agent_confinement says, checked; kept for the life of the app. */
struct confinement {
	uint64_t capabilities;
	bool no_new_privs, read_only_root, open_paths;
	mode_t umask;
	size_t n_groups, n_rlimits;
	gid_t groups[AGENT_GROUPS_MAX];
	struct rlimit_spec rlimits[AGENT_RLIMITS_MAX];
	struct sock_filter *filter; /* owned; NULL: none */
	size_t filter_len;          /* instructions */
	int oom_score_adj;
	struct cgroup_limits limits;
};

/* What @m says. 0, or FAULT_SET with AGENT_E_PARAMS, or AGENT_E_INTERNAL if memory is short. */
int confinement_init(struct confinement *c, const struct agent_confinement *m, struct fault *f);

/* Other supplementary groups, numbers: at most AGENT_GROUPS_MAX. As above. */
int confinement_set_groups(struct confinement *c, const struct strv *groups, struct fault *f);

/* Frees what @c holds. Accepts one of zeros. */
void confinement_deinit(struct confinement *c);

/*
 * Makes the calling process as likely a victim as @c says when memory is short; what it executes
 * stays that. Needs a /proc, so it comes before the change of root. 0 or FAULT_SET.
 */
int confine_badness(const struct confinement *c, struct fault *f);

/*
 * Takes every privilege from the calling process that @c and @ids do not give it, as the last thing
 * before execve(2): behind it, only execve(2), write(2) and _exit(2) are sure not to be refused by
 * the app's system call filter. 0 or FAULT_SET.
 */
int confine(const struct confinement *c, const struct ids *ids, struct fault *f);

#endif
