/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of a pod say about it: times, supervisor, apps and their fate.
 *
 * Everything is read bounded and believed only within limits: pods of other users, half-written
 * and damaged ones must be listed, too.
 */
#ifndef HOST_POD_INFO_H
#define HOST_POD_INFO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/launch/stage1.h"
#include "host/pod/name.h"
#include "host/pod/pod.h"
#include "lib/wire/agent.h"
#include "lib/wire/net_info.h"
#include "lib/wire/pod_manifest.h"

enum app_state {
	APP_STATE_UNKNOWN,   /* no status file is there: the pod has not come so far */
	APP_STATE_PREPARING, /* of a mutable pod: being added, or left so by somebody who died */
	APP_STATE_CREATED,   /* its root is mounted; it may be started */
	APP_STATE_RUNNING,   /* it may end at any time */
	APP_STATE_STOPPING,  /* it was asked to end */
	APP_STATE_EXITED, /* by itself or with its pod; an exit code is final until it is started again */
	APP_STATE_DELETING, /* being removed, or left so by somebody who died */
	APP_STATE_COUNT_,
};

/* Why an app ended, as far as the file status/NAME-reason says. */
struct app_reason {
	int signal;                       /* that ended it, 0: none */
	char message[AGENT_TEXT_MAX + 1]; /* printable ASCII; "": nothing to say */
};

struct app_info {
	char name[AGENT_NAME_MAX + 1];
	char image_name[POD_IMAGE_NAME_MAX + 1];
	char image_id[POD_IMAGE_ID_MAX + 1];
	enum app_state state;
	int64_t created_ns; /* CLOCK_REALTIME, 0 if unknown; so the next two */
	int64_t started_ns;
	int64_t finished_ns;
	bool has_exit_code;
	int exit_code; /* 0 to 255; 1 if the status file is damaged */
	struct pod_tags tags;
	struct volume_mounts mounts;
	bool oom; /* a process of it was killed because memory was short */
	struct app_reason why;
	bool has_log;
};

struct pod_info {
	struct uuid uuid;
	char name[POD_NAME_MAX + 1];      /* "": it has none */
	char flavor[STAGE1_NAME_MAX + 1]; /* what it is made of; "": its stage1 does not say */
	enum pod_state state;
	int64_t created_ns; /* CLOCK_REALTIME, 0 if unknown */
	int64_t started_ns; /* 0 if it never started */
	pid_t pid;          /* of the supervisor, 0 if unknown */
	bool is_mutable;
	bool suspended; /* it runs, but somebody has stopped it for a while */
	bool disk_full; /* it runs, and the host has no room for what its apps write */
	enum pod_phase phase;
	bool has_console, has_supervisor_log;
	struct net_info_list *networks; /* owned; NULL: none, or none any more */
	struct pod_tags tags;
	struct app_info *apps;
	size_t n_apps;
	struct err problem; /* .code != 0: the manifest could not be read, so there are no apps */
};

#define POD_INFO_INIT ((struct pod_info){ 0 })

/* Accepts POD_INFO_INIT. */
void pod_info_deinit(struct pod_info *info);

#define cleanup_pod_info CLEANUP(pod_info_deinit)

/*
 * Reads what there is of the pod @p of @ps (NULL: of a directory that stays where it is). 0;
 * POD_GONE if it moved on so that it could not be read; -ENOMEM. Other unreadable parts only set
 * ret->problem.
 */
int pod_info_read(struct pods *ps, const struct pod *p, struct pod_info *ret);

/* The app @name, or NULL. It lives as long as @info. */
const struct app_info *pod_info_find(const struct pod_info *info, const char *name);

/*
 * The manifest of @p in @ret, which is initialised; one of ours that others may read, too, is
 * closed to them. 0, or -errno and @e.
 */
int pod_read_manifest(const struct pod *p, struct pod_manifest *ret, struct err *e);

/*
 * Calls @fn with the ID of the image of each app, for who may not read the manifest: whoever else
 * can see the pod. What it returns that is not 0 ends it. 0 or -errno; -ENOENT if the pod does not
 * say.
 */
int pod_each_image(const struct pod *p, int (*fn)(void *ctx, const char *image_id), void *ctx);

/* The mtime of @name below @dirfd in nanoseconds; 0 if it is not there or @dirfd is not open. */
int64_t pod_file_time(int dirfd, const char *name);

/*
 * The number in the file @name below @dirfd. 0; -ENOENT; -EBADMSG if there is something else than a
 * decimal number of at most @max.
 */
int pod_file_number(int dirfd, const char *name, uint64_t max, uint64_t *ret);

/* How an app ended. */
enum app_end {
	APP_END_NONE,         /* it has not */
	APP_END_COMPLETED,    /* exit code 0 */
	APP_END_FAILED,       /* another one */
	APP_END_SIGNALED,     /* by a signal */
	APP_END_OOM_KILLED,   /* because memory was short */
	APP_END_NOT_EXECUTED, /* its program could not be executed, so it never ran */
	APP_END_COUNT_,
};

/* How an app ended that has @exit_code; @oom if the kernel killed it because memory was short. */
enum app_end app_end_from(int exit_code, bool oom, const struct app_reason *why);

/* What the files of @app say. */
enum app_end app_end_of(const struct app_info *app);

/* Reads the reason of @app below @status_fd, which may be -1; what is damaged says nothing. */
void app_reason_read(int status_fd, const char *app, struct app_reason *ret);

/* "completed", "failed", "signaled", "oom-killed", "not-executed"; NULL for APP_END_NONE. */
const char *app_end_name(enum app_end end);

/* "unknown", "preparing", "created", "running", "stopping", "exited", "deleting". */
const char *app_state_name(enum app_state state);

/* True if a pod in @state has ended after it ran, so that exit codes are final. */
bool pod_state_is_after_run(enum pod_state state);

#endif
