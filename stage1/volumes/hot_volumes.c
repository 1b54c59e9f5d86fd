/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. All is done by a child, which joins the namespaces of who has the volumes,
 * and from which there is no way back. Root mounts outside, where it gets to everything; others may
 * only mount where they have become root, which is in the user namespace of the pod, and with the
 * mounts of the host that are there now. A mount that is attached nowhere is taken along from one
 * mount namespace into the other.
 *
 * What is the same is mounted once for all apps of the pod (volume_places.h), if root mounts. What
 * others mount comes from copies of the host's mounts, which each of these processes makes anew, so
 * that none is the same as another's: each of their apps has a file system to itself.
 */
#include "stage1/volumes/hot_volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "lib/os/userns.h"
#include "lib/wire/stage1.h"
#include "stage1/pod/find_supervisor.h"
#include "stage1/pod/helpers.h"
#include "stage1/pod/podfiles.h"
#include "stage1/volumes/host_volume.h"
#include "stage1/volumes/volume_places.h"

#define COMM_MAX 16 /* proc(5): 15 bytes and a newline */

#define TURN_MS      5000 /* far longer than anybody takes who is not stopped */
#define TURN_POLL_NS (5 * NS_PER_MS)

/* Namespaces of who has the volumes. */
struct place {
	const struct volume_keeper *keeper;
	int users; /* -EBADF: those that we are in */
	int mounts;
	int ids;  /* -EBADF: owners are as they are */
	int turn; /* its lock is that of whoever changes what is there */
};

#define PLACE_INIT \
	((struct place){ .users = -EBADF, .mounts = -EBADF, .ids = -EBADF, .turn = -EBADF })

static void place_deinit(struct place *p)
{
	fd_close(p->users);
	fd_close(p->mounts);
	fd_close(p->ids);
	fd_close(p->turn);
}

/* ---- finding it ---- */

