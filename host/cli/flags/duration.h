/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations on the command line, in the form of Go's time.ParseDuration: "30m", "1h15m30.5s", "0".
 */
#ifndef HOST_CLI_FLAGS_DURATION_H
#define HOST_CLI_FLAGS_DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/cli/flags/flags.h"

#define DURATION_TEXT_MAX 32 /* "2562047h47m16.854775807s" is the longest */

/*
 * Parses [-]NUMBER[.FRACTION]UNIT..., units ns, us, ms, s, m, h, or a bare "0", to nanoseconds. 0,
 * -EINVAL, -ERANGE.
 */
int duration_parse(const char *text, int64_t *ret_ns);

/* Formats @ns, not negative, as Go does: "30m0s", "1h0m0s", "1.5s", "20ms", "0s". */
void duration_format(int64_t ns, char out[DURATION_TEXT_MAX]);

/*
 * For setters of flags: an int64_t at the offset, not negative. @examples: what the message has
 * behind "is not a duration". 0, or -EINVAL, -ERANGE and @e.
 */
int duration_set(void *opts, const struct flag *f, const char *value, const char *examples,
		 struct err *e);

#endif
