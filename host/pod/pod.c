/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of a pod.
 *
 *   embryo -> prepare -> prepared -> run -> exited-garbage -> (deleted)
 *     |          |  \_______|_______/
 *     |          |          |
 *     +----------+----------+-> garbage -> (deleted)
 *
 * All state is a directory's place and its flock(2). Each transition is one rename(2), which is
 * atomic, so after a power cut the pod is in the old phase or in the new one. For a durable pod it
 * is followed by fsync(2) of the directory that received it. What is allowed where:
 *
 *   embryo          made and locked by its creator; nothing else. Unlocked: creator died, gc.
 *   prepare         content is written under the lock. Unlocked: creator died, gc.
 *   prepared        nobody holds the lock; content is complete and does not change.
 *   run             content is complete. The supervisor holds the lock for the pod's life through
 *                   an inherited descriptor; unlocked means that every holder is dead: exited.
 *   exited-garbage  read-only (status, export) until the holder of the lock deletes it.
 *   garbage         never ran; the holder of the lock deletes it.
 *
 * Races: whoever renames needs the exclusive lock, and checks after getting it that the directory
 * is still where it was. Who comes too late gets POD_GONE and stops. Probing takes a shared lock
 * for an instant; an exclusive attempt that meets it gets POD_BUSY: a gc leaves the pod to the next
 * gc, a command about this very pod tries again for a while. Creation is not affected: nobody
 * probes embryos, except gc under the exclusive lock.
 */
#include "host/pod/pod.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/data/datadir.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/os/random.h"
#include "lib/os/rmtree.h"
#include "lib/wire/stage1.h"

#define PODS_DIR      "pods"
#define POD_DIR_MODE  0750
#define CREATE_TRIES  3 /* an embryo can lose its race with a gc; hardly twice */
#define PHASE_BIT(ph) (1U << (ph))

struct pods {
	int phase_fds[POD_PHASE_COUNT_]; /* -EBADF if the directory is not there */
};

static const char *const phase_names[POD_PHASE_COUNT_] = {
	[POD_EMBRYO] = "embryo",
	[POD_PREPARE] = "prepare",
	[POD_PREPARED] = "prepared",
	[POD_RUN] = "run",
	[POD_EXITED_GARBAGE] = "exited-garbage",
	[POD_GARBAGE] = "garbage",
};

static const char *const state_names[POD_STATE_COUNT_] = {
	[POD_STATE_EMBRYO] = "embryo",
	[POD_STATE_PREPARING] = "preparing",
	[POD_STATE_ABORTED_PREPARE] = "aborted prepare",
	[POD_STATE_PREPARED] = "prepared",
	[POD_STATE_RUNNING] = "running",
	[POD_STATE_EXITED] = "exited",
	[POD_STATE_EXITED_DELETING] = "exited deleting",
	[POD_STATE_EXITED_GARBAGE] = "exited garbage",
	[POD_STATE_DELETING] = "deleting",
	[POD_STATE_GARBAGE] = "garbage",
};

static const struct {
	enum pod_state unlocked, locked;
} states[POD_PHASE_COUNT_] = {
	[POD_EMBRYO] = { POD_STATE_EMBRYO, POD_STATE_EMBRYO },
	[POD_PREPARE] = { POD_STATE_ABORTED_PREPARE, POD_STATE_PREPARING },
	[POD_PREPARED] = { POD_STATE_PREPARED, POD_STATE_PREPARED },
	[POD_RUN] = { POD_STATE_EXITED, POD_STATE_RUNNING },
	[POD_EXITED_GARBAGE] = { POD_STATE_EXITED_GARBAGE, POD_STATE_EXITED_DELETING },
	[POD_GARBAGE] = { POD_STATE_GARBAGE, POD_STATE_DELETING },
};

/* The phases from which a pod may come into a phase. */
static const unsigned int predecessors[POD_PHASE_COUNT_] = {
	[POD_EMBRYO] = 0,
	[POD_PREPARE] = PHASE_BIT(POD_EMBRYO),
	[POD_PREPARED] = PHASE_BIT(POD_PREPARE),
	[POD_RUN] = PHASE_BIT(POD_PREPARE) | PHASE_BIT(POD_PREPARED),
	[POD_EXITED_GARBAGE] = PHASE_BIT(POD_RUN),
	[POD_GARBAGE] = PHASE_BIT(POD_EMBRYO) | PHASE_BIT(POD_PREPARE) | PHASE_BIT(POD_PREPARED),
};

const char *pod_phase_name(enum pod_phase phase)
{
	return phase_names[phase];
}

enum pod_state pod_state_of(enum pod_phase phase, bool locked)
{
	return locked ? states[phase].locked : states[phase].unlocked;
}

const char *pod_state_name(enum pod_state state)
{
	return state_names[state];
}

