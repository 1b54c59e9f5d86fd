/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"

/* What is opened without O_NONBLOCK would wait for another end, what is used with it would not. */
static int make_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_stream(const char *path, int flags, struct err *e)
{
	struct stat st = { .st_mode = 0 };
	cleanup_fd int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : make_blocking(fd);
	if (r == 0 && !S_ISFIFO(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		r = -EINVAL;
	return r < 0 ? err_sys(e, r, "stream \"%.255s\"", path) : TAKE_FD(fd);
}

/* A file ends by itself, and nobody writes into it meanwhile: the process reads it as it is. */
static int open_input(struct loop *loop, const char *path, bool terminal, struct stdio *s,
		      struct err *e)
{
	struct stat st;
	int fd = open_stream(path, terminal ? O_RDWR : O_RDONLY, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && !S_ISFIFO(st.st_mode)) {
		s->fds[0] = fd;
		return 0;
	}
	int r = input_begin(&s->input, loop, fd, &s->fds[0]);
	return r < 0 ? err_sys(e, r, "stream \"%.255s\"", path) : 0;
}

int stdio_open(struct loop *loop, const char *const paths[STDIO_COUNT], bool terminal,
	       struct stdio *ret, struct err *e)
{
	int r = 0;
	*ret = STDIO_NONE;
	for (int i = 0; r == 0 && i < STDIO_COUNT; i++) {
		if (!*paths[i])
			continue;
		if (strstr(paths[i], "://"))
			r = err_set(e, -EOPNOTSUPP, "streams to \"%.255s\" are not supported",
				    paths[i]);
		else if (i == 0)
			r = open_input(loop, paths[i], terminal, ret, e);
		else
			r = MIN(ret->fds[i] = open_stream(paths[i], O_RDWR, e), 0);
	}
	if (r < 0)
		stdio_close(ret);
	return r;
}

void stdio_hand_over(struct stdio *s)
{
	for (int i = 0; i < STDIO_COUNT; i++)
		s->fds[i] = fd_close(s->fds[i]);
}

void stdio_close(struct stdio *s)
{
	stdio_hand_over(s);
	input_deinit(&s->input);
}
