/* SPDX-License-Identifier: Apache-2.0 */
/* Times for people. Pure, but for the local time zone. */
#ifndef HOST_CLI_FORMAT_WHEN_H
#define HOST_CLI_FORMAT_WHEN_H

#include <stddef.h>
#include <stdint.h>

#define WHEN_TEXT_MAX 72 /* an exact time has 43 characters at most, and a zone of 23 */

/* "now", "5 seconds ago", "1 minute ago", "3 hours ago", ... ; "from now" for the future. */
void when_relative(int64_t then_ns, int64_t now_ns, char out[WHEN_TEXT_MAX]);

/*
 * "2006-01-02 15:04:05.999 -0700 MST": local time, milliseconds without trailing zeros.
 */
void when_absolute(int64_t then_ns, char out[WHEN_TEXT_MAX]);

/* The same with nanoseconds. */
void when_exact(int64_t then_ns, char out[WHEN_TEXT_MAX]);

/* "2006-01-02T15:04:05.999000000Z": RFC 3339 in UTC with nanoseconds, whatever the time zone. */
void when_rfc3339(int64_t then_ns, char out[WHEN_TEXT_MAX]);

#endif
