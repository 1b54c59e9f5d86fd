/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inotify(7) says where to look, never what has happened: whatever it reports about a pod makes the
 * pod due for a look, and event_state.c finds out what is new. So a report that comes late, twice
 * or too much does no harm, and if the kernel's queue overflows, every pod is due.
 *
 * Watched are the phase directories, for the whole time, and of each pod in run that is not over
 * its directory and status/ in it. A watch comes before the look that it is for, so that nothing
 * falls in between. Only what a rename into a phase says is kept besides (passed), because the next
 * rename hides it.
 *
 * The end of a pod is the release of its lock, of which nobody tells. But the lock is the
 * supervisor's, whose number is in the file pid, and a pidfd tells of the end of a process. A
 * process of that number is the supervisor if the lock is still held once the pidfd is open. Where
 * there is no such pidfd, the pod is looked at every POD_EVENTS_POLL_MS: in the moment before the
 * supervisor has written its number; between its end and that of a child that it was just about to
 * start; if it is in another PID namespace; if there are no descriptors left.
 *
 * What is kept of a pod, by its place:
 *
 *   prepare         nothing: it is not complete
 *   prepared        what was told
 *   run             that, and watches, and a pidfd unless it is polled
 *   run, over       what was told; its files do not change any more
 *   exited-garbage  the same
 *   elsewhere       nothing: it is forgotten
 */
#include "host/events/events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/events/event_files.h"
#include "host/pod/info.h"
#include "lib/os/clock.h"
#include "lib/os/dirwatch.h"
#include "lib/os/fd.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"

#define BIT(n) (1U << (n))

/*
 * What is watched in DATA/pods, in the directories of phases and of pods, and in status/ of pods.
 */
#define PODS_MASK  (IN_DELETE | IN_MOVED_FROM)
#define PHASE_MASK (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE)
#define POD_MASK   (IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE)
#define APPS_MASK  (IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM)

/* Kinds of watches; those of phases are the phases. */
enum {
	WATCH_PODS = POD_PHASE_COUNT_,
	WATCH_POD,
	WATCH_APPS,
};

/* One pod. */
struct subject {
	struct pod_events *pe;
	struct uuid uuid;
	struct pod_told told;
	unsigned int passed; /* bit set of phases that it came into since the last look */
	int pod_wd, apps_wd;
	int pidfd;
	struct loop_watch pid_watch;
	bool leaderless; /* the process of that number has ended, whoever holds the lock */
	bool polled;
	bool problem; /* it was told that it cannot be read */
	bool due;
	struct subject *next_due;
};

struct pod_events {
	struct loop *loop;
	struct pods *ps;
	struct pod_events_request q;
	struct uuid only; /* what q.only points to */
	bool silent;      /* the first look, without replay */
	bool over;
	struct err failure;
	struct dirwatch dirs;
	struct loop_watch dirs_watch;
	struct loop_timer poll;
	struct subject **subjects; /* owned, sorted by UUID */
	size_t n_subjects;
	struct subject *due, **last_due; /* in the order in which they became due */
	struct pod_seen seen;            /* of the present look */
	struct pod_event_batch batch;
};

static void events_finish(struct pod_events *pe)
{
	pe->over = true;
	loop_quit(pe->loop);
}

/* The first failure counts. */
static void events_fail(struct pod_events *pe, const struct err *e)
{
	if (pe->failure.code == 0)
		pe->failure = *e;
	events_finish(pe);
}

/* Fills @e for a watch on @what that failed with @r. */
static int watch_error(struct err *e, int r, const char *what)
{
	if (r == -ENOSPC)
		return err_set(e, r,
			       "cannot watch %s: the user's inotify watches are used up (raise "
			       "the sysctl fs.inotify.max_user_watches)",
			       what);
	if (r == -EMFILE || r == -ENFILE)
		return err_set(e, r,
			       "cannot watch %s: too many open files or inotify instances (raise "
			       "ulimit -n or the sysctl fs.inotify.max_user_instances)",
			       what);
	return err_sys(e, r, "cannot watch %s", what);
}

