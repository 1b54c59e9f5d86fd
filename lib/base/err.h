/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error law of husk.
 *
 * A function that can fail returns int: 0 is success, a negative errno value is a failure that the
 * caller forwards and never matches on, and a positive value is one of that module's own X_E_*
 * codes, listed in its header and handled by the direct caller.
 *
 * A failure that a person has to read about also fills a struct err, at the one place that knows
 * the object, the cause and the remedy. Libraries never print; the program that gives up prints the
 * text once.
 */
#ifndef LIB_BASE_ERR_H
#define LIB_BASE_ERR_H

#include "lib/base/macros.h"

/* Room for one line with a path or two; longer text is cut, never overflowed. */
#define ERR_TEXT_MAX 1024

struct err {
	int code;                /* negative errno, 0 while nothing failed */
	char text[ERR_TEXT_MAX]; /* one line, no newline, NUL-terminated */
};

#define ERR_INIT ((struct err){ 0 })

/*
 * Records a failure. @code is a negative errno value. Control characters that come in with the
 * arguments are replaced by '?', so a hostile name cannot forge lines or terminal sequences.
 * @e may be NULL. Returns @code, so that it can be the operand of a return statement.
 */
int err_set(struct err *e, int code, const char *fmt, ...) PRINTF_FORMAT(3, 4);

/*
 * Like err_set(), but appends ": " and the text of errno @code to the message.
 */
int err_sys(struct err *e, int code, const char *fmt, ...) PRINTF_FORMAT(3, 4);

/*
 * Puts "CONTEXT: " in front of the message that @e holds. Returns the code that @e holds,
 * -EINVAL if @e is NULL.
 */
int err_context(struct err *e, const char *fmt, ...) PRINTF_FORMAT(2, 3);

/*
 * If the message ends with the text of its errno, that begins in lower case then, as the errors of
 * rkt do, where its scripts look for it. Returns the code that @e holds.
 */
int err_lower_reason(struct err *e);

#endif
