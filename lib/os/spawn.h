/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting child programs.
 *
 * A child gets exactly the descriptors that its plan lists, at the numbers that the plan gives, and
 * dies with its parent if the plan says so. A failure between fork and exec is reported to the
 * parent as if the call itself had failed.
 */
#ifndef LIB_OS_SPAWN_H
#define LIB_OS_SPAWN_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Descriptors of one plan: 3 stdio, a VM's channels, one for each disk, 8 for each interface. */
#define SPAWN_FDS_MAX 256

#define SPAWN_LIMITS_MAX 4 /* resource limits of one plan */

#define SPAWN_CGROUPS_MAX 8 /* one for each hierarchy that somebody may use */

struct spawn_limit {
	int resource; /* RLIMIT_... */
	rlim_t value; /* soft and hard; one that is lower already stays */
};

struct spawn_fd {
	int source; /* descriptor in the parent, not consumed */
	int target; /* its number in the child */
};

/* Control groups. */
struct spawn_cgroups {
	int dir;                      /* that of version 2; -EBADF: none */
	int tasks[SPAWN_CGROUPS_MAX]; /* files "tasks" of those of version 1, O_WRONLY */
	size_t n;
};

#define SPAWN_CGROUPS_NONE ((struct spawn_cgroups){ .dir = -EBADF })

struct spawn_plan {
	const char *program; /* path, no search */
	char *const *argv;   /* borrowed, NULL-terminated */
	char *const *envp;   /* borrowed, NULL-terminated; NULL means the parent's */
	struct spawn_fd fds[SPAWN_FDS_MAX];
	size_t n_fds;
	bool change_dir; /* make @dir_fd, a directory, the working directory */
	int dir_fd;
	bool die_with_parent; /* SIGKILL when the parent's thread ends */
	/* In a network namespace without interfaces; who is not root: where the host permits it. */
	bool no_network;
	bool new_session; /* setsid(2): no terminal, and its signals do not reach the child */
	sigset_t blocked; /* signals that the child starts with blocked; zeroed: none */
	struct spawn_limit limits[SPAWN_LIMITS_MAX];
	size_t n_limits;
	bool no_new_privs;
	const struct spawn_cgroups *cgroups; /* borrowed: where the child is to be; NULL: here */
	/*
	 * Give up all groups but @gid and @groups, become @uid and @gid. The program may then lie
	 * where only the parent gets to; its own directory must be searchable, and it is not a
	 * script.
	 */
	bool change_ids;
	uid_t uid;
	gid_t gid;
	gid_t groups[4];
	size_t n_groups;
};

/* Adds a descriptor to @plan. -E2BIG beyond SPAWN_FDS_MAX. */
int spawn_plan_fd(struct spawn_plan *plan, int source, int target);

/* Adds a limit to @plan. -E2BIG beyond SPAWN_LIMITS_MAX. */
int spawn_plan_limit(struct spawn_plan *plan, int resource, rlim_t value);

/*
 * Starts the program. On success *ret_pid is the child and *ret_pidfd (may be NULL) a pidfd that
 * the caller closes. Descriptors 0 to 2 that the plan does not list are /dev/null in the child.
 * Signal mask (but for what the plan blocks) and ignored signals are reset in the child. 0 or
 * -errno (of exec, too).
 */
int spawn(const struct spawn_plan *plan, pid_t *ret_pid, int *ret_pidfd);

/*
 * Puts the calling process, which has one thread only, into the groups of version 1. For who calls
 * clone3(2) itself, which puts it into the one of version 2. 0 or -errno.
 */
int spawn_enter_cgroups(const struct spawn_cgroups *groups);

/*
 * Waits for the child to end. *ret_status is as from waitpid(2). 0 or -errno.
 */
int spawn_wait(pid_t pid, int *ret_status);

#endif