/* True for failures that will meet the other pods, too. */
static bool concerns_all(int r)
{
	return r == -ENOSPC || r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

/* ---- the table of pods ---- */

/* Where the pod @uuid is, or would be. */
static size_t place_of(const struct pod_events *pe, const char *uuid)
{
	size_t low = 0, high = pe->n_subjects;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (strcmp(pe->subjects[mid]->uuid.text, uuid) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void unwatch(struct subject *s)
{
	dirwatch_drop(&s->pe->dirs, &s->pod_wd);
	dirwatch_drop(&s->pe->dirs, &s->apps_wd);
	loop_watch_remove(&s->pid_watch);
	s->pidfd = fd_close(s->pidfd);
	s->polled = false;
}

static void free_subject(struct subject *s)
{
	unwatch(s);
	pod_told_deinit(&s->told);
	free(s);
}

/* Takes the pod, which is not due, out of the table. */
static void events_forget(struct subject *s)
{
	struct pod_events *pe = s->pe;
	size_t at = place_of(pe, s->uuid.text);
	pe->n_subjects--;
	memmove(&pe->subjects[at], &pe->subjects[at + 1],
		(pe->n_subjects - at) * sizeof(struct subject *));
	free_subject(s);
}

/* Adds the pod @uuid at @at. NULL if memory is short. */
static struct subject *add_subject(struct pod_events *pe, const char *uuid, size_t at)
{
	size_t n = pe->n_subjects;
	cleanup_free struct subject *s = calloc(1, sizeof(*s));
	if (!s || !GROW(pe->subjects, n))
		return NULL;
	s->pe = pe;
	s->pod_wd = s->apps_wd = DIRWATCH_NONE;
	s->pidfd = -EBADF;
	s->pid_watch = LOOP_WATCH_INIT;
	str_copy(s->uuid.text, sizeof(s->uuid.text), uuid);
	memmove(&pe->subjects[at + 1], &pe->subjects[at], (n - at) * sizeof(struct subject *));
	pe->subjects[at] = s;
	pe->n_subjects++;
	return TAKE_PTR(s);
}

/* The pod @uuid, new if need be. NULL if the watcher has failed. */
static struct subject *get_subject(struct pod_events *pe, const char *uuid)
{
	struct err e = ERR_INIT;
	size_t at = place_of(pe, uuid);
	if (at < pe->n_subjects && strcmp(pe->subjects[at]->uuid.text, uuid) == 0)
		return pe->subjects[at];
	struct subject *s = NULL;
	if (pe->n_subjects >= pe->q.max)
		err_set(&e, -E2BIG, "more than %zu pods in the data directory", pe->q.max);
	else if (!(s = add_subject(pe, uuid, at)))
		err_sys(&e, -ENOMEM, "cannot watch pod \"%s\"", uuid);
	if (!s)
		events_fail(pe, &e);
	return s;
}

static void make_due(struct subject *s)
{
	struct pod_events *pe = s->pe;
	if (s->due)
		return;
	s->due = true;
	s->next_due = NULL;
	*pe->last_due = s;
	pe->last_due = &s->next_due;
}

static struct subject *take_due(struct pod_events *pe)
{
	struct subject *s = pe->due;
	pe->due = s->next_due;
	if (!pe->due)
		pe->last_due = &pe->due;
	s->due = false;
	return s;
}

/* ---- telling ---- */

/* Tells what pe->seen has of the pod, and gives up what is not needed any more. 0 or -ENOMEM. */
static int events_tell(struct subject *s)
{
	struct pod_events *pe = s->pe;
	bool there = pe->seen.there, over = pe->seen.over || !there;
	int r = pod_told_update(&s->told, &pe->seen, &pe->batch);
	if (r < 0)
		return r;
	for (size_t i = 0; i < pe->batch.n && !pe->silent && !pe->over; i++)
		if (pe->q.event(pe->q.ctx, &s->uuid, &pe->batch.v[i]) != 0)
			events_finish(pe);
	if (over)
		unwatch(s);
	if (over && pe->q.only)
		events_finish(pe);
	if (!there)
		events_forget(s);
	return 0;
}

static void poll_pod(struct subject *s);

/* What concerns all pods ends the watcher; what concerns one is told once. */
static void tell_problem(struct subject *s, int r)
{
	struct pod_events *pe = s->pe;
	struct err e = ERR_INIT;
	char what[UUID_TEXT_LEN + 16];
	/* What is short now may not be so later, and who watches this pod alone goes by its end. */
	if ((r == -EMFILE || r == -ENFILE) && pe->q.only && s->told.looked) {
		poll_pod(s);
		return;
	}
	snprintf(what, sizeof(what), "pod \"%s\"", s->uuid.text);
	if (r == OBSERVE_APPS)
		err_set(&e, -E2BIG, "%s has more than %zu apps: the others are not watched", what,
			POD_SEEN_APPS_MAX);
	else
		watch_error(&e, r, what);
	if (r < 0 && (concerns_all(r) || pe->q.only))
		events_fail(pe, &e);
	else if (!s->problem)
		pe->q.problem(pe->q.ctx, &e);
	s->problem = true;
}

/* ---- a look ---- */

/* Opens the pod where users can address it. 0; POD_GONE; -errno. */
static int open_place(struct pods *ps, const char *uuid, enum pod_phase *ret_phase, int *ret_fd)
{
	for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++) {
		if (!(POD_PHASES_VISIBLE & BIT(phase)))
			continue;
		int fd = openat(pods_phase_fd(ps, phase), uuid,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue; /* it moves on in the order of the phases, so it is met */
		*ret_phase = phase;
		*ret_fd = fd;
		return fd < 0 ? -errno : 0;
	}
	return POD_GONE;
}

static void look_at_due(struct pod_events *pe);

/* The supervisor has ended: the lock is free now, or will be. */
static void on_pidfd(void *ctx, uint32_t events)
{
	struct subject *s = ctx;
	(void)events;
	s->leaderless = true;
	loop_watch_remove(&s->pid_watch);
	s->pidfd = fd_close(s->pidfd);
	make_due(s);
	look_at_due(s->pe);
}

/* Without a pidfd the pod is polled. */
static void open_pidfd(struct subject *s, int pod_fd)
{
	uint64_t pid;
	if (s->pidfd >= 0 || s->leaderless ||
	    pod_file_number(pod_fd, POD_FILE_PID, INT_MAX, &pid) < 0 || pid < 2)
		return;
	s->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0); /* close-on-exec of its own */
	if (s->pidfd < 0 ||
	    loop_watch_add(s->pe->loop, &s->pid_watch, s->pidfd, EPOLLIN, on_pidfd, s) < 0)
		s->pidfd = fd_close(s->pidfd);
}

static int watch_once(struct subject *s, int *wd, int fd, uint32_t mask, int kind)
{
	if (*wd != DIRWATCH_NONE)
		return 0;
	int r = dirwatch_add(&s->pe->dirs, fd, mask, s, kind);
	if (r < 0)
		return r;
	*wd = r;
	return 0;
}

/* Watches a pod in run. 0 or -errno. One without status/ has no apps to tell about. */
static int watch_pod(struct subject *s, int pod_fd)
{
	int r = watch_once(s, &s->pod_wd, pod_fd, POD_MASK, WATCH_POD);
	if (r < 0 || s->apps_wd != DIRWATCH_NONE)
		return r;
	cleanup_fd int fd =
		openat(pod_fd, POD_DIR_STATUS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return watch_once(s, &s->apps_wd, fd, APPS_MASK, WATCH_APPS);
}

static void on_poll(void *ctx);

static void poll_pod(struct subject *s)
{
	struct pod_events *pe = s->pe;
	s->polled = true;
	if (!pe->poll.loop)
		loop_timer_arm(pe->loop, &pe->poll,
			       clock_monotonic_ns() + POD_EVENTS_POLL_MS * NS_PER_MS, on_poll, pe);
}

/*
 * A pod in run: first it is watched, then the lock is probed; the caller reads the files after
 * that, so that what is read of a pod that is over is all that there will be. 0 or -errno.
 */
static int watch_run(struct subject *s, int pod_fd, bool *ret_over)
{
	int r = watch_pod(s, pod_fd);
	if (r < 0)
		return r;
	*ret_over = false;
	if (s->pidfd >=
	    0) /* then it holds the lock; probing that would only stand in others' way */
		return 0;
	open_pidfd(s, pod_fd);
	r = lock_probe(pod_fd);
	if (r < 0)
		return r;
	if (r > 0 && s->pidfd < 0)
		poll_pod(s);
	*ret_over = r == 0;
	return 0;
}

/*
 * A pod in prepare, which may never leave it if its creator is dead: one who waits for it is told.
 */
static int look_at_prepare(struct subject *s, int pod_fd)
{
	if (!s->pe->q.only)
		return 0;
	int r = lock_probe(pod_fd);
	if (r > 0)
		poll_pod(s);
	else if (r == 0)
		events_finish(s->pe);
	return MIN(r, 0);
}

/* Reads the pod that is open as @pod_fd and tells what is new. 0, OBSERVE_APPS, -errno. */
static int look_at_place(struct subject *s, enum pod_phase phase, int pod_fd)
{
	struct pod_seen *seen = &s->pe->seen;
	seen->there = true;
	seen->over = phase == POD_EXITED_GARBAGE;
	if (phase == POD_PREPARE)
		return look_at_prepare(s, pod_fd);
	int r = phase == POD_RUN ? watch_run(s, pod_fd, &seen->over) : 0;
	int observed = r < 0 ? r : pod_observe(pod_fd, seen);
	if (observed < 0)
		return observed;
	if (seen->created_ns == 0 && phase == POD_EXITED_GARBAGE && !s->told.looked)
		return 0; /* deleted, but for the directory */
	if (seen->created_ns == 0)
		seen->created_ns = seen->changed_ns;
	seen->phases = s->passed | BIT(phase);
	s->passed = 0;
	r = events_tell(s);
	return r < 0 ? r : observed;
}

static int events_look(struct subject *s)
{
	enum pod_phase phase = POD_PREPARE;
	cleanup_fd int fd = -EBADF;
	struct pod_seen *seen = &s->pe->seen;
	s->polled = false;
	int r = open_place(s->pe->ps, s->uuid.text, &phase, &fd);
	if (r == 0)
		return look_at_place(s, phase, fd);
	if (r < 0)
		return r;
	seen->there = seen->over = false;
	seen->phases = s->passed;
	seen->n_apps = 0;
	seen->now_ns = clock_realtime_ns();
	return events_tell(s);
}

static void look_at_due(struct pod_events *pe)
{
	while (pe->due && !pe->over) {
		struct subject *s = take_due(pe);
		int r = events_look(s);
		if (r != 0) /* then it is not forgotten */
			tell_problem(s, r);
	}
}

void pod_events_look(struct pod_events *pe)
{
	for (size_t i = 0; i < pe->n_subjects; i++)
		if (pe->subjects[i]->polled)
			make_due(pe->subjects[i]);
	look_at_due(pe);
}

static void on_poll(void *ctx)
{
	pod_events_look(ctx);
}

/* ---- changes ---- */

/* Every pod that is there or was there is due. */
static void make_all_due(struct pod_events *pe)
{
	struct err e = ERR_INIT;
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	if (!pe->q.only && pods_list(pe->ps, POD_PHASES_VISIBLE, pe->q.max, &list, &e) < 0)
		events_fail(pe, &e);
	for (size_t i = 0; i < list.n; i++)
		if (!get_subject(pe, list.uuids[i].text))
			return;
	if (pe->q.only && !get_subject(pe, pe->only.text))
		return;
	for (size_t i = 0; i < pe->n_subjects; i++)
		make_due(pe->subjects[i]);
}

static void on_phase(struct pod_events *pe, enum pod_phase phase, uint32_t mask, const char *name)
{
	if (!uuid_is_valid(name) || (pe->q.only && strcmp(name, pe->only.text) != 0))
		return;
	struct subject *s = get_subject(pe, name);
	if (!s)
		return;
	if (mask & (IN_MOVED_TO | IN_CREATE))
		s->passed |= BIT(phase);
	make_due(s);
}

/* A phase directory that is deleted says nothing itself as long as we have it open. */
static void on_pods(struct pod_events *pe, const char *name)
{
	struct err e = ERR_INIT;
	for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++)
		if (strcmp(name, pod_phase_name(phase)) == 0) {
			err_set(&e, -ENOENT, "the directory pods/%s of the data directory is gone",
				name);
			events_fail(pe, &e);
		}
}

static void on_change(void *ctx, const struct dirwatch_entry *entry, uint32_t mask,
		      const char *name)
{
	struct pod_events *pe = ctx;
	if (!entry) {
		make_all_due(pe);
		return;
	}
	if (entry->kind < POD_PHASE_COUNT_) {
		on_phase(pe, (enum pod_phase)entry->kind, mask, name);
		return;
	}
	if (entry->kind == WATCH_PODS) {
		on_pods(pe, name);
		return;
	}
	struct subject *s = entry->owner;
	if (mask & IN_IGNORED)
		*(entry->kind == WATCH_POD ? &s->pod_wd : &s->apps_wd) = DIRWATCH_NONE;
	/* Disks, logs and sockets of the pod, and temporary files, say nothing. */
	if (mask & IN_IGNORED || (entry->kind == WATCH_APPS && name[0] != '.') ||
	    strcmp(name, POD_FILE_PID) == 0 || strcmp(name, POD_FILE_READY) == 0 ||
	    strcmp(name, POD_FILE_DISK_FULL) == 0 || strcmp(name, POD_FILE_SUSPENDED) == 0 ||
	    strcmp(name, POD_DIR_STATUS) == 0)
		make_due(s);
}

static void on_dirs(void *ctx, uint32_t events)
{
	struct pod_events *pe = ctx;
	struct err e = ERR_INIT;
	(void)events;
	int r = dirwatch_read(&pe->dirs, on_change, pe);
	if (r < 0) {
		err_sys(&e, r, "cannot read changes of the data directory");
		events_fail(pe, &e);
	}
	look_at_due(pe);
}

/* ---- life ---- */

static int watch_phases(struct pod_events *pe, struct err *e)
{
	int r = dirwatch_init(&pe->dirs);
	cleanup_fd int parent =
		openat(pods_phase_fd(pe->ps, POD_RUN), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0)
		r = parent < 0 ? -errno
			       : dirwatch_add(&pe->dirs, parent, PODS_MASK, NULL, WATCH_PODS);
	for (enum pod_phase phase = 0; r >= 0 && phase < POD_PHASE_COUNT_; phase++)
		if (POD_PHASES_VISIBLE & BIT(phase))
			r = dirwatch_add(&pe->dirs, pods_phase_fd(pe->ps, phase), PHASE_MASK, NULL,
					 (int)phase);
	if (r >= 0)
		r = loop_watch_add(pe->loop, &pe->dirs_watch, pe->dirs.fd, EPOLLIN, on_dirs, pe);
	return r < 0 ? watch_error(e, r, "the data directory") : 0;
}

static void cleanup_events_(struct pod_events **pe)
{
	pod_events_free(*pe);
}

int pod_events_new(struct loop *l, struct pods *ps, const struct pod_events_request *q,
		   struct pod_events **ret, struct err *e)
{
	CLEANUP(cleanup_events_) struct pod_events *pe = calloc(1, sizeof(*pe));
	if (!pe)
		return err_sys(e, -ENOMEM, "cannot watch pods");
	pe->loop = l;
	pe->ps = ps;
	pe->q = *q;
	pe->last_due = &pe->due;
	pe->dirs_watch = LOOP_WATCH_INIT;
	if (q->only) {
		pe->only = *q->only;
		pe->q.only = &pe->only;
	}
	int r = watch_phases(pe, e);
	if (r < 0)
		return r;
	pe->silent = !q->replay;
	make_all_due(pe);
	look_at_due(pe);
	pe->silent = false;
	if (!pe->over && pe->q.live(pe->q.ctx) != 0)
		events_finish(pe);
	*ret = TAKE_PTR(pe);
	return 0;
}

void pod_events_free(struct pod_events *pe)
{
	if (!pe)
		return;
	for (size_t i = 0; i < pe->n_subjects; i++)
		free_subject(pe->subjects[i]);
	free(pe->subjects);
	loop_timer_disarm(&pe->poll);
	loop_watch_remove(&pe->dirs_watch);
	dirwatch_deinit(&pe->dirs);
	free(pe);
}

bool pod_events_are_over(const struct pod_events *pe)
{
	return pe->over;
}

int pod_events_result(const struct pod_events *pe, struct err *e)
{
	if (pe->failure.code < 0 && e)
		*e = pe->failure;
	return pe->failure.code;
}
