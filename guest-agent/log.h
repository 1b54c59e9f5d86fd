/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's few lines: to the kernel log once it is open, to standard error before. */
#ifndef GUEST_AGENT_LOG_H
#define GUEST_AGENT_LOG_H

#include "lib/base/macros.h"

#define LOG_LINE_MAX 512 /* longer lines are cut; the kernel takes about 1000 bytes */

/* Sends later lines to /dev/kmsg, if it can be opened. */
void log_open_kmsg(void);

/*
 * The descriptor of the log, for processes that close the others; negative if it is standard error.
 */
int log_fd(void);

/* One line, "husk-agent: TEXT", without a newline in @fmt. */
void log_info(const char *fmt, ...) PRINTF_FORMAT(1, 2);
void log_error(const char *fmt, ...) PRINTF_FORMAT(1, 2);

#endif
