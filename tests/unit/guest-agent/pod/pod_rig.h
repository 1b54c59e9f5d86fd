/* SPDX-License-Identifier: Apache-2.0 */
/* A pod of the agent with a world that seam.c plays, for tests of what it says. */
#ifndef TESTS_UNIT_GUEST_AGENT_POD_POD_RIG_H
#define TESTS_UNIT_GUEST_AGENT_POD_POD_RIG_H

#include "guest-agent/pod/pod.h"

/* What the pod said, in order: "1ok ", "2-32004 ", "exit:a:0:15 ", "off ". */
extern char said[8192];
extern struct loop loop;
extern struct pod *pod;
extern struct fault fault;
extern bool with_init; /* of apps that are added */

/* A pod, with a loop and nothing said. */
void begin(void);
void end(void);

/* Who asks: number @id of connection 1. */
struct pod_caller caller(int64_t id);

/* What the pod has said since the last time. */
void expect_said(const char *text);

/* Requests, of which number @id says what becomes of them. */
int setup(int64_t id);
int add_with(const char *name, int64_t id, bool tty, bool with_stdin, const char *env,
	     const char *cwd);
int add(const char *name, int64_t id);
int start(const char *name, int64_t id);
int send_signal(const char *name, int sig);
int shut_down_drained(int64_t grace_ms, int64_t drain_ms, int64_t id);
int shut_down(int64_t grace_ms, int64_t id);

/* What has yielded @r was refused with @code. */
void expect_refused(int r, int code);

/* The jobs, mounts and processes that seam.c plays come to an end. */
void end_job(int code);
void end_mount(int code);
void end_app(int status);

/* A pod that is ready; and one with app "a" running. */
void begin_ready(void);
void begin_running(void);

/*
 * Attaches a stream of an app, or of process @exec in it; *ret_host is the host's end, the
 * caller's.
 */
int attach_open(const char *name, int64_t exec, enum agent_stream stream, int *ret_host);

/* The same of a host that leaves at once. */
int attach_to(const char *name, int64_t exec, enum agent_stream stream);

#endif
