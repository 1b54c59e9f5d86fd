/* SPDX-License-Identifier: Apache-2.0 */
/* stage0's own checks of `husk doctor`. */
#ifndef HOST_CLI_CHECKS_H
#define HOST_CLI_CHECKS_H

#include "host/cli/format/doctor.h"

struct cli;

/*
 * Adds the checks of the data directory (it is made if missing; writable, hard links, flock) and of
 * the optional tools. *ret_ok is false if a pod could not be made. 0 or -errno.
 */
int checks_add(const struct cli *c, struct doctor *d, bool *ret_ok);

#endif
