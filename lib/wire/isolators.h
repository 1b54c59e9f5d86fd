/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What confines an app, as the isolators of an appc app section have it (appc specification 0.8.11,
 * "Isolators"), and husk's own. One structure for both origins, so that limits hold for both:
 * the JSON of a manifest, and the texts of the command line.
 *
 *	resource/memory                    {"limit": "64Mi"}
 *	resource/cpu                       {"limit": "1500m"}
 *	os/linux/cpu-shares                1024
 *	os/linux/oom-score-adj             -100
 *	os/linux/no-new-privileges         true
 *	os/linux/capabilities-retain-set   {"set": ["CAP_CHOWN"]}, likewise -remove-set
 *	os/linux/seccomp-retain-set        {"set": ["read", "@systemd/network-io"], "errno": "EPERM"},
 *	                                   likewise -remove-set
 *	husk/pids-limit                    100
 *	husk/rlimits                       {"set": ["nofile=1024:4096"]}
 *	husk/stop-signal                   "SIGQUIT", or a number
 *	husk/init                          true
 *	husk/shared-processes              true
 *	husk/umask                         18
 *	husk/masked-paths                  {"set": ["/proc/kcore"]}, likewise husk/read-only-paths
 *	husk/seccomp-profile               {"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [...]}
 *
 * Paths are protected beside those that husk protects for every app; two sets that are given and
 * have no members say that nothing is. The profile is what the OCI runtime specification calls
 * "linux.seccomp"; {} is no filter. These are whoever's who runs the app, never an image's.
 *
 * An entry with the member "husk/wish": true is its image's, and whoever runs the app said nothing.
 *
 * Whether a capability or system call of that name exists is not known here.
 */
#ifndef LIB_WIRE_ISOLATORS_H
#define LIB_WIRE_ISOLATORS_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/agent.h"

/* Bytes of memory: less than a page is a wrong suffix; more than 1 TiB has no VM. */
#define ISOLATOR_MEMORY_MIN INT64_C(4096)
#define ISOLATOR_MEMORY_MAX (INT64_C(1) << 40)

/* Thousandths of a processor; the kernel gives quotas of at least 1 ms in 100 ms. */
#define ISOLATOR_CPU_MIN 10
#define ISOLATOR_CPU_MAX AGENT_CPU_MILLIS_MAX

/* The kernel's range of cpu.shares (cgroup v1), which appc means. */
#define ISOLATOR_CPU_SHARES_MIN 2
#define ISOLATOR_CPU_SHARES_MAX 262144

/* Process IDs that a Linux kernel has (PID_MAX_LIMIT). */
#define ISOLATOR_PIDS_MAX 4194304

/* The kernel's range. */
#define ISOLATOR_OOM_SCORE_ADJ_MAX 1000

#define ISOLATOR_NAME_MAX    63  /* a capability, system call or wildcard; Linux' have up to 28 */
#define ISOLATOR_CAPS_MAX    64  /* capabilities of a set; the kernel's sets have as many bits */
#define ISOLATOR_SECCOMP_MAX 512 /* names of a set; x86_64 has some 370 system calls */
#define ISOLATOR_ERRNO_MAX   31  /* name of an errno value; the longest has 15 */

/* A text on the command line: every name of the largest set, with a comma. */
#define ISOLATOR_TEXT_MAX ((size_t)ISOLATOR_SECCOMP_MAX * (ISOLATOR_NAME_MAX + 1))

/* Bytes of a profile as JSON; that of containerd has 10 KiB. */
#define ISOLATOR_PROFILE_MAX ((size_t)256 * 1024)

enum isolator {
	ISOLATOR_MEMORY,
	ISOLATOR_CPU,
	ISOLATOR_CPU_SHARES,
	ISOLATOR_OOM_SCORE_ADJ,
	ISOLATOR_NO_NEW_PRIVS,
	ISOLATOR_CAPS_RETAIN,
	ISOLATOR_CAPS_REMOVE,
	ISOLATOR_SECCOMP_RETAIN,
	ISOLATOR_SECCOMP_REMOVE,
	ISOLATOR_PIDS,
	ISOLATOR_RLIMITS,
	ISOLATOR_STOP_SIGNAL,
	ISOLATOR_INIT,
	ISOLATOR_SHARED_PROCESSES,
	ISOLATOR_UMASK,
	ISOLATOR_MASKED_PATHS,
	ISOLATOR_READ_ONLY_PATHS,
	ISOLATOR_SECCOMP_PROFILE,
	ISOLATOR_COUNT_,
};

struct isolators {
	unsigned given;        /* bit N: enum isolator N was */
	unsigned wished;       /* of these: not by who runs the app, but by its image */
	int64_t memory;        /* bytes */
	int64_t cpu_millis;    /* thousandths of a processor */
	int64_t cpu_shares;    /* a weight; others have 1024 */
	int64_t oom_score_adj; /* see proc(5) */
	int64_t pids_max;      /* processes and threads */
	int64_t stop_signal;   /* asks the app to end; 0: SIGTERM */
	int64_t umask;         /* if it is given */
	bool no_new_privs;
	bool with_init;        /* process 1 is not the app, but one that reaps for it */
	bool shared_processes; /* of all apps of the pod that have it */
	struct strv caps;      /* "CAP_NAME", of the set that was given */
	struct strv seccomp;   /* names and wildcards, likewise */
	char seccomp_errno[ISOLATOR_ERRNO_MAX + 1]; /* "EPERM"; "": the process is killed */
	struct strv rlimits;                        /* for rlimit_parse(), a resource once */
	struct strv masked_paths, read_only_paths;  /* absolute */
	char *profile; /* of seccomp, a JSON object as text, owned; NULL: not given */
};

/* No isolator. Allocates nothing. */
void isolators_init(struct isolators *i);
void isolators_deinit(struct isolators *i);

/* Makes @to, which has none, the same as @from. 0 or -ENOMEM. */
int isolators_copy(struct isolators *to, const struct isolators *from);

/*
 * Adds to @to those of @from, an image's wishes, that it does not have, and of which it has no
 * rival: of the two sets of capabilities, and of system calls, an app has one. 0 or -ENOMEM; then
 * @to is as before.
 */
int isolators_merge(struct isolators *to, const struct isolators *from);

/*
 * Makes @which of @to, an isolator whose value is a number, that of @from, or no isolator if @from
 * has none.
 */
void isolators_replace(struct isolators *to, enum isolator which, const struct isolators *from);

static inline bool isolators_has(const struct isolators *i, enum isolator which)
{
	return (i->given >> which) & 1;
}

static inline bool isolators_is_wish(const struct isolators *i, enum isolator which)
{
	return (i->wished >> which) & 1;
}

/* An isolator that only who runs an app may give it, and which an image has; or ISOLATOR_COUNT_. */
enum isolator isolators_not_of_image(const struct isolators *i);

/* Whether the profile of system calls is the one that is no filter. */
bool isolators_unconfined(const struct isolators *i);

/* Whether an app with these is to have nothing of /proc and /sys hidden or read-only. */
bool isolators_open_paths(const struct isolators *i);

/* The name of an isolator, as above. */
const char *isolators_name(enum isolator which);

/*
 * Sets the isolator @which from @text as people write it: quantities like "1.5", "1500m", "64Mi"
 * (k, M, G, T: powers of 1000; Ki, Mi, Gi, Ti: of 1024); numbers; "true" and "false"; names with
 * commas, capabilities also without "CAP_" and in lower case; for ISOLATOR_RLIMITS one more limit.
 * 0; -EINVAL, -E2BIG, -ENOMEM with @e, which does not name the isolator. What was given before is
 * refused.
 */
int isolators_set(struct isolators *i, enum isolator which, const char *text, struct err *e);

/* Sets ISOLATOR_SECCOMP_PROFILE to the JSON object @profile. As isolators_set(). */
int isolators_set_profile(struct isolators *i, struct json_object *profile, struct err *e);

/* Sets the isolator @which, a set of texts, to @members. As isolators_set(). */
int isolators_set_members(struct isolators *i, enum isolator which, const struct strv *members,
			  struct err *e);

/*
 * Sets one of the two seccomp isolators from [mode=retain|remove,][errno=NAME,]NAMES with commas;
 * mode is retain if it is not said. As isolators_set().
 */
int isolators_set_seccomp(struct isolators *i, const char *text, struct err *e);

/*
 * Reads the member "isolators" of the appc app section @run, if it is there. An isolator that is
 * none of the above is refused; of several of one name the last counts. 0; -EBADMSG, -EOPNOTSUPP,
 * -E2BIG, -ENOMEM with @e.
 */
int isolators_read(struct json_object *run, struct isolators *ret, struct err *e);

/* Adds a member "isolators" to @run, unless none is given. 0 or -ENOMEM. */
int isolators_write(const struct isolators *i, struct json_object *run);

/* The errno value called @name, like "EPERM"; -EINVAL if none is. */
int isolators_errno(const char *name);

/*
 * The wildcards of seccomp sets, NULL behind the last: each stands for many names. "@appc.io/all"
 * in a retain set is not a filter, "@appc.io/empty" in a remove set is the default filter.
 */
extern const char *const isolators_wildcards[];
#define ISOLATOR_SECCOMP_ALL   "@appc.io/all"
#define ISOLATOR_SECCOMP_EMPTY "@appc.io/empty"

/*
 * System calls that every filter allows, NULL behind the last: what stands between the agent's
 * installing the filter and the app's first instruction, and how a process ends and leaves a signal
 * handler.
 */
extern const char *const isolators_essential_calls[];

#endif
