/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* As in syslog(2). The guest's console shows warnings: the host dials when it sees ours. */
#define LOG_LEVEL_ERROR   3
#define LOG_LEVEL_WARNING 4

static int kmsg_fd = -EBADF;

void log_open_kmsg(void)
{
	kmsg_fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
}

int log_fd(void)
{
	return kmsg_fd;
}

/* @level as in syslog(2); the log line is advice, so a failed write has no consequence. */
__attribute__((format(printf, 2, 0))) static void log_line(int level, const char *fmt, va_list ap)
{
	char line[LOG_LINE_MAX];
	int head = kmsg_fd >= 0 ? snprintf(line, sizeof(line), "<%d>husk-agent: ", level)
				: snprintf(line, sizeof(line), "husk-agent: ");
	int n = vsnprintf(line + head, sizeof(line) - (size_t)head - 1, fmt, ap);
	if (n < 0)
		return;
	size_t len = MIN((size_t)(head + n), sizeof(line) - 2);
	line[len++] = '\n';
	ssize_t written = write(kmsg_fd >= 0 ? kmsg_fd : STDERR_FILENO, line, len);
	(void)written;
}

void log_info(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	log_line(LOG_LEVEL_WARNING, fmt, ap);
	va_end(ap);
}

void log_error(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	log_line(LOG_LEVEL_ERROR, fmt, ap);
	va_end(ap);
}
