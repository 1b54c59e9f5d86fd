/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor writes into the pod directory, and others read there; names in
 * lib/wire/stage1.h.
 */
#ifndef STAGE1_POD_PODFILES_H
#define STAGE1_POD_PODFILES_H

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/pod_manifest.h"
#include "stage1/pod/cgroup_mounts.h"

/*
 * Files of the pod directory that only the entrypoints of a stage1 know; others: lib/wire/stage1.h.
 */
#define POD_FILE_SECRET        "secret"        /* 64 hex digits, 0600 */
#define POD_FILE_SCRATCH       "scratch"       /* what apps write */
#define POD_FILE_CONTROL       "control.sock"  /* where entrypoints ask the supervisor */
#define POD_FILE_CGROUP_PARENT "cgroup-parent" /* as from cgroup_parent_expand() */

/* Reads and parses the pod manifest. 0 or -errno with @e set. */
int podfiles_read_manifest(int pod_fd, struct pod_manifest *ret, struct err *e);

/* Notes our process ID. 0 or -errno with @e set. */
int podfiles_write_pid(int pod_fd, struct err *e);

/* Makes the pod's secret: written to the pod directory and to @ret. 0 or -errno with @e set. */
int podfiles_make_secret(int pod_fd, char ret[AGENT_SECRET_LEN + 1], struct err *e);

/*
 * Reads what podfiles_make_secret() wrote. 0 or -errno with @e set; -ENOENT: the pod has none yet.
 */
int podfiles_read_secret(int pod_fd, char ret[AGENT_SECRET_LEN + 1], struct err *e);

/*
 * Notes the @parent that the control group of the pod will have; nothing is written for none, which
 * is empty. 0 or -errno with @e set.
 */
int podfiles_write_cgroup_parent(int pod_fd, const char *parent, struct err *e);

/* Reads what that wrote; empty if it did not. 0 or -errno with @e set. */
int podfiles_read_cgroup_parent(int pod_fd, char ret[CGROUP_PATH_MAX], struct err *e);

/*
 * A file without a name that has the secret @secret, so that no command line shows it. The
 * descriptor or -errno.
 */
int podfiles_pass_secret(const char *secret);

/* Opens the rendered image of @app for reading only. The descriptor, or -errno with @e set. */
int podfiles_open_rootfs(int pod_fd, const char *app, struct err *e);

/* Notes that @app was added now. A failure is returned, but no reason to stop the pod. */
int podfiles_note_created(int pod_fd, const char *app);

/* Notes that @app is being stopped, until its end is noted. As above. */
int podfiles_note_stopping(int pod_fd, const char *app);

/*
 * Notes that @app was started now; how it ended before is forgotten, and there will be space for
 * how it ends next. As above.
 */
int podfiles_note_started(int pod_fd, const char *app);

/* Notes that all apps have been started. As above. */
int podfiles_note_ready(int pod_fd);

/* Notes that somebody has stopped the whole pod, or (@is false) lets it go on. As above. */
int podfiles_note_suspended(int pod_fd, bool is);

/*
 * Notes that a process of @app was killed because memory was short. Before podfiles_note_exited().
 * As above.
 */
int podfiles_note_oom(int pod_fd, const char *app);

/*
 * Notes that @signal (0: none) ended @app, and what there is to say about its end, for people;
 * nothing is written if there is neither. Before podfiles_note_exited(). As above.
 */
int podfiles_note_reason(int pod_fd, const char *app, int signal, const char *message);

/*
 * Records the status of @app durably, also on a full disk if its start was noted: its exit code, or
 * the signal that ended it. As above.
 */
int podfiles_note_exited(int pod_fd, const char *app, int status);

#endif
