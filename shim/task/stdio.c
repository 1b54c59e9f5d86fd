/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/path.h"

/* What is opened without O_NONBLOCK would wait for another end, what is used with it would not. */
static int make_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

static int open_stream(const char *path, int flags, struct err *e)
{
	struct stat st = { .st_mode = 0 };
	cleanup_fd int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0640);
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : make_blocking(fd);
	if (r == 0 && !S_ISFIFO(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		r = -EINVAL;
	return r < 0 ? err_sys(e, r, "stream \"%.255s\"", path) : TAKE_FD(fd);
}

/* A file ends by itself, and nobody writes into it meanwhile: the process reads it as it is. */
static int open_input(struct loop *loop, const char *path, struct stdio *s, struct err *e)
{
	struct stat st;
	int fd = open_stream(path, O_RDONLY, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) == 0 && !S_ISFIFO(st.st_mode)) {
		s->fds[0] = fd;
		return 0;
	}
	int r = input_begin(&s->input, loop, fd, &s->fds[0]);
	return r < 0 ? err_sys(e, r, "stream \"%.255s\"", path) : 0;
}

/* A log, whose directory is made as it is missing. */
static int open_file(const char *path, struct err *e)
{
	char dir[PATH_MAX];
	str_copy(dir, sizeof(dir), path);
	*strrchr(dir, '/') = '\0';
	cleanup_fd int dir_fd = path_make_dirs(*dir ? dir : "/", 0755);
	return dir_fd < 0 ? err_sys(e, dir_fd, "log \"%.255s\"", path)
			  : open_stream(path, O_WRONLY | O_CREAT | O_APPEND, e);
}

/* Both outputs are of one program, which the one of the other names, too. */
static int open_logger(const struct stdio_request *q, const struct log_uri *u, struct stdio *ret,
		       struct err *e)
{
	int err = -EBADF;
	int r = logger_start(q->loop, u, &q->source, &ret->fds[1], &err, e);
	if (r == 0 && *q->paths[2])
		ret->fds[2] = err;
	else
		fd_close(err);
	return r;
}

static int open_output(const struct stdio_request *q, int i, struct stdio *ret, struct err *e)
{
	CLEANUP(log_uri_deinit) struct log_uri u;
	int r = log_uri_parse(q->paths[i], &u, e);
	if (r < 0)
		return r;
	if (u.kind == LOG_BINARY && i == 1)
		return open_logger(q, &u, ret, e);
	if (u.kind == LOG_BINARY)
		return strcmp(q->paths[i], q->paths[1]) == 0
			       ? 0
			       : err_set(e, -EOPNOTSUPP,
					 "a logger for standard error alone is not supported");
	ret->fds[i] = u.kind == LOG_FILE ? open_file(u.path, e) : open_stream(u.path, O_RDWR, e);
	return MIN(ret->fds[i], 0);
}

int stdio_open(const struct stdio_request *q, struct stdio *ret, struct err *e)
{
	int r = 0;
	*ret = STDIO_NONE;
	if (*q->paths[0])
		r = open_input(q->loop, q->paths[0], ret, e);
	for (int i = 1; r == 0 && i < STDIO_COUNT; i++)
		if (*q->paths[i])
			r = open_output(q, i, ret, e);
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
