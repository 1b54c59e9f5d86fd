/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of apps, for app.stats.
 *
 * Each is read by a child process of its own (guest-agent/pod/job.h), since the kernel may let a
 * reader of its counters wait; the agent and all other requests go on meanwhile. A read belongs to
 * the connection that asked for it, and is killed when that closes. It keeps its place in the table
 * until its process is gone: so the number of processes is bounded even if they cannot be killed.
 */
#ifndef GUEST_AGENT_POD_STATS_H
#define GUEST_AGENT_POD_STATS_H

#include <stdbool.h>

#include "guest-agent/fault.h"
#include "guest-agent/pod/pod_config.h"

struct cgroup_dir;
struct stats_table;

/* An empty table, or NULL if memory is short. @cgroup_dir is borrowed. */
struct stats_table *stats_table_new(const struct cgroup_dir *cgroup_dir);

/* Forgets everything; processes stay. Accepts NULL. */
void stats_table_free(struct stats_table *t);

/* Begins to read what control group @cgroup counts, for @caller. 0, or FAULT_SET. */
int stats_start(struct stats_table *t, unsigned cgroup, struct pod_caller caller, struct fault *f);

/*
 * Takes note of the end of process @pid. True if it was one of the table; then *ret_to is to have
 * the answer: *ret_f, or, if its code is 0, *ret.
 */
bool stats_reaped(struct stats_table *t, pid_t pid, struct pod_caller *ret_to,
		  struct agent_app_stats *ret, struct fault *ret_f);

/* Kills what belongs to connection @conn, which is closed. */
void stats_drop_owner(struct stats_table *t, uint64_t conn);

#endif
