/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "shim/job/job.h"

/* Where the program finds them. */
enum {
	FD_OUT = 3,
	FD_ERR,
	FD_READY,
	FD_END_,
};

struct start {
	const struct log_uri *uri;
	const struct logger_source *source;
	int fds[FD_END_ - FD_OUT];
};

/* First out of the way: one may be where another has to be. */
static int place_fds(const struct start *s)
{
	int away[FD_END_ - FD_OUT];
	for (size_t i = 0; i < ARRAY_SIZE(away); i++) {
		away[i] = fcntl(s->fds[i], F_DUPFD_CLOEXEC, FD_END_);
		if (away[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(away); i++)
		if (dup2(away[i], FD_OUT + (int)i) < 0)
			return -errno;
	return 0;
}

static int job_logger(void *ctx, char text[JOB_TEXT_MAX + 1], struct err *e)
{
	const struct start *s = ctx;
	const char *path = s->uri->path;
	cleanup_strv struct strv args;
	(void)text;
	strv_init(&args, LOG_URI_WORDS_MAX + 1);
	int r = strv_add(&args, path);
	if (r == 0)
		r = strv_extend(&args, &s->uri->words);
	if (r == 0 && (setenv("CONTAINER_ID", s->source->id, 1) < 0 ||
		       setenv("CONTAINER_NAMESPACE", s->source->ns, 1) < 0))
		r = -errno;
	if (r == 0)
		r = place_fds(s);
	if (r == 0 && execv(path, args.v) < 0)
		r = -errno;
	return err_sys(e, r, "logger \"%.255s\"", path);
}

static void on_end(void *ctx, const struct job_end *end)
{
	(void)ctx;
	if (end->result < 0)
		fprintf(stderr, "husk: %s\n", end->e->text);
}

/* What pipes there are, both ends: [0] is for the program to read, and of the last one to write. */
struct pipes {
	int ends[FD_END_ - FD_OUT][2];
};

static void close_pipes(const struct pipes *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->ends); i++) {
		fd_close(p->ends[i][0]);
		fd_close(p->ends[i][1]);
	}
}

static int open_pipes(struct pipes *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->ends); i++)
		if (pipe2(p->ends[i], O_CLOEXEC) < 0)
			return -errno;
	return 0;
}

int logger_start(struct loop *loop, const struct log_uri *u, const struct logger_source *source,
		 int *ret_out, int *ret_err, struct err *e)
{
	CLEANUP(close_pipes)
	struct pipes p = { { { -EBADF, -EBADF }, { -EBADF, -EBADF }, { -EBADF, -EBADF } } };
	struct stat st;
	int r = stat(u->path, &st) < 0 || access(u->path, X_OK) < 0 ? -errno : open_pipes(&p);
	if (r == 0 && !S_ISREG(st.st_mode))
		r = -EACCES;
	struct start s = { .uri = u,
			   .source = source,
			   .fds = { p.ends[0][0], p.ends[1][0], p.ends[2][1] } };
	if (r == 0)
		r = job_start(loop, job_logger, &s, JOB_EXECUTES, on_end, NULL, NULL);
	if (r < 0)
		return err_sys(e, r, "logger \"%.255s\"", u->path);
	*ret_out = TAKE_FD(p.ends[0][1]);
	*ret_err = TAKE_FD(p.ends[1][1]);
	return 0;
}
