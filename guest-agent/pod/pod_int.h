/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod, as its parts share it. Its states:
 *
 *   NEW        pod.setup is allowed. A job may already be mounting the scratch disk.
 *   SETUP      a job mounts the scratch disk. app.add is accepted and waits.
 *   READY      apps can be added and started.
 *   TERM       pod.shutdown: the apps were asked to end, until no app runs or the grace period
 *              ends. Without a grace period none is sent: how an app ends would depend on which
 *              signal is first.
 *   KILL       SIGKILL was sent to everything, until nothing is left to reap or POD_KILL_WAIT_MS.
 *   UNMOUNT    a job seals the scratch disk, or else unmounts it, for at most POD_UNMOUNT_WAIT_MS.
 *   DRAIN      outputs that the host has attached are read to their ends, or the time for that is
 *              over.
 *   OFF        over; all callers of pod.shutdown were answered.
 *
 * From TERM on only signals, resizes, attachments and further calls of pod.shutdown are accepted. A
 * failed setup leads back to NEW. An app goes through the states in app.h; one that could not be
 * added, or was removed, becomes free again. Requests that wait hold no memory but their caller's
 * number.
 */
#ifndef GUEST_AGENT_POD_POD_INT_H
#define GUEST_AGENT_POD_POD_INT_H

#include "guest-agent/pod/app.h"
#include "guest-agent/pod/exec.h"
#include "guest-agent/pod/job.h"
#include "guest-agent/pod/pod.h"
#include "guest-agent/pod/ports.h"
#include "guest-agent/pod/stats.h"

enum pod_state {
	POD_NEW,
	POD_SETUP,
	POD_READY,
	POD_TERM,
	POD_KILL,
	POD_UNMOUNT,
	POD_DRAIN,
	POD_OFF,
};

struct pod {
	enum pod_state state;
	struct loop *loop;
	struct pod_config config;
	struct pod_events events;
	char hostname[AGENT_HOSTNAME_MAX + 1];
	char *resolv_conf, *hosts; /* owned: what apps get, as pod.setup says */
	int64_t scratch_lun;
	struct job job; /* prepare, setup or unmount */
	bool preparing; /* the job is that of pod_prepare() */
	bool prepared;  /* AGENT_SCRATCH_LUN is mounted */
	struct pod_caller setup_caller;
	struct loop_timer timer; /* end of TERM, KILL or UNMOUNT; next look in DRAIN */
	int64_t deadline_ns;     /* of TERM */
	int64_t drain_from_ns, drain_ms;
	struct pod_caller waiters[POD_SHUTDOWN_WAITERS_MAX];
	size_t n_waiters;
	struct app *apps[AGENT_APPS_MAX]; /* owned; NULL: free */
	pid_t init; /* first process of the PID namespace that apps share; 0: none (yet) */
	unsigned last_cgroup; /* number of the last app's */
	struct exec_table *execs;
	struct stats_table *stats;
	struct ports *ports; /* NULL before the first connection to one */
};

/* The next app from slot *@at on, or NULL; *@at is then behind it. */
struct app *pod_next_app(const struct pod *pod, size_t *at);

/* The app @name, or NULL and @f. */
struct app *pod_need_app(struct pod *pod, const char *name, struct fault *f);

/*
 * One in which another process can be started, or NULL and @f: shutting down waits for all of them.
 */
struct app *pod_need_running(struct pod *pod, const char *name, struct fault *f);

#endif
