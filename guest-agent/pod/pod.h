/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod: its apps, their processes and streams, from pod.setup to pod.shutdown.
 *
 * Requests that take time are answered later through pod_events.done. All functions return at once.
 */
#ifndef GUEST_AGENT_POD_POD_H
#define GUEST_AGENT_POD_POD_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/fault.h"
#include "guest-agent/pod/pod_config.h"
#include "lib/os/loop.h"
#include "lib/wire/agent.h"

/* Return code beside FAULT_SET: the answer comes through pod_events.done. */
enum {
	POD_PENDING = 2,
};

#define POD_SHUTDOWN_WAITERS_MAX 8     /* calls of pod.shutdown that wait for its end */
#define POD_KILL_WAIT_MS         5000  /* for processes to be gone after SIGKILL */
#define POD_UNMOUNT_WAIT_MS      20000 /* for writing the scratch disk out */
#define POD_DRAIN_STEP_MS        5     /* between two looks at who has read what */

struct pod_events {
	/* A pending request has ended; @f is NULL if it succeeded. */
	void (*done)(void *ctx, struct pod_caller to, const struct fault *f);
	/* The same of app.stats, which has succeeded. */
	void (*stats)(void *ctx, struct pod_caller to, const struct agent_app_stats *m);
	/* An app has ended. */
	void (*exited)(void *ctx, const struct agent_app_exited *m);
	/* A further process executes its program; it belongs to connection @conn. */
	void (*exec_started)(void *ctx, uint64_t conn, const struct agent_exec_ref *m);
	/* One has ended; its connection may be gone. */
	void (*exec_exited)(void *ctx, uint64_t conn, const struct agent_exec_exited *m);
	/*
	 * pod.shutdown is over: nothing runs, nothing is left to be written. Comes after its
	 * answers.
	 */
	void (*off)(void *ctx);
	void *ctx;
};

struct pod;

/*
 * An empty pod, or NULL if memory is short. The process must be PID 1: shutting down kills all
 * others. The caller reaps with pod_reap().
 */
struct pod *pod_new(struct loop *loop, const struct pod_config *config,
		    const struct pod_events *events);

/*
 * Begins to do what pod.setup will ask for, if the scratch disk is where it usually is. For a
 * machine that has just booted; whatever comes of it, pod.setup works as without.
 */
void pod_prepare(struct pod *pod);

/* Forgets everything; running processes stay. Accepts NULL. */
void pod_free(struct pod *pod);

/* Collects ended processes: call it after SIGCHLD. */
void pod_reap(struct pod *pod);

/* Sets the pod's time of day, if it has one of its own. 0 or FAULT_SET. */
int pod_set_clock(struct pod *pod, const struct agent_pod_clock *m, struct fault *f);

/* The requests of the protocol. 0, FAULT_SET or POD_PENDING. */
int pod_setup(struct pod *pod, struct agent_pod_setup *m, struct pod_caller caller,
	      struct fault *f);
int pod_app_start(struct pod *pod, const struct agent_app_ref *m, struct pod_caller caller,
		  struct fault *f);
int pod_app_remove(struct pod *pod, const struct agent_app_ref *m, struct pod_caller caller,
		   struct fault *f);
int pod_app_signal(struct pod *pod, const struct agent_app_signal *m, struct fault *f);
int pod_app_freeze(struct pod *pod, const struct agent_app_freeze *m, struct fault *f);
int pod_app_resize(struct pod *pod, const struct agent_app_resize *m, struct fault *f);
int pod_app_update(struct pod *pod, const struct agent_app_update *m, struct pod_caller caller,
		   struct fault *f);
int pod_app_stats(struct pod *pod, const struct agent_app_ref *m, struct pod_caller caller,
		  struct fault *f);
int pod_shutdown(struct pod *pod, const struct agent_pod_shutdown *m, struct pod_caller caller,
		 struct fault *f);

/*
 * Further processes in running apps (guest-agent/pod/exec.h); @owner is the connection that asks.
 * *ret is the number of the new one. 0 or FAULT_SET.
 */
int pod_app_exec(struct pod *pod, const struct agent_app_exec *m, uint64_t owner, int64_t *ret,
		 struct fault *f);
int pod_exec_signal(struct pod *pod, const struct agent_exec_signal *m, uint64_t owner,
		    struct fault *f);
int pod_exec_resize(struct pod *pod, const struct agent_exec_resize *m, uint64_t owner,
		    struct fault *f);

/* A connection has closed: ends what belongs to it. */
void pod_conn_closed(struct pod *pod, uint64_t conn);

/* Takes the contents of @m over if the app is accepted, which POD_PENDING says. */
int pod_app_add(struct pod *pod, struct agent_app_add *m, struct pod_caller caller,
		struct fault *f);

/* Whether a stream can be attached now. 0 or FAULT_SET. */
int pod_attach_check(struct pod *pod, const struct agent_attach *m, struct fault *f);

/* Attaches it. @sock is taken over, also on failure. 0 or FAULT_SET. */
int pod_attach(struct pod *pod, const struct agent_attach *m, int sock, struct fault *f);

/*
 * Connects to a TCP port of the pod, see ports_connect(), and joins what that gives with @sock, as
 * ports_attach() does. 0 or FAULT_SET.
 */
int pod_connect(struct pod *pod, int64_t port, int *ret_fd, struct fault *f);
int pod_attach_port(struct pod *pod, int fd, int sock, struct fault *f);

/* Calls @fn for every app that has ended so far. */
void pod_each_exited(struct pod *pod, void (*fn)(void *ctx, const struct agent_app_exited *m),
		     void *ctx);

#endif