static int open_at(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_called(int proc, const char *name)
{
	char comm[COMM_MAX + 1];
	size_t len = 0;
	cleanup_fd int fd = open_at(proc, "comm");
	if (fd < 0 || fd_read_full(fd, comm, COMM_MAX, &len) < 0)
		return false;
	comm[len] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	return strcmp(comm, name) == 0;
}

/* The directory in /proc of the helper of @supervisor that is called @name. Or -ENOENT, -errno. */
static int find_helper(pid_t supervisor, const char *name)
{
	pid_t pids[POD_HELPERS_MAX];
	size_t n = pod_helpers("/proc", supervisor, pids);
	for (size_t i = 0; i < n; i++) {
		char path[32];
		snprintf(path, sizeof(path), "/proc/%d", (int)pids[i]);
		cleanup_fd int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (proc >= 0 && is_called(proc, name))
			return TAKE_FD(proc);
	}
	return -ENOENT;
}

/* Whether the namespace @fd is that of this process, by its name in /proc/self. */
static bool is_ours(int fd, const char *own)
{
	struct stat a, b;
	return fstat(fd, &a) == 0 && stat(own, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Only root gives files other owners than they have. */
static int open_ids(int proc, const struct volume_keeper *keeper, const struct place *p)
{
	char path[32];
	if (geteuid() != 0)
		return -EBADF;
	if (keeper->ids_fd == HOT_VOLUMES_OWN_IDS)
		return p->users < 0 ? -EBADF : open_at(proc, "ns/user");
	snprintf(path, sizeof(path), "fd/%d", keeper->ids_fd);
	int fd = open_at(proc, path);
	return fd == -ENOENT ? -EBADF : fd;
}

static int open_place(int proc, const struct volume_keeper *keeper, struct place *ret)
{
	ret->keeper = keeper;
	ret->mounts = open_at(proc, "ns/mnt");
	ret->users = open_at(proc, "ns/user");
	if (ret->mounts < 0 || ret->users < 0)
		return MIN(ret->mounts, ret->users);
	if (is_ours(ret->mounts, "/proc/self/ns/mnt")) /* then it has nothing that is a pod's */
		return -EXDEV;
	if (is_ours(ret->users, "/proc/self/ns/user"))
		fd_replace(&ret->users, -EBADF);
	ret->ids = open_ids(proc, keeper, ret);
	return ret->ids < 0 && ret->ids != -EBADF ? ret->ids : 0;
}

#define NOBODY 1 /* has volumes */

/*
 * The pod directory says what is mounted and where, and root may have come to somebody else's. The
 * descriptor, or -errno and @e.
 */
static int open_pod(struct err *e)
{
	struct stat st;
	cleanup_fd int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, -errno, "pod directory");
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, -EPERM,
			       "pod directory: only its owner, who alone can write there, brings "
			       "volumes of the host and takes them away");
	return TAKE_FD(fd);
}

/* 0, NOBODY, or -errno and @e: -ESRCH if the pod has ended. */
static int find_place(const struct volume_keeper *keeper, struct place *ret, struct err *e)
{
	pid_t supervisor = 0;
	cleanup_fd int pod = open_pod(e);
	if (pod < 0)
		return pod;
	cleanup_fd int pidfd = find_supervisor(pod, &supervisor, e);
	if (pidfd < 0)
		return pidfd;
	cleanup_fd int proc = find_helper(supervisor, keeper->process);
	if (proc == -ENOENT)
		return NOBODY;
	ret->turn = open_at(pod, POD_FILE_SECRET);
	if (ret->turn < 0)
		return err_sys(e, ret->turn, "pod directory: \"" POD_FILE_SECRET "\"");
	int r = proc < 0 ? proc : open_place(proc, keeper, ret);
	return r < 0 ? err_sys(e, r, "volumes: namespaces of %s", keeper->process) : 0;
}

/* ---- being there ---- */

struct visit {
	const struct place *place;
	const char *app;
	struct host_volume volumes[AGENT_VOLUME_SLOTS];
	struct volume_place places[AGENT_VOLUME_SLOTS]; /* as many, once they are mounts */
	size_t n;
};

/* Others than root are in there who they are outside. */
static int join_users(const struct place *p)
{
	if (p->users < 0)
		return 0;
	if (setns(p->users, CLONE_NEWUSER) < 0)
		return -errno;
	return geteuid() == 0 ? 0 : userns_become_root();
}

static int own_mounts(void)
{
	return unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		       ? -errno
		       : 0;
}

/* Its directory. Or -errno. */
static int join_mounts(const struct place *p)
{
	cleanup_fd int root = -EBADF;
	if (setns(p->mounts, CLONE_NEWNS) < 0)
		return -errno;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -errno
			: path_open_beneath(root, p->keeper->dir + 1, O_PATH | O_DIRECTORY, 0);
}

/*
 * Apps come and go by processes of their own. Their lock is on a file of the pod directory that is
 * there as long as the pod, that nobody in the pod gets to, and only its owner can open: so only
 * one of them can keep it from the others, as long as it lives. It is released with the last
 * descriptor.
 */
static int take_turn(const struct place *p, struct err *e)
{
	int limit_ms = p->keeper->turn_ms > 0 ? p->keeper->turn_ms : TURN_MS;
	int64_t end = clock_monotonic_ns() + limit_ms * NS_PER_MS;
	int r;
	while ((r = lock_try_exclusive(p->turn)) == LOCK_TAKEN && clock_monotonic_ns() < end)
		nanosleep(&(struct timespec){ .tv_nsec = TURN_POLL_NS }, NULL);
	if (r == LOCK_TAKEN)
		return err_set(e, -EBUSY,
			       "volumes: somebody else has been adding or removing an app of this "
			       "pod for %g s (try again)",
			       limit_ms / 1000.0);
	return r < 0 ? err_sys(e, r, "volumes: cannot lock \"" POD_FILE_SECRET "\" of the pod") : 0;
}

/* ---- attaching ---- */

static int mount_volumes(struct visit *v, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < v->n; i++) {
		struct volume_place *to = &v->places[i];
		to->slot = v->volumes[i].name;
		r = to->mount = host_volume_mount(&v->volumes[i], to->key, e);
		if (r >= 0 && v->place->ids >= 0)
			r = host_volume_map_ids(r, &v->volumes[i], v->place->ids,
						v->place->keeper->without_ids, e);
	}
	return MIN(r, 0);
}

