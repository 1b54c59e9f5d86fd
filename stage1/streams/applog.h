/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one app in the pod directory: POD_DIR_LOGS/NAME and, once that is full, NAME.old
 * before it; or of its own, where the user gathers logs (lib/wire/pod_logs.h).
 *
 * All bytes come from the pod. The host stores at most APPLOG_FILE_MAX twice for an app, whatever
 * it writes; what a full disk does not take is dropped, so that the app goes on.
 */
#ifndef STAGE1_STREAMS_APPLOG_H
#define STAGE1_STREAMS_APPLOG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/crilog.h"
#include "lib/wire/pod_logs.h"

/* Of one file: some 40,000 lines of a hundred bytes. */
#define APPLOG_FILE_MAX ((uint64_t)4 * 1024 * 1024)

/* Records that one write(2) takes. */
#define APPLOG_BUFFER_MAX (4 * CRILOG_RECORD_MAX)

struct applog {
	int dir_fd, fd;
	char name[NAME_MAX + 1];
	uint64_t size; /* of the present file */
	uint64_t lost; /* records that could not be written */
	uint64_t fed;  /* bytes of records, written or lost */
	struct buf out;
	struct crilog streams[CRILOG_STREAM_COUNT_];
};

/* Nothing is open. */
void applog_init(struct applog *l);

/* Opens the log of @app in the pod directory @pod_fd; it goes on if it is there. 0 or -errno. */
int applog_open(struct applog *l, int pod_fd, const char *app);

/*
 * The same for the file at @place, below its directory whatever links are there; the records are
 * plain. -EINVAL for what is not a path to a file.
 */
int applog_open_at(struct applog *l, const struct pod_log_place *place);

/*
 * Opens it as above, at @place if that says one. A failure fails only if the log is @needed,
 * because the output goes nowhere else, or @place says one; if not, stderr says it and there is no
 * log. 0, or -errno and @e.
 */
int applog_begin(struct applog *l, int pod_fd, const char *app, const struct pod_log_place *place,
		 bool needed, struct err *e);

/* True between applog_open() and applog_deinit(). */
bool applog_is_open(const struct applog *l);

/* Takes what the app has just written. */
void applog_feed(struct applog *l, enum crilog_stream stream, const char *data, size_t len);

/* The stream has ended. */
void applog_end(struct applog *l, enum crilog_stream stream);

/* Closes it. Accepts one that was never opened. */
void applog_deinit(struct applog *l);

#endif
