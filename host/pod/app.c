/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding, removing and updating change the pod manifest, so they take turns: all hold the lock of
 * the file pod.lck. Each may be killed at any point, and the next of them must find its way:
 *
 *   add      apps/NAME with the image; the manifest with the app; stage1's app/add, at whose end
 *            the supervisor makes status/NAME-created
 *   remove   status/NAME-deleting; stage1's app/rm; apps/NAME, logs, status; the manifest without
 *            the app; status/NAME-deleting goes
 *   update   the manifest with the limits; stage1's app/update; if that fails, the manifest as it
 *            was. Killed before its end, the manifest promises what the next update will set.
 *            Those of a pod as a whole no manifest has: stage1's update sets and keeps them.
 *
 * So an app is whole if the manifest has it, NAME-created is there and NAME-deleting is not. What
 * is not whole, and whose maker holds the lock no more, is a remnant: add and remove of that name
 * clear it away, and stage1's app/rm does not mind an app that it has never seen.
 */
#include "host/pod/app.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/launch/abi.h"
#include "host/manifest/open_images.h"
#include "host/manifest/volumes.h"
#include "host/pod/info.h"
#include "host/pod/prepare.h"
#include "host/pod/wait.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"
#include "lib/wire/stage1.h"

static bool is_running(const struct pod *p)
{
	return pod_state_of(p->phase, p->locked) == POD_STATE_RUNNING;
}

static int need_running(const struct app_target *t, struct err *e)
{
	const struct pod *p = t->pod;
	int r = pod_need_running(p, e);
	if (r < 0)
		return r;
	/* One of rkt's says nowhere that it is ready. */
	if (t->stage1->abi == STAGE1_ABI_HUSK && !pod_is_ready(p))
		return err_set(e, -EAGAIN,
			       "supervisor for pod \"%s\" is not yet ready (wait "
			       "with husk status --wait-ready)",
			       p->uuid.text);
	return 0;
}

/* Reads the manifest of a pod that can be changed. */
static int read_mutable(const struct pod *p, struct pod_manifest *m, struct err *e)
{
	int r = pod_read_manifest(p, m, e);
	if (r == 0 && !m->is_mutable)
		r = err_set(e, -EPERM, "immutable pod (make one with husk app sandbox)");
	return r;
}

/* ---- stage1 ---- */

/* Runs an entrypoint. 0, EXIT_APP_NOT_RUNNING with @e set, or -errno and @e. */
static int ask(const struct app_target *t, const char *program, const struct strv *args,
	       struct err *e)
{
	int code = 0;
	int r = stage1_ask(program, t->pod->fd, args, &code, e);
	if (r < 0 || code == 0 || code == EXIT_APP_NOT_RUNNING)
		return r < 0 ? r : code;
	return e->code;
}

/* The same for one that is about an app, as @app says. */
static int ask_about(const struct app_target *t, const char *program, const struct abi_app *app,
		     struct err *e)
{
	cleanup_strv struct strv args;
	strv_init(&args, ABI_ARGS_MAX);
	int r = abi_app_args(t->stage1, app, &args);
	return r < 0 ? err_sys(e, r, "arguments of stage1") : ask(t, program, &args, e);
}

static int cross(const struct app_target *t, const char *program, const char *name, int64_t grace_s,
		 struct err *e)
{
	const struct abi_app app = { .uuid = t->pod->uuid.text,
				     .name = name,
				     .adds = program == t->stage1->app_add,
				     .grace_s = grace_s };
	if (!program[0])
		return err_set(e, -EOPNOTSUPP, "stage1 \"%s\" does not support mutable pods",
			       t->stage1->dir);
	return ask_about(t, program, &app, e);
}

/* ---- what is left of an app ---- */

static int open_status(const struct pod *p)
{
	return path_open_beneath(p->fd, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY, 0);
}

