/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further processes in running apps: "husk enter".
 *
 * Each belongs to the control connection that asked for it, which alone hears of its end. When that
 * connection closes, the process and its process group are killed and it is forgotten. Until then
 * it stays in the table, also when it has ended, so that its output can be read to the end. It does
 * not outlive the app, whose PID namespace it is in.
 */
#ifndef GUEST_AGENT_POD_EXEC_H
#define GUEST_AGENT_POD_EXEC_H

#include <stdbool.h>

#include "guest-agent/pod/app.h"

struct cgroup_dir;
struct exec_table;

/* What needs no table: the world around. All borrowed. */
struct exec_config {
	struct loop *loop;
	const struct rootfs_config *rootfs;
	const struct cgroup_dir *cgroup_dir;
	/*
	 * The program of a process of connection @owner is executed. Before exec_reaped() returns.
	 */
	void (*started)(void *ctx, uint64_t owner, const struct agent_exec_ref *m);
	void *ctx;
};

/* An empty table, or NULL if memory is short. */
struct exec_table *exec_table_new(const struct exec_config *config);

/* Forgets everything; running processes stay. Accepts NULL. */
void exec_table_free(struct exec_table *t);

/*
 * Starts the process that @m asks for in @app, which is running, for connection @owner. Its number
 * goes to *ret. 0 or FAULT_SET.
 */
int exec_start(struct exec_table *t, const struct app *app, const struct agent_app_exec *m,
	       uint64_t owner, int64_t *ret, struct fault *f);

/* Requests of connection @owner about a process of its own. 0 or FAULT_SET. */
int exec_signal(struct exec_table *t, const struct agent_exec_signal *m, uint64_t owner,
		struct fault *f);
int exec_resize(struct exec_table *t, const struct agent_exec_resize *m, uint64_t owner,
		struct fault *f);

/*
 * The streams of process @number of app @app, and what messages call it. NULL and @f if there is
 * none.
 */
struct streams *exec_streams(struct exec_table *t, const char *app, int64_t number,
			     const char **ret_whom, struct fault *f);

/* Whether the host may still get bytes of a process: see stream_is_sending(). */
bool exec_any_sending(const struct exec_table *t);

/*
 * Takes note of the end of process @pid, @status as from waitpid(2). True if it was one of the
 * table; then *ret says how it ended, and *ret_owner to whom that is news.
 */
bool exec_reaped(struct exec_table *t, pid_t pid, int status, struct agent_exec_exited *ret,
		 uint64_t *ret_owner);

/* Kills and forgets what belongs to connection @owner, which is closed. */
void exec_drop_owner(struct exec_table *t, uint64_t owner);

#endif