static int attach_volumes(const struct visit *v, struct err *e)
{
	cleanup_fd int dir = join_mounts(v->place);
	int r = dir < 0 ? 0 : take_turn(v->place, e);
	if (r < 0)
		return r;
	r = dir < 0 ? dir : volume_places_attach(dir, v->app, v->places, v->n);
	return r < 0 ? err_sys(e, r, "volumes of app \"%s\": cannot mount them in the pod", v->app)
		     : 0;
}

static int attach(struct visit *v, struct err *e)
{
	bool of_root = geteuid() == 0;
	int r = of_root ? mount_volumes(v, e) : 0;
	if (r < 0)
		return r;
	r = join_users(v->place);
	if (r == 0 && !of_root)
		r = own_mounts();
	if (r < 0)
		return err_sys(e, r, "volumes: user namespace of the pod");
	r = of_root ? 0 : mount_volumes(v, e);
	return r < 0 ? r : attach_volumes(v, e);
}

/* ---- detaching ---- */

static int detach(struct visit *v, struct err *e)
{
	int r = join_users(v->place);
	cleanup_fd int dir = r < 0 ? r : join_mounts(v->place);
	r = dir < 0 ? 0 : take_turn(v->place, e);
	if (r < 0)
		return r;
	r = dir < 0 ? dir : volume_places_detach(dir, v->app);
	return r < 0 ? err_sys(e, r, "volumes of app \"%s\": cannot unmount them", v->app) : 0;
}

/* ---- the child ---- */

static int call_child(struct visit *v, int (*fn)(struct visit *v, struct err *e), struct err *e)
{
	int said[2], status = 0;
	struct err why = ERR_INIT;
	size_t len = 0;
	if (pipe2(said, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "volumes");
	cleanup_fd int hear = said[0], say = said[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, -errno, "volumes");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		umask(022); /* who serves the volumes is not who owns what they are in */
		int r = fn(v, &why);
		if (r < 0)
			fd_write_all(say, &why, sizeof(why));
		_exit(r < 0);
	}
	fd_replace(&say, -EBADF);
	int r = fd_read_full(hear, &why, sizeof(why), &len);
	if (spawn_wait(pid, &status) < 0 || r < 0 || (len != sizeof(why) && status != 0))
		return err_set(e, -EIO, "volumes: who was to mount them was killed");
	return len > 0 ? err_set(e, why.code, "%s", why.text) : 0;
}

int hot_volumes_attach(const struct volume_keeper *keeper, const struct pod_app *app, struct err *e)
{
	CLEANUP(place_deinit) struct place place = PLACE_INIT;
	struct visit v = { .place = &place, .app = app->name };
	v.n = host_volumes_of_app(app, v.volumes);
	if (v.n == 0)
		return 0;
	int r = find_place(keeper, &place, e);
	if (r == NOBODY)
		return err_set(e, -EOPNOTSUPP, "volume of \"%s\": %s", v.volumes[0].path,
			       keeper->otherwise);
	return r < 0 ? r : call_child(&v, attach, e);
}

int hot_volumes_detach(const struct volume_keeper *keeper, const struct pod_app *app, struct err *e)
{
	CLEANUP(place_deinit) struct place place = PLACE_INIT;
	struct visit v = { .place = &place, .app = app->name };
	if (!volumes_have(&app->volumes, VOLUME_HOST))
		return 0;
	int r = find_place(keeper, &place, e);
	if (r == NOBODY || r == -ESRCH)
		return 0;
	return r < 0 ? r : call_child(&v, detach, e);
}
