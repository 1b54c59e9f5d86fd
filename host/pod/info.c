/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/pod/networks.h"
#include "host/pod/pod_stage1.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/wire/stage1.h"

#define NUMBER_FILE_MAX 32 /* a decimal number and a newline */
#define REASON_FILE_MAX (NUMBER_FILE_MAX + AGENT_TEXT_MAX + 2)

static const char *const app_state_names[APP_STATE_COUNT_] = {
	[APP_STATE_UNKNOWN] = "unknown",   [APP_STATE_PREPARING] = "preparing",
	[APP_STATE_CREATED] = "created",   [APP_STATE_RUNNING] = "running",
	[APP_STATE_STOPPING] = "stopping", [APP_STATE_EXITED] = "exited",
	[APP_STATE_DELETING] = "deleting",
};

const char *app_state_name(enum app_state state)
{
	return app_state_names[state];
}

enum app_end app_end_from(int exit_code, bool oom, const struct app_reason *why)
{
	if (oom)
		return APP_END_OOM_KILLED;
	if (why->signal > 0)
		return APP_END_SIGNALED;
	if (exit_code == EXIT_APP_NOT_EXEC && why->message[0])
		return APP_END_NOT_EXECUTED;
	return exit_code == 0 ? APP_END_COMPLETED : APP_END_FAILED;
}

enum app_end app_end_of(const struct app_info *app)
{
	if (app->state != APP_STATE_EXITED || !app->has_exit_code)
		return APP_END_NONE;
	return app_end_from(app->exit_code, app->oom, &app->why);
}

const char *app_end_name(enum app_end end)
{
	static const char *const names[APP_END_COUNT_] = {
		[APP_END_COMPLETED] = "completed",       [APP_END_FAILED] = "failed",
		[APP_END_SIGNALED] = "signaled",         [APP_END_OOM_KILLED] = "oom-killed",
		[APP_END_NOT_EXECUTED] = "not-executed",
	};
	return names[end];
}

bool pod_state_is_after_run(enum pod_state state)
{
	return state == POD_STATE_EXITED || state == POD_STATE_EXITED_DELETING ||
	       state == POD_STATE_EXITED_GARBAGE;
}

void pod_info_deinit(struct pod_info *info)
{
	if (!info)
		return;
	for (size_t i = 0; i < info->n_apps; i++) {
		pod_tags_deinit(&info->apps[i].tags);
		volume_mounts_deinit(&info->apps[i].mounts);
	}
	free(info->apps);
	free(info->networks);
	pod_tags_deinit(&info->tags);
	*info = POD_INFO_INIT;
}

int64_t pod_file_time(int dirfd, const char *name)
{
	struct stat st;
	if (dirfd < 0 || fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    st.st_mtim.tv_sec < 0 || st.st_mtim.tv_sec > INT64_MAX / NS_PER_SEC - 1)
		return 0;
	return (int64_t)st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec;
}

int pod_file_number(int dirfd, const char *name, uint64_t max, uint64_t *ret)
{
	cleanup_free char *text = NULL;
	if (dirfd < 0)
		return -ENOENT;
	int r = file_read_at(dirfd, name, NUMBER_FILE_MAX, &text, NULL);
	if (r < 0)
		return r == -ENOENT ? -ENOENT : -EBADMSG;
	text[strcspn(text, "\n")] = '\0';
	return num_parse_u64(text, max, ret) < 0 ? -EBADMSG : 0;
}

static int64_t status_time(int status_fd, const struct app_info *app, const char *suffix)
{
	char name[NAME_MAX + 1];
	snprintf(name, sizeof(name), "%s%s", app->name, suffix);
	return pod_file_time(status_fd, name);
}

/* The state follows from which of the status files are there and from the pod's state. */
static enum app_state app_state(int status_fd, const struct pod_info *pod,
				const struct app_info *app)
{
	if (status_time(status_fd, app, POD_STATUS_DELETING_SUFFIX) > 0)
		return APP_STATE_DELETING;
	if (app->has_exit_code || pod_state_is_after_run(pod->state))
		return APP_STATE_EXITED;
	if (app->started_ns > 0 && status_time(status_fd, app, POD_STATUS_STOPPING_SUFFIX) > 0)
		return APP_STATE_STOPPING;
	if (app->started_ns > 0)
		return APP_STATE_RUNNING;
	if (app->created_ns > 0)
		return APP_STATE_CREATED;
	return pod->is_mutable ? APP_STATE_PREPARING : APP_STATE_UNKNOWN;
}

