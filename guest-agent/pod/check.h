/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder of lib/wire does not check of a request. Pure. */
#ifndef GUEST_AGENT_POD_CHECK_H
#define GUEST_AGENT_POD_CHECK_H

#include "guest-agent/fault.h"

/* Whether @name is a host name, or "". 0 or FAULT_SET. */
int check_hostname(const char *name, struct fault *f);

/* Whether @m says what to run, where and with which environment. 0 or FAULT_SET. */
int check_process(const struct agent_process *m, struct fault *f);

#endif
