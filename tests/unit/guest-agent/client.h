/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real agent as PID 1 of a PID namespace, with directories for disks, and a host that talks to
 * it. Needs root for namespaces and mounts. Whatever goes wrong here fails the test.
 */
#ifndef TESTS_UNIT_GUEST_AGENT_CLIENT_H
#define TESTS_UNIT_GUEST_AGENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/buf.h"
#include "lib/wire/agent.h"

#define SECRET     "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define TIMEOUT_MS 120000

struct json_object;

/* One control connection. */
struct client {
	int fd;
	int64_t last_id;
	struct buf in;
	struct agent_app_exited exits[AGENT_APPS_MAX];
	size_t n_exits;
	struct agent_exec_ref exec_start;   /* the last one */
	struct agent_exec_exited exec_exit; /* likewise */
};

/* What the tests vary of an app; zero means the usual. */
struct how {
	const char *argv[8];
	const char *user, *group, *cwd, *env;
	int64_t lun;
	bool with_stdin, with_tty;
	const char *groups[2]; /* of a further process: in place of the app's */
	/* The rest is for apps only. */
	int64_t stop_signal;
	bool with_init, shares_processes;
	int64_t capabilities, oom_score_adj, memory_max, pids_max; /* capabilities -1: none */
	const char *pre_start[4], *post_stop[4];
	const char *rlimits[2], *seccomp;
	const char *masked[3], *read_only[3];
	int64_t umask; /* 0: not said */
	bool no_new_privs, read_only_root, open_paths;
};

extern pid_t agent;            /* the parent of the agent, whose exit code it has */
extern struct client host;     /* the connection of those functions below that name none */
extern const char *cgroup_dir; /* the next agent's --cgroup-dir; NULL: none */

/* For cmocka: an agent whose pod is set up; without a /proc of its own PID namespace; its end. */
int begin(void **state);
int begin_without_proc(void **state);
int end(void **state);
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

/* A file in directory @dir, which the image of all apps is: "PATH/image". */
void write_file(const char *dir, const char *name, const char *text, mode_t mode);

/* Connections: a bare one, one with a client around it, and hello on it (0 or the error's code). */
int dial(void);
void client_init(struct client *cl);
void client_deinit(struct client *cl);
int hello(struct client *cl, const char *secret);

/*
 * Requests: ask() sends one and yields its number, wait_reply() yields 0 or the error's code and,
 * unless NULL, its text; call() is both. They take @body over.
 */
int64_t ask(struct client *cl, const char *method, struct json_object *body);
int wait_reply(struct client *cl, int64_t id, char *ret_text);
int call(struct client *cl, const char *method, struct json_object *body);

/* Requests by name; those that return int yield 0 or the error's code. */
struct json_object *ref(const char *app);
int setup(int64_t lun);
int start(const char *app);
int64_t ask_add(const char *app, struct how how);
int64_t ask_shutdown(struct client *cl, int64_t grace_ms);
void add_and_start(const char *app, struct how how);

/* Starts a further process in @app; yields its number or the error's code. */
int exec_in(struct client *cl, const char *app, struct how how);

/* What the kernel counts for @app, which runs. */
struct agent_app_stats stats_of(const char *app);

/* Wait for the end of an app or a further process. */
const struct agent_app_exited *wait_exit(struct client *cl, const char *app);
const struct agent_exec_exited *wait_exec(struct client *cl, int64_t number);

/*
 * Attach a stream of the app, or of process @exec in it; yield its connection or the error's code.
 */
int attach_to(const char *app, int64_t exec, enum agent_stream stream);
int attach(const char *app, enum agent_stream stream);

/* Everything that comes out of a stream, as text that is valid until the next call. */
const char *output_of(const char *app, int64_t exec, enum agent_stream stream);
const char *output(const char *app, enum agent_stream stream);

/* Reads @fd up to the end of a line, which is valid until the next call. */
const char *read_line(int fd);

/* Adds and starts an app, which must end with 0; yields its standard output. */
const char *run(const char *app, struct how how);

#endif
