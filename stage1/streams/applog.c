/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/applog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/wire/stage1.h"

#define DIR_MODE  0750
#define FILE_MODE 0600 /* apps print secrets, too */

void applog_init(struct applog *l)
{
	*l = (struct applog){ .dir_fd = -EBADF, .fd = -EBADF };
	buf_init(&l->out, APPLOG_BUFFER_MAX);
	for (int i = 0; i < CRILOG_STREAM_COUNT_; i++)
		crilog_init(&l->streams[i], (enum crilog_stream)i);
}

void applog_deinit(struct applog *l)
{
	for (int i = 0; i < CRILOG_STREAM_COUNT_; i++)
		crilog_deinit(&l->streams[i]);
	buf_deinit(&l->out);
	l->fd = fd_close(l->fd);
	l->dir_fd = fd_close(l->dir_fd);
}

static int open_file(struct applog *l)
{
	struct stat st;
	l->fd = openat(l->dir_fd, l->name,
		       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		       FILE_MODE);
	if (l->fd < 0 || fstat(l->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		l->fd = fd_close(l->fd);
		return -EINVAL;
	}
	l->size = (uint64_t)st.st_size;
	return 0;
}

int applog_open(struct applog *l, int pod_fd, const char *app)
{
	if (mkdirat(pod_fd, POD_DIR_LOGS, DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	l->dir_fd = path_open_beneath(pod_fd, POD_DIR_LOGS, O_RDONLY | O_DIRECTORY, 0);
	if (l->dir_fd < 0)
		return l->dir_fd;
	int r = str_copy(l->name, sizeof(l->name), app);
	return r < 0 ? r : open_file(l);
}

/* Opens the directory that the file of @place is in, and says its name. Or -errno. */
static int open_place(const struct pod_log_place *place, const char **ret_name)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(place->path, '/');
	const char *name = slash ? slash + 1 : place->path;
	if (place->dir[0] != '/' || !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	cleanup_fd int top = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	*ret_name = name;
	int n = snprintf(parent, sizeof(parent), "%.*s", (int)(name - place->path), place->path);
	if (n < 0 || (size_t)n >= sizeof(parent))
		return -ENAMETOOLONG;
	return path_open_beneath(top, n == 0 ? "." : parent, O_RDONLY | O_DIRECTORY, 0);
}

int applog_open_at(struct applog *l, const struct pod_log_place *place)
{
	const char *name = NULL;
	l->dir_fd = open_place(place, &name);
	if (l->dir_fd < 0)
		return l->dir_fd;
	for (int i = 0; i < CRILOG_STREAM_COUNT_; i++)
		l->streams[i].plain = true;
	int r = str_copy(l->name, sizeof(l->name), name);
	return r < 0 ? r : open_file(l);
}

/* Makes room: the present file becomes the old one, and the old one goes. */
static void applog_rotate(struct applog *l)
{
	char old[NAME_MAX + sizeof(POD_LOG_OLD_SUFFIX)];
	snprintf(old, sizeof(old), "%s" POD_LOG_OLD_SUFFIX, l->name);
	if (renameat(l->dir_fd, l->name, l->dir_fd, old) < 0)
		return;
	l->fd = fd_close(l->fd);
	if (open_file(l) < 0)
		l->fd = fd_close(l->fd);
}

/* A record that was written in part would spoil the next one: it is taken back. */
static void applog_flush(struct applog *l)
{
	size_t len = buf_len(&l->out);
	if (len == 0)
		return;
	l->fed += len;
	if (l->fd >= 0 && l->size + len > APPLOG_FILE_MAX)
		applog_rotate(l);
	bool fits = l->fd >= 0 && l->size + len <= APPLOG_FILE_MAX;
	if (fits && fd_write_all(l->fd, buf_data(&l->out), len) == 0) {
		l->size += len;
	} else {
		if (fits && ftruncate(l->fd, (off_t)l->size) < 0)
			l->fd = fd_close(l->fd);
		l->lost++;
	}
	buf_consume(&l->out, len);
}

static int fail_place(const struct pod_log_place *place, const char *app, int r, struct err *e)
{
	if (r == -EXDEV)
		return err_set(
			e, r,
			"app \"%s\": its log \"%s\" is not below \"%s\" (see the annotations)", app,
			place->path, place->dir);
	return err_sys(e, r,
		       "app \"%s\": cannot open its log \"%s\" in \"%s\" (see the annotations)",
		       app, place->path, place->dir);
}

int applog_begin(struct applog *l, int pod_fd, const char *app, const struct pod_log_place *place,
		 bool needed, struct err *e)
{
	struct err why = ERR_INIT;
	int r = place->dir ? applog_open_at(l, place) : applog_open(l, pod_fd, app);
	if (r == 0)
		return 0;
	applog_deinit(l);
	if (place->dir)
		return fail_place(place, app, r, e);
	err_sys(&why, r, "pod directory: cannot open the log of app \"%s\"", app);
	if (needed)
		*e = why;
	else
		dprintf(STDERR_FILENO, "stage1: %s\n", why.text);
	return needed ? r : 0;
}

bool applog_is_open(const struct applog *l)
{
	return l->dir_fd >= 0;
}

static int applog_emit(void *ctx, const char *record, size_t len)
{
	struct applog *l = ctx;
	if (buf_room(&l->out) < len)
		applog_flush(l);
	if (buf_append(&l->out, record, len) < 0)
		l->lost++;
	return 0;
}

void applog_feed(struct applog *l, enum crilog_stream stream, const char *data, size_t len)
{
	if (crilog_feed(&l->streams[stream], clock_realtime_ns(), data, len, applog_emit, l) < 0)
		l->lost++;
	applog_flush(l);
}

void applog_end(struct applog *l, enum crilog_stream stream)
{
	crilog_end(&l->streams[stream], clock_realtime_ns(), applog_emit, l);
	applog_flush(l);
}
