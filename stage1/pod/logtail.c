/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/logtail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"

/* Reads once. False when nothing more is there now. */
static bool read_some(struct logtail *t)
{
	char chunk[512];
	ssize_t n = read(t->fd, chunk, sizeof(chunk));
	if (n < 0)
		return errno == EINTR;
	if (n == 0) {
		loop_watch_remove(&t->watch);
		return false;
	}
	size_t keep = MIN((size_t)n, LOGTAIL_MAX - t->len);
	memcpy(t->text + t->len, chunk, keep);
	t->len += keep;
	return true;
}

static void on_readable(void *ctx, uint32_t events)
{
	(void)events;
	read_some(ctx);
}

int logtail_open(struct logtail *t, struct loop *loop, int *ret_write_fd)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	cleanup_fd int out = ends[1];
	*t = (struct logtail){ .fd = ends[0], .loop = loop };
	int r = fd_set_nonblock(t->fd, true);
	if (r == 0)
		r = loop_watch_add(loop, &t->watch, t->fd, EPOLLIN, on_readable, t);
	if (r < 0) {
		logtail_close(t);
		return r;
	}
	*ret_write_fd = TAKE_FD(out);
	return 0;
}

const char *logtail_first_line(struct logtail *t)
{
	while (t->loop && t->watch.loop && t->len < LOGTAIL_MAX && read_some(t))
		;
	t->text[strcspn(t->text, "\r\n")] = '\0';
	return t->text;
}

void logtail_close(struct logtail *t)
{
	if (!t->loop)
		return;
	loop_watch_remove(&t->watch);
	t->fd = fd_close(t->fd);
	t->loop = NULL;
}