bool pod_transition_allowed(enum pod_phase from, enum pod_phase to)
{
	return predecessors[to] & PHASE_BIT(from);
}

void pod_deinit(struct pod *p)
{
	if (!p)
		return;
	fd_close(p->fd);
	*p = POD_INIT;
}

/* Opens the directory @name below @dirfd, made first if @create. The descriptor or -errno. */
static int open_dir(int dirfd, const char *name, bool create)
{
	if (create && mkdirat(dirfd, name, POD_DIR_MODE) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The group of a shared data directory fetches images (images/store/store.c). Pods hold links to
 * rendered images, which are the owner's.
 */
static int check_owner(const struct datadir *d, int data_fd, struct err *e)
{
	if (!d->shared || d->ours || faccessat(data_fd, PODS_DIR, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return err_set(
		e, -EACCES,
		"the data directory is shared for fetching images: only its owner has pods in it (use "
		"another with --dir)");
}

/* Opens DATA/@name of @data_fd or a directory below it. As datadir_open(). */
static int open_part(struct datadir *d, int parent, const char *dir, const char *name, bool create,
		     struct err *e)
{
	char what[64];
	snprintf(what, sizeof(what), "%s%s of the data directory", dir, name);
	return datadir_open(d, parent, name, what, create, DATADIR_GROUP_READS, e);
}

static int open_phases(struct pods *ps, struct datadir *d, int data_fd, bool create, struct err *e)
{
	cleanup_fd int dir = open_part(d, data_fd, "", PODS_DIR, create, e);
	if (dir == -ENOENT && !create)
		return 0;
	int r = dir < 0 ? dir : datadir_sync(d, data_fd, "the data directory", e);
	for (int i = 0; i < POD_PHASE_COUNT_ && r == 0; i++) {
		ps->phase_fds[i] = open_part(d, dir, PODS_DIR "/", phase_names[i], create, e);
		if (ps->phase_fds[i] < 0 && (create || ps->phase_fds[i] != -ENOENT))
			return ps->phase_fds[i];
	}
	return r < 0 ? r : datadir_sync(d, dir, PODS_DIR " of the data directory", e);
}

int pods_open(int data_fd, bool create, struct pods **ret, struct err *e)
{
	struct datadir d;
	cleanup_pods struct pods *ps = malloc(sizeof(*ps));
	if (!ps)
		return err_sys(e, -ENOMEM, "pods");
	for (int i = 0; i < POD_PHASE_COUNT_; i++)
		ps->phase_fds[i] = -EBADF;
	int r = datadir_read(data_fd, &d);
	if (r < 0)
		return err_sys(e, r, "cannot open the data directory");
	r = create ? check_owner(&d, data_fd, e) : 0;
	if (r == 0)
		r = open_phases(ps, &d, data_fd, create, e);
	/* Stage1 is told the path of the cache: nobody else shall be first to make it. */
	cleanup_fd int cache = -EBADF;
	if (r == 0 && create && d.ours) {
		cache = open_part(&d, data_fd, "", PODS_CACHE_DIR, true, e);
		r = MIN(cache, 0);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ps);
	return 0;
}

void pods_free(struct pods *ps)
{
	if (!ps)
		return;
	for (int i = 0; i < POD_PHASE_COUNT_; i++)
		fd_close(ps->phase_fds[i]);
	free(ps);
}

int pods_phase_fd(const struct pods *ps, enum pod_phase phase)
{
	return ps->phase_fds[phase];
}

int pod_check_place(struct pods *ps, const struct pod *p, struct err *e)
{
	struct stat here, there;
	if (fstat(p->fd, &here) < 0)
		return err_sys(e, -errno, "pod \"%s\"", p->uuid.text);
	if (fstatat(ps->phase_fds[p->phase], p->uuid.text, &there, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? POD_GONE : err_sys(e, -errno, "pod \"%s\"", p->uuid.text);
	return here.st_dev == there.st_dev && here.st_ino == there.st_ino ? 0 : POD_GONE;
}

/* The one rename: checks the table, moves, syncs. */
static int move_to(struct pods *ps, struct pod *p, enum pod_phase to, struct err *e)
{
	if (!p->lock_is_ours)
		return err_set(e, -EINVAL, "pod \"%s\" is not locked by this process",
			       p->uuid.text);
	if (!pod_transition_allowed(p->phase, to))
		return err_set(e, -EINVAL, "pod \"%s\" cannot go from phase %s to %s", p->uuid.text,
			       phase_names[p->phase], phase_names[to]);
	if (ps->phase_fds[to] < 0)
		return err_set(e, -ENOENT, "the data directory has no " PODS_DIR "/%s",
			       phase_names[to]);
	if (renameat(ps->phase_fds[p->phase], p->uuid.text, ps->phase_fds[to], p->uuid.text) < 0)
		return errno == ENOENT ? POD_GONE
				       : err_sys(e, -errno, "cannot move pod \"%s\" to %s",
						 p->uuid.text, phase_names[to]);
	p->phase = to;
	if (p->durable && fsync(ps->phase_fds[to]) < 0)
		return err_sys(e, -errno, "cannot sync " PODS_DIR "/%s", phase_names[to]);
	return 0;
}

/* One attempt to make a locked pod in prepare; POD_GONE if a gc took the embryo away. */
static int create_once(struct pods *ps, bool durable, struct pod *ret, struct err *e)
{
	unsigned char bytes[UUID_BYTES];
	cleanup_pod struct pod p = POD_INIT;
	int r = random_bytes(bytes, sizeof(bytes));
	if (r < 0)
		return err_sys(e, r, "cannot get a UUID for the pod");
	uuid_from_random(bytes, &p.uuid);
	p.phase = POD_EMBRYO;
	int embryo = ps->phase_fds[POD_EMBRYO];
	if (mkdirat(embryo, p.uuid.text, POD_DIR_MODE) < 0)
		return err_sys(e, -errno, "cannot make a pod directory");
	p.fd = open_dir(embryo, p.uuid.text, false);
	if (p.fd < 0)
		return p.fd == -ENOENT ? POD_GONE : err_sys(e, p.fd, "pod \"%s\"", p.uuid.text);
	r = lock_exclusive(p.fd);
	if (r < 0)
		return err_sys(e, r, "cannot lock pod \"%s\"", p.uuid.text);
	p.locked = p.lock_is_ours = true;
	r = move_to(ps, &p, POD_PREPARE, e); /* not synced: nobody counts on it yet */
	p.durable = durable;
	if (r < 0)
		unlinkat(ps->phase_fds[p.phase], p.uuid.text, AT_REMOVEDIR);
	if (r != 0)
		return r;
	*ret = p;
	p = POD_INIT;
	return 0;
}

int pod_create(struct pods *ps, bool durable, struct pod *ret, struct err *e)
{
	for (int i = 0; i < CREATE_TRIES; i++) {
		int r = create_once(ps, durable, ret, e);
		if (r != POD_GONE)
			return r;
	}
	return err_set(e, -EAGAIN, "the new pod directory was taken away (is a gc looping?)");
}

int pod_open_in(struct pods *ps, enum pod_phase phase, const char *uuid, struct pod *ret,
		struct err *e)
{
	if (ps->phase_fds[phase] < 0)
		return POD_GONE;
	cleanup_pod struct pod p = POD_INIT;
	p.phase = phase;
	p.durable = true;
	if (str_copy(p.uuid.text, sizeof(p.uuid.text), uuid) < 0)
		return POD_GONE;
	p.fd = open_dir(ps->phase_fds[phase], uuid, false);
	if (p.fd < 0)
		return p.fd == -ENOENT ? POD_GONE : err_sys(e, p.fd, "pod \"%s\"", uuid);
	int r = lock_probe(p.fd);
	if (r < 0)
		return err_sys(e, r, "cannot probe the lock of pod \"%s\"", uuid);
	p.locked = r == LOCK_TAKEN;
	r = pod_check_place(ps, &p, e);
	if (r != 0)
		return r;
	*ret = p;
	p = POD_INIT;
	return 0;
}

int pod_open(struct pods *ps, const char *uuid, struct pod *ret, struct err *e)
{
	if (!uuid_is_valid(uuid))
		return POD_GONE;
	for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++) {
		int r = pod_open_in(ps, phase, uuid, ret, e);
		if (r != POD_GONE)
			return r;
	}
	return POD_GONE;
}

int pod_try_lock(struct pods *ps, struct pod *p, struct err *e)
{
	if (p->lock_is_ours)
		return 0;
	int r = lock_try_exclusive(p->fd);
	if (r < 0)
		return err_sys(e, r, "cannot lock pod \"%s\"", p->uuid.text);
	p->locked = true;
	if (r == LOCK_TAKEN)
		return POD_BUSY;
	p->lock_is_ours = true;
	r = pod_check_place(ps, p, e);
	if (r != 0) {
		lock_release(p->fd);
		p->locked = p->lock_is_ours = false;
	}
	return r;
}

int pod_lock(struct pods *ps, struct pod *p, struct err *e)
{
	int64_t deadline = clock_monotonic_ns() + POD_LOCK_WAIT_MS * NS_PER_MS;
	bool was_locked = p->locked;
	for (;;) {
		int r = pod_try_lock(ps, p, e);
		if (r != POD_BUSY || was_locked || clock_monotonic_ns() >= deadline)
			return r;
		r = pod_check_place(ps, p, e); /* a holder who does not pass moves it soon */
		if (r != 0)
			return r;
		nanosleep(&(struct timespec){ .tv_nsec = NS_PER_MS }, NULL);
	}
}

int pod_finish_prepare(struct pods *ps, struct pod *p, struct err *e)
{
	int r = move_to(ps, p, POD_PREPARED, e);
	if (r != 0)
		return r;
	r = lock_release(p->fd);
	if (r < 0)
		return err_sys(e, r, "cannot unlock pod \"%s\"", p->uuid.text);
	p->locked = p->lock_is_ours = false;
	return 0;
}

int pod_start(struct pods *ps, struct pod *p, struct err *e)
{
	return move_to(ps, p, POD_RUN, e);
}

int pod_mark_exited(struct pods *ps, struct pod *p, struct err *e)
{
	return move_to(ps, p, POD_EXITED_GARBAGE, e);
}

int pod_discard(struct pods *ps, struct pod *p, struct err *e)
{
	return move_to(ps, p, POD_GARBAGE, e);
}

/*
 * Empties the directory. As long as the manifest is there the pod is shown, so it goes last: a
 * crash in between leaves a directory that looks like a pod, or one that no listing speaks of.
 */
static int remove_content(int pod_fd)
{
	cleanup_dir DIR *dir = fd_list_dir(pod_fd);
	if (!dir)
		return -errno;
	for (;;) {
		errno = 0;
		struct dirent *de = readdir(dir);
		if (!de)
			break;
		const char *name = de->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    strcmp(name, POD_FILE_MANIFEST) == 0)
			continue;
		int r = rmtree(pod_fd, name);
		if (r < 0)
			return r;
	}
	return errno ? -errno : rmtree(pod_fd, POD_FILE_MANIFEST);
}

int pod_delete(struct pods *ps, struct pod *p, struct err *e)
{
	if (!p->lock_is_ours || (p->phase != POD_EXITED_GARBAGE && p->phase != POD_GARBAGE))
		return err_set(e, -EINVAL, "pod \"%s\" in phase %s cannot be deleted", p->uuid.text,
			       phase_names[p->phase]);
	int parent = ps->phase_fds[p->phase];
	int r = remove_content(p->fd);
	if (r == 0)
		r = rmtree(parent, p->uuid.text);
	if (r < 0)
		return err_sys(e, r, "cannot delete pod \"%s\"", p->uuid.text);
	if (p->durable && fsync(parent) < 0)
		return err_sys(e, -errno, "cannot sync " PODS_DIR "/%s", phase_names[p->phase]);
	return 0;
}

/* ---- listings ---- */

void pod_list_deinit(struct pod_list *l)
{
	if (!l)
		return;
	free(l->uuids);
	*l = POD_LIST_INIT;
}

static int list_add(struct pod_list *l, size_t max, const char *uuid)
{
	if (l->n >= max)
		return -E2BIG;
	if (!GROW(l->uuids, l->n))
		return -ENOMEM;
	return str_copy(l->uuids[l->n++].text, sizeof(l->uuids->text), uuid);
}

/* Adds the UUIDs of one phase directory. 0 or -errno. */
static int list_phase(int phase_fd, size_t max, struct pod_list *l)
{
	cleanup_dir DIR *dir = fd_list_dir(phase_fd);
	if (!dir)
		return -errno;
	for (;;) {
		errno = 0;
		struct dirent *de = readdir(dir);
		if (!de)
			return -errno;
		int r = uuid_is_valid(de->d_name) ? list_add(l, max, de->d_name) : 0;
		if (r < 0)
			return r;
	}
}

static int compare_uuids(const void *a, const void *b)
{
	return strcmp(((const struct uuid *)a)->text, ((const struct uuid *)b)->text);
}

/* Sorts; a pod that moved on during the listing was seen twice and is kept once. */
static void list_finish(struct pod_list *l)
{
	size_t kept = 0;
	if (l->n > 0)
		qsort(l->uuids, l->n, sizeof(*l->uuids), compare_uuids);
	for (size_t i = 0; i < l->n; i++)
		if (kept == 0 || compare_uuids(&l->uuids[kept - 1], &l->uuids[i]) != 0)
			l->uuids[kept++] = l->uuids[i];
	l->n = kept;
}

int pods_list(struct pods *ps, unsigned int phases, size_t max, struct pod_list *ret, struct err *e)
{
	CLEANUP(pod_list_deinit) struct pod_list l = POD_LIST_INIT;
	for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++) {
		int fd = pods_phase_fd(ps, phase);
		if (fd < 0 || !(phases & 1U << phase))
			continue;
		int r = list_phase(fd, max, &l);
		if (r == -E2BIG)
			return err_set(e, r, "more than %zu pods in the data directory", max);
		if (r < 0)
			return err_sys(e, r, "cannot list pods in phase %s", pod_phase_name(phase));
	}
	list_finish(&l);
	*ret = l;
	l = POD_LIST_INIT;
	return 0;
}
