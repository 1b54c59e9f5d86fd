/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/fd.h"
#include "lib/wire/stage1.h"

#define CONSOLE_OLD POD_FILE_CONSOLE ".old"

static int open_log(int dir_fd)
{
	int fd = openat(dir_fd, POD_FILE_CONSOLE,
			O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int console_init(struct console *c, int dir_fd)
{
	*c = (struct console){ .dir_fd = dir_fd, .log_fd = -EBADF };
	int fd = open_log(dir_fd);
	if (fd < 0)
		return fd;
	c->log_fd = fd;
	return 0;
}

static void console_rotate(struct console *c)
{
	c->log_fd = fd_close(c->log_fd);
	if (renameat(c->dir_fd, POD_FILE_CONSOLE, c->dir_fd, CONSOLE_OLD) == 0)
		c->log_fd = open_log(c->dir_fd);
	c->logged = 0;
}

static void log_bytes(struct console *c, const char *data, size_t len)
{
	while (len > 0 && c->log_fd >= 0) {
		size_t n = MIN(len, CONSOLE_LOG_MAX - c->logged);
		if (fd_write_all(c->log_fd, data, n) < 0) {
			c->log_fd = fd_close(c->log_fd);
			return;
		}
		data += n;
		len -= n;
		c->logged += n;
		if (c->logged == CONSOLE_LOG_MAX)
			console_rotate(c);
	}
}

static void console_flush(struct console *c)
{
	log_bytes(c, c->pending, c->n_pending);
	c->n_pending = 0;
}

void console_deinit(struct console *c)
{
	if (c->n_pending > 0)
		console_flush(c);
	c->log_fd = fd_close(c->log_fd);
}

static void end_line(struct console *c)
{
	c->line[c->len] = '\0';
	c->n_lines++;
	if (!c->panic[0] && strstr(c->line, "Kernel panic"))
		memcpy(c->panic, c->line, c->len + 1);
	if (c->len > 0)
		memcpy(c->last, c->line, c->len + 1);
	c->len = 0;
}

void console_feed(struct console *c, const char *data, size_t len)
{
	bool has_line = memchr(data, '\n', len) != NULL;
	for (size_t i = 0; i < len; i++) {
		c->pending[c->n_pending++] = data[i];
		if (c->n_pending == CONSOLE_PENDING_MAX)
			console_flush(c);
		if (data[i] == '\n')
			end_line(c);
		else if (data[i] >= 0x20 && data[i] < 0x7f && c->len < CONSOLE_LINE_MAX)
			c->line[c->len++] = data[i];
	}
	if (has_line)
		console_flush(c);
}
