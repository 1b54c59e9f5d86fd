/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marking is a rename and cheap; sweeping deletes. What was marked stays readable for a grace
 * period, counted from the mark: rename(2) sets the directory's change time. The order in one run
 * is that of the life cycle, so that a run without grace deletes what it has just marked.
 *
 * stage1 cleans up outside of the pod directory twice: when the pod is marked, so that addresses of
 * a pod that a reboot of the host ended are free at once, and before the pod is deleted, which has
 * to wait until that works: what stage1 needs for it is in the pod directory.
 *
 * A step that finds the pod locked (POD_BUSY) or moved on (POD_GONE) has lost a race: the winner
 * does the work.
 */
#include "host/pod/gc.h"

#include <errno.h>
#include <sys/stat.h>

#include "host/launch/abi.h"
#include "lib/os/clock.h"

static void tell_failure(const struct gc *gc, const struct pod *p, const struct err *e)
{
	gc->tell(gc->ctx, GC_FAILED, p, e);
}

typedef int (*move_fn)(struct pods *ps, struct pod *p, struct err *e);

/* Moves a pod that nobody holds. The lock is ours afterwards. 0, POD_BUSY, POD_GONE, -errno, @e. */
static int take_and_move(struct pods *ps, struct pod *p, move_fn move, struct err *e)
{
	int r = pod_try_lock(ps, p, e);
	return r != 0 ? r : move(ps, p, e);
}

/* Since when the pod has been where it is; -1 if that cannot be read. */
static int64_t age_ns(const struct gc *gc, const struct pod *p)
{
	struct stat st;
	if (fstat(p->fd, &st) < 0)
		return -1;
	int64_t age = gc->now_ns - ((int64_t)st.st_ctim.tv_sec * NS_PER_SEC + st.st_ctim.tv_nsec);
	return age < 0 ? 0 : age; /* the clock was set back */
}

int pod_stage1_gc(const struct pod *p, const struct stage1 *s, bool stays, bool debug,
		  struct err *e)
{
	cleanup_strv struct strv args;
	strv_init(&args, ABI_ARGS_MAX);
	if (!s->gc[0] || (stays && s->abi != STAGE1_ABI_HUSK))
		return 0;
	int r = abi_gc_args(p->uuid.text, stays, debug, &args);
	return r < 0 ? err_sys(e, r, "arguments of stage1") : stage1_call(s->gc, p->fd, &args, e);
}

/* With our lock. 0, or -errno and @e. */
static int clean_up(const struct gc *gc, const struct pod *p, bool stays, struct err *e)
{
	struct err why = ERR_INIT;
	int r = gc->stage1_gc(gc->ctx, p, stays, &why);
	return r < 0 ? err_set(e, r,
			       "%s: the pod is kept until that works (husk gc and husk rm try "
			       "again)",
			       why.text)
		     : 0;
}

/* ---- mark ---- */

/* A pod that this run deletes, which has no grace, is cleaned up then. */
static int clean_up_exited(const struct gc *gc, const struct pod *p, struct err *e)
{
	return gc->mark_only || gc->grace_ns > 0 ? clean_up(gc, p, true, e) : 0;
}

static void mark(const struct gc *gc, struct pod *p, move_fn move, enum gc_event event)
{
	struct err e = ERR_INIT;
	int r = take_and_move(gc->ps, p, move, &e);
	if (r == 0) {
		gc->tell(gc->ctx, event, p, NULL);
		if (event == GC_MARKED_EXITED)
			r = clean_up_exited(gc, p, &e);
	}
	if (r < 0)
		tell_failure(gc, p, &e);
}

static void mark_pod(const struct gc *gc, struct pod *p)
{
	if (p->locked)
		return;
	switch (p->phase) {
	case POD_EMBRYO:
	case POD_PREPARE:
		mark(gc, p, pod_discard, GC_MARKED_ABORTED);
		return;
	case POD_PREPARED:
		if (age_ns(gc, p) >= gc->expire_ns)
			mark(gc, p, pod_discard, GC_MARKED_EXPIRED);
		return;
	case POD_RUN:
		mark(gc, p, pod_mark_exited, GC_MARKED_EXITED);
		return;
	case POD_EXITED_GARBAGE:
	case POD_GARBAGE:
	case POD_PHASE_COUNT_:
		return;
	}
}

