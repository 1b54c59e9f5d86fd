/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody's standard streams joined with those of an app that was made for it (keep_streams of
 * app.add), for as long as both like.
 */
#ifndef STAGE1_ENTRY_ATTACH_H
#define STAGE1_ENTRY_ATTACH_H

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"
#include "lib/wire/detach_keys.h"
#include "stage1/agent/dial.h"

/* From the first dial to the agent's reply; generous, as the pod may be emulated. */
#define ATTACH_REPLY_MS INT64_C(60000)

struct attach_input {
	const struct agent_route *route;
	const char *secret; /* AGENT_SECRET_LEN hex digits */
	const char *app;
	bool streams[AGENT_STREAM_COUNT_]; /* which; tty only alone */
	bool keep_stdin;                   /* the end of our input is not the app's */
	struct detach_keys detach_keys;    /* for a terminal */
	int control_fd; /* of who knows its size (stage1/entry/controller.h), or -EBADF */
};

/* Return codes beside -errno: the keys for it were typed; output was lost, which was said then. */
enum {
	ATTACH_LEFT = 1,
	ATTACH_LOST,
};

/*
 * Returns when the streams have ended, by the app or by our own input if that is all, or on
 * SIGTERM, SIGINT, SIGHUP or SIGQUIT, or because the keys for it were typed. The app goes on in any
 * case, but the end of our input is the end of its standard input, unless that is kept. 0, a code
 * of above, or -errno and @e.
 */
int attach_run(const struct attach_input *in, struct err *e);

#endif
