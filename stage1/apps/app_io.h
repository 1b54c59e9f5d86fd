/* SPDX-License-Identifier: Apache-2.0 */
/* Where the output of one app goes, and its input comes from: streams of the agent, and a log. */
#ifndef STAGE1_APPS_APP_IO_H
#define STAGE1_APPS_APP_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/wire/stream_modes.h"
#include "stage1/apps/apps_config.h"
#include "stage1/streams/applog.h"
#include "stage1/streams/stream.h"

#define APP_IO_STREAMS ((size_t)3)

struct app_io {
	const struct apps_config *config; /* borrowed */
	const char *app;                  /* its name, borrowed */
	struct stream_modes modes;
	struct stream streams[APP_IO_STREAMS];
	size_t n;
	struct applog log;
};

/* Nothing is open. */
void app_io_init(struct app_io *io, const struct apps_config *config, const char *app);

/*
 * Begins the log of an app whose modes are known, if it has one: a terminal has none, as what
 * appears on it is not a list of lines. 0, or -errno and @e.
 */
int app_io_begin_log(struct app_io *io, const struct pod_log_place *place, struct err *e);

/* Ends it; what could not be logged is said. */
void app_io_end_log(struct app_io *io);

/*
 * Whether our standard input is the app's. Only a pod of one declared app has it, and a terminal
 * only if it is interactive: a pod in the background must not fight for the keyboard. /dev/null
 * needs no stream: the agent has one, too.
 */
bool app_io_wants_stdin(const struct app_io *io);

/*
 * Opens the streams that are ours; those that others will attach to, or nobody, are not. @end(@ctx)
 * is told of the end of each, and why one could not be opened, with NULL for the stream.
 */
void app_io_open(struct app_io *io, stream_end_fn end, void *ctx);

/* The agent has the app: the streams can be attached. */
void app_io_may_attach(struct app_io *io);

/* Closes the streams. */
void app_io_close(struct app_io *io);

/* Whether @is holds for any stream, and the sum of their progress. */
bool app_io_any(const struct app_io *io, bool (*is)(const struct stream *s));
uint64_t app_io_progress(const struct app_io *io);

#endif
