/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/info.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"

#define NUMBER_FILE_MAX 32 /* a decimal number and a newline */

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

bool pod_state_is_after_run(enum pod_state state)
{
	return state == POD_STATE_EXITED || state == POD_STATE_EXITED_DELETING ||
	       state == POD_STATE_EXITED_GARBAGE;
}

void pod_info_deinit(struct pod_info *info)
{
	if (!info)
		return;
	for (size_t i = 0; i < info->n_apps; i++)
		pod_tags_deinit(&info->apps[i].tags);
	free(info->apps);
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
	}
	app->state = app_state(status_fd, pod, app);
}

int pod_read_manifest(const struct pod *p, struct pod_manifest *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len;
	int r = file_read_at(p->fd, POD_FILE_MANIFEST, POD_MANIFEST_SIZE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "cannot read the pod manifest");
	return pod_manifest_parse(text, len, ret, e);
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
		memcpy(app->image_id, from->image_id, sizeof(app->image_id));
		app->tags = from->tags;
		pod_tags_init(&from->tags); /* they are the other's now */
		read_app_status(status_fd, info, app);
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

int pod_info_read(struct pods *ps, const struct pod *p, struct pod_info *ret)
{
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	uint64_t pid = 0;
	info.uuid = p->uuid;
	info.state = pod_state_of(p->phase, p->locked);
	info.created_ns = pod_file_time(p->fd, POD_FILE_CREATED);
	if (info.created_ns == 0)
		info.created_ns = pod_file_time(p->fd, POD_FILE_MANIFEST);
	info.started_ns = pod_file_time(p->fd, POD_FILE_PID);
	pod_file_number(p->fd, POD_FILE_PID, INT_MAX, &pid);
	info.pid = (pid_t)pid;
	int r = read_apps(p, &info);
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
