/* SPDX-License-Identifier: Apache-2.0 */
/* What all sessions, and the methods that they call, share. */
#ifndef GUEST_AGENT_SERVE_SESSION_ENV_H
#define GUEST_AGENT_SERVE_SESSION_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/pod/pod.h"

struct session_env {
	struct pod *pod;
	char secret[AGENT_SECRET_LEN + 1];
	int64_t init_ns;    /* CLOCK_BOOTTIME when the agent began */
	bool is_machine;    /* what the kernel counts is the pod's */
	unsigned n_control; /* sessions in SESSION_CONTROL */
};

#endif
