/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entrypoints app/add, app/start, app/stop and app/rm ask the supervisor of a mutable pod
 * for, and app/update, app/signal, app/pause and app/resume that of any.
 *
 * Each connects to the unix socket POD_FILE_CONTROL in the pod directory, whose permissions are the
 * only authentication, sends one request (a frame of lib/wire with a JSON-RPC 2.0 request), and
 * reads one reply. A stage1 speaks to itself here: both ends are of one version, unless husk was
 * upgraded meanwhile; then an unknown method is refused.
 */
#ifndef STAGE1_APPS_APP_REQUEST_H
#define STAGE1_APPS_APP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/wire/agent.h"

/* Largest frame on that socket; a request names an app, a reply has a line of text. */
#define APP_REQUEST_FRAME_MAX ((size_t)4096)

/* Beyond the time that the request itself allows, from connecting to the reply. */
#define APP_REQUEST_LIMIT_MS INT64_C(120000)

/* Up to RM of a mutable pod only. */
enum app_verb {
	APP_VERB_ADD,
	APP_VERB_START,
	APP_VERB_STOP,
	APP_VERB_RM,
	APP_VERB_UPDATE,
	APP_VERB_SIGNAL,
	APP_VERB_PAUSE,
	APP_VERB_RESUME,
	APP_VERB_COUNT_,
};

struct app_request {
	enum app_verb verb;
	char app[AGENT_NAME_MAX + 1];
	int64_t grace_ms; /* of STOP and RM: from SIGTERM to SIGKILL, up to AGENT_GRACE_MS_MAX */
	int64_t signal;   /* of SIGNAL: 1 to AGENT_SIGNAL_MAX; else 0 */
	bool all;         /* of SIGNAL: for each process of the app */
};

/* Error codes of a reply. */
enum {
	APP_REQUEST_E_FAILED = -32000,
	APP_REQUEST_E_REQUEST = -32600,     /* not understood */
	APP_REQUEST_E_NOT_RUNNING = -32010, /* of an app that does not run: STOP, SIGNAL, ... */
};

/* "app/add" and so on. */
const char *app_verb_name(enum app_verb verb);

/* Appends the request to @out. 0 or -errno. */
int app_request_encode(const struct app_request *q, struct buf *out);

/*
 * Decodes the first frame in @in, which is then consumed. 0, FRAME_INCOMPLETE, -EBADMSG for what is
 * no request, -ENOMEM.
 */
int app_request_decode(struct buf *in, struct app_request *ret);

/*
 * Appends a reply: success if @why is NULL. -ESRCH in it becomes APP_REQUEST_E_NOT_RUNNING. 0 or
 * -errno.
 */
int app_request_encode_reply(const struct err *why, struct buf *out);

/*
 * Sends @q to the supervisor of the pod in the working directory and waits for its reply. 0;
 * -ESRCH: an app that is to be stopped, signalled or paused does not run; -errno; @e says what and
 * why.
 */
int app_request_call(const struct app_request *q, struct err *e);

#endif