static bool has_status(int status_fd, const char *name, const char *suffix)
{
	char file[NAME_MAX + 1];
	struct stat st;
	snprintf(file, sizeof(file), "%s%s", name, suffix);
	return fstatat(status_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_whole(const struct pod *p, const char *name)
{
	cleanup_fd int status_fd = open_status(p);
	return has_status(status_fd, name, POD_STATUS_CREATED_SUFFIX) &&
	       !has_status(status_fd, name, POD_STATUS_DELETING_SUFFIX);
}

/* Deletes the file @name@suffix in @dir_fd, which may not be there. 0 or -errno. */
static int delete_file(int dir_fd, const char *name, const char *suffix)
{
	char file[NAME_MAX + 1];
	snprintf(file, sizeof(file), "%s%s", name, suffix);
	return unlinkat(dir_fd, file, 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Deletes the files of app @name in the subdirectory @dir that end in one of @suffixes. */
static int delete_files(const struct pod *p, const char *dir, const char *name,
			const char *const *suffixes, size_t n, struct err *e)
{
	cleanup_fd int fd = path_open_beneath(p->fd, dir, O_RDONLY | O_DIRECTORY, 0);
	int r = fd == -ENOENT ? 0 : MIN(fd, 0);
	for (size_t i = 0; fd >= 0 && r == 0 && i < n; i++)
		r = delete_file(fd, name, suffixes[i]);
	return r < 0 ? err_sys(e, r, "cannot delete the files of app \"%s\" in \"%s\" of the pod",
			       name, dir)
		     : 0;
}

/* The space for its status, if it has not ended. */
static int delete_reserve(const struct pod *p, const char *name, struct err *e)
{
	char file[NAME_MAX + 1];
	snprintf(file, sizeof(file), POD_STATUS_RESERVED, name);
	return delete_files(p, POD_DIR_STATUS, file, (const char *[]){ "" }, 1, e);
}

/* Deletes all of app @name in the pod directory but its entry in the manifest and its mark. */
static int delete_app(const struct pod *p, const char *name, struct err *e)
{
	/* What tells a watcher that it is gone comes last. */
	static const char *const status[] = { POD_STATUS_STARTED_SUFFIX,
					      POD_STATUS_STOPPING_SUFFIX,
					      POD_STATUS_OOM_SUFFIX,
					      POD_STATUS_REASON_SUFFIX,
					      "",
					      POD_STATUS_CREATED_SUFFIX };
	static const char *const logs[] = { "", POD_LOG_OLD_SUFFIX };
	cleanup_fd int apps_fd = path_open_beneath(p->fd, POD_DIR_APPS, O_RDONLY | O_DIRECTORY, 0);
	int r = apps_fd < 0 ? apps_fd : rmtree(apps_fd, name);
	if (r < 0)
		return err_sys(e, r, "cannot delete \"" POD_DIR_APPS "/%s\" of the pod", name);
	r = delete_files(p, POD_DIR_LOGS, name, logs, ARRAY_SIZE(logs), e);
	if (r == 0)
		r = delete_reserve(p, name, e);
	return r < 0 ? r : delete_files(p, POD_DIR_STATUS, name, status, ARRAY_SIZE(status), e);
}

/* Marks app @name as being deleted, or takes the mark away. */
static int mark_deleting(const struct pod *p, const char *name, bool deleting, struct err *e)
{
	char file[NAME_MAX + 1];
	cleanup_fd int fd = open_status(p);
	snprintf(file, sizeof(file), "%s%s", name, POD_STATUS_DELETING_SUFFIX);
	int r = fd;
	if (fd >= 0)
		r = deleting ? file_touch_at(fd, file, 0640)
			     : delete_file(fd, name, POD_STATUS_DELETING_SUFFIX);
	return r < 0 ? err_sys(e, r, "cannot write \"" POD_DIR_STATUS "/%s\" of the pod", file) : 0;
}

/* Takes the app out of the pod that runs, then out of its directory and of the manifest @m. */
static int clear_app(const struct app_target *t, struct pod_manifest *m, const char *name,
		     int64_t grace_s, struct err *e)
{
	int r = mark_deleting(t->pod, name, true, e);
	if (r == 0 && is_running(t->pod))
		r = cross(t, t->stage1->app_rm, name, grace_s, e);
	if (r == 0)
		r = delete_app(t->pod, name, e);
	if (r == 0 && pod_manifest_remove(m, name) == 0)
		r = pod_replace_manifest(t->pod, m, e);
	return r == 0 ? mark_deleting(t->pod, name, false, e) : r;
}

/*
 * What was seen of the pod before its manifest was locked may be long ago: it may have ended, or be
 * gone. Opens it anew: 0 if it runs or, where @stopped is allowed, has ended and nobody deletes it.
 */
static int look_again(const struct app_target *t, bool stopped, struct pod *ret, struct err *e)
{
	const char *uuid = t->pod->uuid.text;
	int r = pod_open(t->pods, uuid, ret, e);
	if (r < 0)
		return r;
	enum pod_state state = r == 0 ? pod_state_of(ret->phase, ret->locked) : POD_STATE_GARBAGE;
	if (state == POD_STATE_RUNNING ||
	    (stopped && (state == POD_STATE_EXITED || state == POD_STATE_EXITED_GARBAGE)))
		return 0;
	return err_set(e, -EINVAL, "pod \"%s\" %s", uuid,
		       stopped || r == POD_GONE ? "is being deleted" : "isn't currently running");
}

static int lock_manifest(const struct pod *p, struct err *e)
{
	cleanup_fd int fd = openat(p->fd, POD_FILE_MANIFEST_LOCK,
				   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : lock_exclusive(fd);
	return r < 0 ? err_sys(e, r, "cannot lock \"" POD_FILE_MANIFEST_LOCK "\" of the pod")
		     : TAKE_FD(fd);
}

/* ---- add ---- */

/* Writes the app into the pod and asks stage1 for it. */
static int put_app(const struct app_target *t, struct pod_manifest *m, struct pod_app *app,
		   const struct image *image, struct err *e)
{
	char name[AGENT_NAME_MAX + 1];
	struct err ignored = ERR_INIT;
	memcpy(name, app->name, sizeof(name));
	int r = pod_prepare_app(t->pod, name, image, e);
	if (r == 0 && (r = pod_manifest_add(m, app)) < 0)
		err_set(e, r, "app \"%s\": the pod has %d apps (remove one)", name, AGENT_APPS_MAX);
	if (r == 0)
		r = pod_replace_manifest(t->pod, m, e);
	if (r == 0)
		r = cross(t, t->stage1->app_add, name, -1, e);
	if (r < 0)
		clear_app(t, m, name, 0, &ignored);
	return r;
}

static int add_locked(const struct app_target *target, const struct run_request *q,
		      struct pod_app *app, const struct image *image, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	cleanup_pod struct pod now = POD_INIT;
	const struct app_target fresh = { target->pods, &now, target->stage1 }, *t = &fresh;
	pod_manifest_init(&m);
	int r = look_again(target, false, &now, e);
	if (r == 0)
		r = read_mutable(&now, &m, e);
	if (r < 0)
		return r;
	if (pod_manifest_find(&m, app->name) && is_whole(&now, app->name))
		return err_set(e, -EEXIST,
			       "error: multiple apps with name %s (give it another with --name)",
			       app->name);
	r = volumes_resolve(&m, &q->mounts, app, e);
	if (r == 0)
		r = clear_app(t, &m, app->name, 0, e);
	return r < 0 ? r : put_app(t, &m, app, image, e);
}

/* Of what it brings with it. */
static int check_sources(const struct app_options *app, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < app->volumes.n; i++)
		r = volumes_check_source(&app->volumes.v[i], app->volumes.v[i].read_only, e);
	return r;
}

int pod_app_add(const struct app_target *t, const struct run_request *q, int data_fd,
		const char *data_path, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest wanted;
	CLEANUP(pod_manifest_deinit) struct pod_manifest present;
	CLEANUP(image_list_deinit) struct image_list images = { .store = NULL };
	pod_manifest_init(&wanted);
	pod_manifest_init(&present);
	int r = need_running(t, e);
	if (r < 0)
		return r;
	r = read_mutable(t->pod, &present, e); /* before an image is rendered in vain */
	if (r == 0)
		r = check_sources(&q->apps[0], e);
	if (r == 0)
		r = gather_apps(q, data_fd, data_path, &wanted, &images, e);
	if (r == 0) {
		cleanup_fd int lock = lock_manifest(t->pod, e);
		r = lock < 0 ? lock : add_locked(t, q, &wanted.apps[0], images.v[0], e);
	}
	return r < 0 ? err_context(e, "error adding app to pod") : 0;
}

/* ---- start and stop ---- */

/* The pod is mutable and has the app. */
static int need_app(const struct pod *p, const char *name, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	pod_manifest_init(&m);
	int r = read_mutable(p, &m, e);
	if (r == 0 && !pod_manifest_find(&m, name))
		r = err_set(e, -ENOENT, "error: nonexistent app \"%s\"", name);
	return r;
}

int pod_app_start(const struct app_target *t, const char *name, struct err *e)
{
	int r = need_running(t, e);
	if (r == 0)
		r = need_app(t->pod, name, e);
	if (r == 0)
		r = cross(t, t->stage1->app_start, name, -1, e);
	return r < 0 ? err_context(e, "error starting app") : 0;
}

int pod_app_stop(const struct app_target *t, const char *name, int64_t grace_s, struct err *e)
{
	if (pod_state_is_after_run(pod_state_of(t->pod->phase, t->pod->locked)))
		return APP_POD_STOPPED;
	int r = need_running(t, e);
	if (r == 0)
		r = need_app(t->pod, name, e);
	if (r == 0)
		r = cross(t, t->stage1->app_stop, name, grace_s, e);
	if (r > 0)
		return err_set(e, -ESRCH, "app \"%s\" is not running", name);
	return r < 0 ? err_context(e, "error stopping app") : 0;
}

int pod_app_signal(const struct app_target *t, const char *name, int number, bool all,
		   struct err *e)
{
	const struct abi_app app = {
		.uuid = t->pod->uuid.text,
		.name = name,
		.grace_s = -1,
		.signal = number,
		.all = all,
	};
	int r = need_running(t, e);
	if (r == 0 && !t->stage1->app_signal[0])
		r = err_set(e, -EOPNOTSUPP, "stage1 \"%s\" cannot send signals", t->stage1->dir);
	if (r == 0)
		r = ask_about(t, t->stage1->app_signal, &app, e);
	return r > 0 ? err_set(e, -ESRCH, "app \"%s\" is not running", name) : r;
}

int pod_app_pause(const struct app_target *t, const char *name, bool pause, struct err *e)
{
	const struct abi_app app = { .uuid = t->pod->uuid.text, .name = name, .grace_s = -1 };
	const char *program = pause ? t->stage1->app_pause : t->stage1->app_resume;
	int r = need_running(t, e);
	if (r == 0 && !*program)
		r = err_set(e, -EOPNOTSUPP, "stage1 \"%s\" cannot pause apps", t->stage1->dir);
	if (r == 0)
		r = ask_about(t, program, &app, e);
	return r > 0 ? err_set(e, -ESRCH, "app \"%s\" is not running", name) : r;
}

/* ---- update ---- */

static void change_limits(struct pod_app *app, unsigned changed, const struct isolators *values)
{
	for (int which = 0; which < ISOLATOR_COUNT_; which++)
		if (changed & 1U << which)
			isolators_replace(&app->isolators, (enum isolator)which, values);
}

/* The app of @m, which can be changed. */
static struct pod_app *find_whole(const struct pod *p, struct pod_manifest *m, const char *name,
				  struct err *e)
{
	const struct pod_app *app = pod_manifest_find(m, name);
	if (!app)
		err_set(e, -ENOENT, "error: nonexistent app \"%s\"", name);
	else if (m->is_mutable && !is_whole(p, name))
		err_set(e, -EBUSY, "app \"%s\" was not added or removed wholly (remove it)", name);
	else
		return &m->apps[app - m->apps];
	return NULL;
}

static int update_locked(const struct app_target *t, const char *name,
			 const struct limits_change *l, struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	cleanup_pod struct pod now = POD_INIT;
	const struct app_target fresh = { t->pods, &now, t->stage1 };
	struct err ignored = ERR_INIT;
	pod_manifest_init(&m);
	int r = look_again(t, false, &now, e);
	if (r == 0)
		r = pod_read_manifest(&now, &m, e);
	if (r < 0)
		return r;
	struct pod_app *app = find_whole(&now, &m, name, e);
	if (!app)
		return e->code;
	const struct isolators before = app->isolators; /* of which only numbers are looked at */
	change_limits(app, l->changed, &l->values);
	r = pod_replace_manifest(&now, &m, e);
	if (r == 0)
		r = cross(&fresh, t->stage1->app_update, name, -1, e);
	if (r < 0) {
		change_limits(app, l->changed, &before);
		pod_replace_manifest(&now, &m, &ignored);
	}
	return r;
}

int pod_app_update(const struct app_target *t, const char *name, const struct limits_change *l,
		   struct err *e)
{
	int r = need_running(t, e);
	if (r == 0 && !t->stage1->app_update[0])
		r = err_set(e, -EOPNOTSUPP, "stage1 \"%s\" cannot change limits", t->stage1->dir);
	if (r == 0) {
		cleanup_fd int lock = lock_manifest(t->pod, e);
		r = lock < 0 ? lock : update_locked(t, name, l, e);
	}
	return r < 0 ? err_context(e, "error updating app") : 0;
}

static int update_pod_locked(const struct app_target *t, const struct limits_change *l,
			     struct err *e)
{
	cleanup_strv struct strv args;
	cleanup_pod struct pod now = POD_INIT;
	const struct app_target fresh = { t->pods, &now, t->stage1 };
	strv_init(&args, ABI_ARGS_MAX);
	int r = look_again(t, false, &now, e);
	if (r < 0)
		return r;
	r = abi_update_args(now.uuid.text, l->changed, &l->values, &args);
	return r < 0 ? err_sys(e, r, "arguments of stage1")
		     : ask(&fresh, t->stage1->update, &args, e);
}

int pod_update(const struct app_target *t, const struct limits_change *l, struct err *e)
{
	int r = need_running(t, e);
	if (r == 0 && !t->stage1->update[0])
		r = err_set(e, -EOPNOTSUPP, "stage1 \"%s\" cannot change limits", t->stage1->dir);
	if (r == 0) {
		cleanup_fd int lock = lock_manifest(t->pod, e);
		r = lock < 0 ? lock : update_pod_locked(t, l, e);
	}
	return r < 0 ? err_context(e, "error updating pod") : 0;
}

/* ---- rm ---- */

static int remove_locked(const struct app_target *t, const char *name, int64_t grace_s,
			 struct err *e)
{
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	cleanup_pod struct pod now = POD_INIT;
	const struct app_target fresh = { t->pods, &now, t->stage1 };
	pod_manifest_init(&m);
	int r = look_again(t, true, &now, e);
	if (r == 0)
		r = read_mutable(&now, &m, e);
	if (r == 0 && !pod_manifest_find(&m, name))
		r = err_set(e, -ENOENT, "error: nonexistent app \"%s\"", name);
	return r < 0 ? r : clear_app(&fresh, &m, name, grace_s, e);
}

int pod_app_remove(const struct app_target *t, const char *name, int64_t grace_s, struct err *e)
{
	bool stopped = pod_state_is_after_run(pod_state_of(t->pod->phase, t->pod->locked));
	CLEANUP(pod_manifest_deinit) struct pod_manifest present;
	pod_manifest_init(&present);
	int r = stopped ? 0 : need_running(t, e);
	if (r == 0)
		r = read_mutable(t->pod, &present, e); /* before anything is written into it */
	if (r == 0) {
		cleanup_fd int lock = lock_manifest(t->pod, e);
		r = lock < 0 ? lock : remove_locked(t, name, grace_s, e);
	}
	return r < 0 ? err_context(e, "error removing app") : 0;
}