/* ---- sweep ---- */

/* Deletes a pod in exited-garbage or garbage whose lock is ours. */
static int delete_locked(const struct gc *gc, struct pod *p, struct err *e)
{
	int r = p->phase == POD_EXITED_GARBAGE ? clean_up(gc, p, false, e) : 0;
	return r < 0 ? r : pod_delete(gc->ps, p, e);
}

static void sweep_pod(const struct gc *gc, struct pod *p)
{
	struct err e = ERR_INIT;
	if (p->locked)
		return;
	if (p->phase == POD_EXITED_GARBAGE && age_ns(gc, p) < gc->grace_ns) {
		gc->tell(gc->ctx, GC_KEPT, p, NULL);
		return;
	}
	int r = pod_try_lock(gc->ps, p, &e);
	if (r == 0) {
		gc->tell(gc->ctx, GC_COLLECTING, p, NULL);
		r = delete_locked(gc, p, &e);
	}
	if (r < 0)
		tell_failure(gc, p, &e);
}

/* Calls @fn for each pod of @phase that is still there. */
static int for_each(const struct gc *gc, enum pod_phase phase,
		    void (*fn)(const struct gc *gc, struct pod *p), struct err *e)
{
	CLEANUP(pod_list_deinit) struct pod_list list = POD_LIST_INIT;
	int r = pods_list(gc->ps, 1U << phase, POD_LIST_MAX, &list, e);
	for (size_t i = 0; r == 0 && i < list.n; i++) {
		struct err why = ERR_INIT;
		cleanup_pod struct pod p = POD_INIT;
		int opened = pod_open_in(gc->ps, phase, list.uuids[i].text, &p, &why);
		p.durable = false; /* what a power cut takes back, the next gc does again */
		if (opened == 0) {
			fn(gc, &p);
		} else if (opened < 0) {
			p.uuid = list.uuids[i];
			tell_failure(gc, &p, &why);
		}
	}
	return r;
}

int pods_gc(const struct gc *gc, struct err *e)
{
	int r = 0;
	for (enum pod_phase phase = POD_EMBRYO; r == 0 && phase <= POD_RUN; phase++)
		r = for_each(gc, phase, mark_pod, e);
	if (gc->mark_only)
		return r;
	for (enum pod_phase phase = POD_EXITED_GARBAGE; r == 0 && phase <= POD_GARBAGE; phase++)
		r = for_each(gc, phase, sweep_pod, e);
	return r;
}

/* ---- rm ---- */

/* Who lost a race says what the winner does. */
static int gc_refuse(const struct pod *p, enum pod_phase phase, struct err *e)
{
	const char *what = "being deleted";
	if (phase == POD_RUN)
		what = "running";
	else if (phase == POD_EMBRYO || phase == POD_PREPARE)
		what = "being prepared";
	else if (phase == POD_PREPARED)
		what = "being started";
	return err_set(e, -EBUSY, "pod \"%s\" is currently %s", p->uuid.text, what);
}

int pod_remove(const struct gc *gc, struct pod *p, struct err *e)
{
	enum pod_phase phase = p->phase;
	int r = pod_lock(gc->ps, p, e);
	if (r == 0 && phase == POD_RUN)
		r = pod_mark_exited(gc->ps, p, e);
	else if (r == 0 && phase < POD_RUN)
		r = pod_discard(gc->ps, p, e);
	if (r == POD_GONE)
		return gc_refuse(p, POD_GARBAGE, e);
	if (r == POD_BUSY)
		return gc_refuse(p, phase, e);
	if (r == 0 && (r = delete_locked(gc, p, e)) < 0)
		err_context(e, "pod \"%s\"", p->uuid.text);
	return r;
}