/* A number and a line. */
void app_reason_read(int status_fd, const char *app, struct app_reason *ret)
{
	char name[NAME_MAX + 1];
	cleanup_free char *text = NULL;
	uint64_t number = 0;
	*ret = (struct app_reason){ 0 };
	snprintf(name, sizeof(name), "%s" POD_STATUS_REASON_SUFFIX, app);
	if (status_fd < 0 || file_read_at(status_fd, name, REASON_FILE_MAX, &text, NULL) < 0)
		return;
	char *line = strchr(text, '\n');
	if (!line)
		return;
	*line++ = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (num_parse_u64(text, AGENT_SIGNAL_MAX, &number) < 0)
		return;
	ret->signal = (int)number;
	snprintf(ret->message, sizeof(ret->message), "%s", line);
	for (char *c = ret->message; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
}

static bool has_file(int dirfd, const char *dir, const char *name)
{
	char path[NAME_MAX + 1];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", name);
	return n > 0 && (size_t)n < sizeof(path) &&
	       fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void read_app_status(int status_fd, const struct pod_info *pod, struct app_info *app)
{
	app->created_ns = status_time(status_fd, app, POD_STATUS_CREATED_SUFFIX);
	app->started_ns = status_time(status_fd, app, POD_STATUS_STARTED_SUFFIX);
	app->oom = status_time(status_fd, app, POD_STATUS_OOM_SUFFIX) > 0;

	uint64_t code = 1;
	int r = pod_file_number(status_fd, app->name, UINT8_MAX, &code);
	if (r != -ENOENT) {
		app->has_exit_code = true;
		app->exit_code = (int)code;
		app->finished_ns = pod_file_time(status_fd, app->name);
		app_reason_read(status_fd, app->name, &app->why);
	}
	app->state = app_state(status_fd, pod, app);
}

/* Manifests were once open to the group of the pods; who owns one closes it. */
static void close_to_others(int fd)
{
	struct stat st;
	if (fstat(fd, &st) == 0 && st.st_mode & 0077)
		(void)!fchmod(fd, 0600); /* it is another's */
}

int pod_read_manifest(const struct pod *p, struct pod_manifest *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	cleanup_fd int fd =
		openat(p->fd, POD_FILE_MANIFEST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int r = fd < 0 ? -errno : file_read_fd(fd, POD_MANIFEST_SIZE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "cannot read the pod manifest");
	close_to_others(fd);
	return pod_manifest_parse(text, len, ret, e);
}

/* Calls @fn with the image of the app whose directory is @name below @apps_fd. 0 or -errno. */
static int tell_image(int apps_fd, const char *name, int (*fn)(void *ctx, const char *image_id),
		      void *ctx)
{
	char link[NAME_MAX + 1 + sizeof("/" POD_LINK_IMAGE)], id[POD_IMAGE_ID_MAX + 1];
	snprintf(link, sizeof(link), "%s/" POD_LINK_IMAGE, name);
	ssize_t n = readlinkat(apps_fd, link, id, sizeof(id));
	if (n < 0 || (size_t)n == sizeof(id))
		return n < 0 ? -errno : -EBADMSG;
	id[n] = '\0';
	return fn(ctx, id);
}

int pod_each_image(const struct pod *p, int (*fn)(void *ctx, const char *image_id), void *ctx)
{
	const struct dirent *de;
	int r = 0, fd = path_open_beneath(p->fd, POD_DIR_APPS, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	cleanup_dir DIR *dir = fd_open_dir(fd);
	if (!dir)
		return -errno;
	while (r == 0 && (de = readdir(dir)))
		if (de->d_name[0] != '.')
			r = tell_image(dirfd(dir), de->d_name, fn, ctx);
	return r;
}

static int read_apps(const struct pod *p, struct pod_info *info)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	pod_manifest_init(&m);
	if (pod_read_manifest(p, &m, &info->problem) < 0)
		return 0;
	info->is_mutable = m.is_mutable;
	info->tags = m.tags;
	pod_tags_init(&m.tags);
	info->apps = calloc(MAX(m.n_apps, (size_t)1), sizeof(*info->apps));
	if (!info->apps)
		return -ENOMEM;
	cleanup_fd int status_fd =
		openat(p->fd, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (info->n_apps = 0; info->n_apps < m.n_apps; info->n_apps++) {
		struct app_info *app = &info->apps[info->n_apps];
		struct pod_app *from = &m.apps[info->n_apps];
		memcpy(app->name, from->name, sizeof(app->name));
		memcpy(app->image_name, from->image_name, sizeof(app->image_name));
		pod_app_image_id(from, app->image_id);
		app->tags = from->tags;
		pod_tags_init(&from->tags); /* they are the other's now */
		app->mounts = from->mounts;
		from->mounts = (struct volume_mounts){ 0 };
		read_app_status(status_fd, info, app);
		app->has_log = has_file(p->fd, POD_DIR_LOGS, app->name);
	}
	return 0;
}

/* True while the manifest may not be there yet, which is then no problem worth a line. */
static bool manifest_may_be_missing(enum pod_state state)
{
	return state == POD_STATE_EMBRYO || state == POD_STATE_PREPARING ||
	       state == POD_STATE_ABORTED_PREPARE || state == POD_STATE_DELETING ||
	       state == POD_STATE_EXITED_DELETING || state == POD_STATE_EXITED_GARBAGE ||
	       state == POD_STATE_GARBAGE;
}

const struct app_info *pod_info_find(const struct pod_info *info, const char *name)
{
	for (size_t i = 0; i < info->n_apps; i++)
		if (strcmp(info->apps[i].name, name) == 0)
			return &info->apps[i];
	return NULL;
}

/* What cannot be read is for the commands that need the stage1. */
static int read_flavor(const struct pod *p, struct pod_info *info)
{
	struct err ignored = ERR_INIT;
	cleanup_free struct pod_stage1 *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (pod_stage1_read(p, s, &ignored) == 0)
		memcpy(info->flavor, s->flavor, sizeof(info->flavor));
	return 0;
}

int pod_info_read(struct pods *ps, const struct pod *p, struct pod_info *ret)
{
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	uint64_t pid = 0;
	info.uuid = p->uuid;
	info.state = pod_state_of(p->phase, p->locked);
	pod_name_read(p->fd, info.name);
	info.phase = p->phase;
	info.has_console = has_file(p->fd, "", POD_FILE_CONSOLE);
	info.has_supervisor_log = has_file(p->fd, "", POD_FILE_LOG);
	info.created_ns = pod_file_time(p->fd, POD_FILE_CREATED);
	if (info.created_ns == 0)
		info.created_ns = pod_file_time(p->fd, POD_FILE_MANIFEST);
	info.started_ns = pod_file_time(p->fd, POD_FILE_PID);
	pod_file_number(p->fd, POD_FILE_PID, INT_MAX, &pid);
	info.pid = (pid_t)pid;
	info.suspended =
		info.state == POD_STATE_RUNNING && pod_file_time(p->fd, POD_FILE_SUSPENDED) > 0;
	info.disk_full =
		info.state == POD_STATE_RUNNING && pod_file_time(p->fd, POD_FILE_DISK_FULL) > 0;
	int r = read_flavor(p, &info);
	if (r == 0)
		r = pod_networks_read(p->fd, &info.networks);
	if (r == 0)
		r = read_apps(p, &info);
	if (r < 0)
		return r;
	if (info.problem.code == -ENOENT && manifest_may_be_missing(info.state))
		info.problem = ERR_INIT;
	/* Somebody who deletes it meanwhile has moved it first. */
	if (info.problem.code < 0 && ps && pod_check_place(ps, p, NULL) == POD_GONE)
		return POD_GONE;
	*ret = info;
	info = POD_INFO_INIT;
	return 0;
}
