/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the entrypoints app/add, app/start, app/stop and app/rm ask the supervisor of a mutable pod for.
 *
 * Each connects to the unix socket POD_FILE_CONTROL in the pod directory, whose permissions are the
 * only authentication, sends one request (a frame of lib/wire with a JSON-RPC 2.0 request), and reads
 * one reply. stage1-kvm speaks to itself here: both ends are of one version, unless husk was upgraded
 * meanwhile; then an unknown method is refused.
 */
#ifndef STAGE1_KVM_RUN_CROSSING_H
#define STAGE1_KVM_RUN_CROSSING_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/wire/agent.h"

/* Largest frame on that socket; a request names an app, a reply has a line of text. */
#define CROSSING_FRAME_MAX ((size_t)4096)

/* Beyond the time that the request itself allows, from connecting to the reply. */
#define CROSSING_LIMIT_MS INT64_C(120000)

enum crossing_verb {
	CROSSING_ADD,
	CROSSING_START,
	CROSSING_STOP,
	CROSSING_RM,
	CROSSING_COUNT_,
};

struct crossing_request {
	enum crossing_verb verb;
	char app[AGENT_NAME_MAX + 1];
	int64_t grace_ms; /* of STOP and RM: from SIGTERM to SIGKILL, up to AGENT_GRACE_MS_MAX */
};

/* Error codes of a reply. */
enum {
	CROSSING_E_FAILED = -32000,
	CROSSING_E_REQUEST = -32600,     /* not understood */
	CROSSING_E_NOT_RUNNING = -32010, /* STOP of an app that does not run */
};

/* "app/add" and so on. */
const char *crossing_verb_name(enum crossing_verb verb);

/* Appends the request to @out. 0 or -errno. */
int crossing_encode(const struct crossing_request *q, struct buf *out);

/*
 * Decodes the first frame in @in, which is then consumed. 0, FRAME_INCOMPLETE, -EBADMSG for what is no
 * request, -ENOMEM.
 */
int crossing_decode(struct buf *in, struct crossing_request *ret);

/* Appends a reply: success if @why is NULL. -ESRCH in it becomes CROSSING_E_NOT_RUNNING. 0 or -errno. */
int crossing_encode_reply(const struct err *why, struct buf *out);

/*
 * Sends @q to the supervisor of the pod in the working directory and waits for its reply. 0; -ESRCH:
 * an app that is to be stopped does not run; -errno; @e says what and why.
 */
int crossing_call(const struct crossing_request *q, struct err *e);

#endif
