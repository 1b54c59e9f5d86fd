/* SPDX-License-Identifier: Apache-2.0 */
/* Why a request failed, in the form in which the host gets it: a code and one line of text. */
#ifndef GUEST_AGENT_FAULT_H
#define GUEST_AGENT_FAULT_H

#include "lib/base/err.h"
#include "lib/base/macros.h"
#include "lib/wire/agent.h"

/* The positive code of all functions here that fill a struct fault when they fail. */
enum {
	FAULT_SET = 1,
};

struct fault {
	int code; /* enum agent_error, 0 while nothing failed */
	char text[AGENT_TEXT_MAX + 1];
};

/*
 * Records a failure. Control characters become '?', so that names out of an image cannot forge
 * lines on the host's terminal; lib/wire sees to UTF-8. Returns FAULT_SET.
 */
int fault_set(struct fault *f, enum agent_error code, const char *fmt, ...) PRINTF_FORMAT(3, 4);

/* The same, followed by ": " and the text of @err, a positive or negative errno. */
int fault_sys(struct fault *f, enum agent_error code, int err, const char *fmt, ...)
	PRINTF_FORMAT(4, 5);

/* The same, of what a function of lib/ says: -EBUSY is the app's own state, all else is ours. */
int fault_err(struct fault *f, const struct err *e);

#endif
