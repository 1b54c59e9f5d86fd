/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of an app is two files at most: NAME.old, full, and NAME. The writer renames one into the
 * other whenever it likes, so both are opened again until none was renamed in between: then nothing
 * is missing between them. Who follows finishes the file that it has open, which is an old one now;
 * if that is not the present NAME.old, that one came after it, and is read before the new one. So
 * nothing is lost unless the writer fills more than two files between two looks; then what is lost
 * is whole files.
 */
#include "host/pod/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/wire/agent.h"
#include "lib/wire/stage1.h"

/*
 * A writer that renames while two files are opened, that often, is not waited for: the old file is
 * lost.
 */
#define OPEN_TRIES 8

#define NAME_SIZE (sizeof(POD_DIR_LOGS "/" POD_LOG_OLD_SUFFIX) + AGENT_NAME_MAX)

struct reader {
	const struct logs_request *q;
	logs_fn fn; /* NULL: only count */
	void *ctx;
	int64_t count; /* lines of the app seen that are new enough */
	int64_t skip;  /* so many of them are not given away */
	/* A long line is several records, and those of the other stream may stand in between. */
	struct {
		bool goes_on; /* the next record belongs to the same line */
		bool skipped;
	} streams[CRILOG_STREAM_COUNT_];
	struct buf line; /* of the file: a record */
};

/* Opens a file of the log. The descriptor, -errno. */
static int open_part(const struct pod *p, const char *app, const char *suffix)
{
	char name[NAME_SIZE];
	struct stat st;
	snprintf(name, sizeof(name), POD_DIR_LOGS "/%s%s", app, suffix);
	cleanup_fd int fd = path_open_beneath(p->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

static int take_line(struct reader *r, const char *line, size_t len)
{
	struct crilog_record record;
	if (crilog_parse(line, len, &record) < 0 || record.time_ns < r->q->since_ns)
		return 0;
	if (!r->streams[record.stream].goes_on) {
		r->count++;
		r->streams[record.stream].skipped = r->count <= r->skip;
	}
	r->streams[record.stream].goes_on = record.partial;
	if (!r->fn || r->streams[record.stream].skipped)
		return 0;
	return r->fn(r->ctx, &record);
}

/* Takes all lines that are complete. One that is too long for a record is none. */
static int take_lines(struct reader *r)
{
	const char *newline;
	while ((newline = memchr(buf_data(&r->line), '\n', buf_len(&r->line)))) {
		size_t len = (size_t)(newline - buf_data(&r->line));
		int err = take_line(r, buf_data(&r->line), len);
		buf_consume(&r->line, len + 1);
		if (err < 0)
			return err;
	}
	if (buf_room(&r->line) == 0)
		buf_consume(&r->line, buf_len(&r->line));
	return 0;
}

/* Reads the file to its present end. 0 or -errno. */
static int read_on(struct reader *r, int fd)
{
	for (;;) {
		char *where;
		int err = buf_reserve(&r->line, buf_room(&r->line), &where);
		if (err < 0)
			return err;
		ssize_t n = read(fd, where, buf_room(&r->line));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		buf_commit(&r->line, (size_t)n);
		err = take_lines(r);
		if (err < 0)
			return err;
	}
}

static bool same_file(int a, int b)
{
	struct stat x, y;
	return a >= 0 && b >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/*
 * Opens both files, as they were at one time, or only one, which cannot be newer than the other
 * then. Each is a descriptor or -errno.
 */
static void open_parts(const struct pod *p, const char *app, int *ret_old, int *ret_now)
{
	cleanup_fd int old = -EBADF, now = -EBADF;
	bool at_one_time = false;
	for (int i = 0; i < OPEN_TRIES && !at_one_time; i++) {
		fd_replace(&now, open_part(p, app, ""));
		fd_replace(&old, open_part(p, app, POD_LOG_OLD_SUFFIX));
		cleanup_fd int again = open_part(p, app, "");
		at_one_time = same_file(now, again) || (now < 0 && now == again);
	}
	if (!at_one_time && now >= 0)
		fd_replace(&old, -EBADF);
	*ret_old = TAKE_FD(old);
	*ret_now = TAKE_FD(now);
}

/* Reads what is there; *ret_fd is then the newest file, at its end. 0 or -errno. */
static int read_all(struct reader *r, const struct pod *p, int *ret_fd)
{
	cleanup_fd int old = -EBADF, now = -EBADF;
	open_parts(p, r->q->app, &old, &now);
	if (now < 0 && (now != -ENOENT || old < 0))
		return now;
	int err = old >= 0 && !same_file(old, now) ? read_on(r, old) : 0;
	if (err == 0 && now >= 0)
		err = read_on(r, now);
	*ret_fd = now >= 0 ? TAKE_FD(now) : TAKE_FD(old);
	return err;
}

static bool is_over(const struct pod *p)
{
	return p->phase != POD_RUN || !p->locked;
}

/* Looks at the pod again. POD_GONE if it was removed. */
static int look_again(struct pods *ps, struct pod *p, struct err *e)
{
	struct uuid uuid = p->uuid;
	nanosleep(&(struct timespec){ .tv_nsec = LOGS_POLL_MS * NS_PER_MS }, NULL);
	pod_deinit(p);
	int r = pod_open(ps, uuid.text, p, e);
	p->uuid = uuid;
	return r;
}

/* Reads what came since the file *@now, if there is one, was read to its end. 0 or -errno. */
static int read_news(struct reader *r, const struct pod *p, int *now)
{
	cleanup_fd int old = -EBADF, next = -EBADF;
	open_parts(p, r->q->app, &old, &next);
	int err = *now >= 0 ? read_on(r, *now) : 0;
	if (err < 0 || next < 0 || same_file(*now, next))
		return err;
	if (old >= 0 && !same_file(*now, old))
		err = read_on(r, old);
	fd_replace(now, TAKE_FD(next));
	return err < 0 ? err : read_on(r, *now);
}

static int logs_follow(struct reader *r, struct pods *ps, struct pod *p, int fd, struct err *e)
{
	cleanup_fd int now = fd;
	for (bool over = is_over(p); !over;) {
		int err = look_again(ps, p, e);
		if (err < 0)
			return err;
		over = err > 0 || is_over(p); /* asked before the last reading */
		if (err == 0)
			err = read_news(r, p, &now);
		else if (now >= 0) /* the pod was removed, but not what we have open */
			err = read_on(r, now);
		if (err < 0)
			return err;
	}
	return 0;
}

static int count_lines(const struct pod *p, const struct logs_request *q, int64_t *ret)
{
	struct reader r = { .q = q };
	int fd = -EBADF;
	buf_init(&r.line, CRILOG_RECORD_MAX);
	int err = read_all(&r, p, &fd);
	fd_close(fd);
	buf_deinit(&r.line);
	*ret = r.count;
	return err;
}

int pod_logs(struct pods *ps, struct pod *p, const struct logs_request *q, logs_fn fn, void *ctx,
	     struct err *e)
{
	struct reader r = { .q = q, .fn = fn, .ctx = ctx };
	int64_t n = 0;
	int fd = -EBADF;
	int err = q->tail >= 0 ? count_lines(p, q, &n) : 0;
	if (err < 0)
		return err;
	r.skip = q->tail >= 0 && n > q->tail ? n - q->tail : 0;
	buf_init(&r.line, CRILOG_RECORD_MAX);
	err = read_all(&r, p, &fd);
	if (err == 0 && q->follow)
		err = logs_follow(&r, ps, p, fd, e);
	else
		fd_close(fd);
	buf_deinit(&r.line);
	return err;
}
