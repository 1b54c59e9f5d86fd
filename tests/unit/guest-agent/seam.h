/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's world, played: children that run until the test ends them, a machine that only
 * counts. Linked instead of guest-agent/{job,launch,pidns,rootfs,machine}.c, under the modules that
 * decide.
 */
#ifndef TESTS_UNIT_GUEST_AGENT_SEAM_H
#define TESTS_UNIT_GUEST_AGENT_SEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SEAM_CHILDREN_MAX 256
#define SEAM_CLOSED_PORT  1 /* nobody listens there; on all others somebody does */

struct seam_child {
	pid_t pid;
	bool is_job;
	bool ended;
	int status;
	int fault;   /* of a job or of mounting an app, 0: success */
	int hear_fd; /* of an app's process */
	bool mounted, released;
	int signal; /* the last one sent to it */
};

/* The first process of an app's PID namespace: lives until it is killed. */
struct seam_init {
	pid_t pid;
	bool ended;
};

struct seam {
	struct seam_child children[SEAM_CHILDREN_MAX];
	size_t n_children;
	struct seam_init inits[SEAM_CHILDREN_MAX];
	size_t n_inits;
	struct seam_child reaped; /* the last one */
	pid_t last_pid, last_init;
	bool no_fork;   /* starting children fails */
	bool deaf;      /* processes that have not mounted are gone when they are released */
	bool slow_exec; /* what is released does not execute before seam_execute() */
	unsigned kills;
	unsigned hostnames, nets;
	size_t sysctls;
	bool fail_sysctl;
	int64_t clock_ns; /* that was set last */
	int low_ports;    /* how often they were opened for everybody */
	bool fail_net;
};

extern struct seam seam;

/* Forgets everything. */
void seam_reset(void);

/* The number of living children that are jobs, or apps. */
size_t seam_count(bool jobs);

/* The first app's process that has not yet mounted says so (@fault 0), or fails. */
bool seam_mount_app(int fault);

/* Ends the first living job with fault code @fault (0: success), or the first living app. */
bool seam_end_job(int fault);
bool seam_end_app(int status);

/* The released processes of apps execute their programs. */
void seam_execute(void);

#endif
