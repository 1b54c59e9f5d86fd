/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container uses, as containerd's clients read it: the message of control groups of version
 * 1 or 2 (shim/proto/metrics.proto). Pure.
 */
#ifndef SHIM_TASK_METRICS_H
#define SHIM_TASK_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/agent.h"

/*
 * The *ret_len bytes of the message that says @counts, the caller's to free; NULL if there is no
 * memory. *ret_type is the message's name. What is not counted is 0, and a limit that there is none
 * of what the kernel has for that.
 */
uint8_t *metrics_pack(const struct agent_app_stats *counts, bool v2, size_t *ret_len,
		      const char **ret_type);

#endif
