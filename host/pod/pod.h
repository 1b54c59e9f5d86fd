/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pods as directories: the life cycle, without a daemon.
 *
 * A pod is a directory named by its UUID in one of the phase directories below DATA/pods; rename(2)
 * moves it on, flock(2) on the directory itself says whether somebody works on it. pod.c explains
 * the states and which transition is allowed from where.
 */
#ifndef HOST_POD_POD_H
#define HOST_POD_POD_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/macros.h"
#include "lib/base/uuid.h"

/* The directories below DATA/pods in the order in which a pod passes them. */
enum pod_phase {
	POD_EMBRYO,         /* made and locked by its creator; may become prepare or garbage */
	POD_PREPARE,        /* filled under the lock; may become prepared, run or garbage */
	POD_PREPARED,       /* complete, unlocked; may become run or garbage */
	POD_RUN,            /* the supervisor's; may become exited-garbage when it is unlocked */
	POD_EXITED_GARBAGE, /* may be read, and deleted under the lock */
	POD_GARBAGE,        /* may be deleted under the lock */
	POD_PHASE_COUNT_,
};

/* What a person sees: the phase refined by the lock. */
enum pod_state {
	POD_STATE_EMBRYO,          /* transient: not shown */
	POD_STATE_PREPARING,       /* somebody fills it: leave it alone */
	POD_STATE_ABORTED_PREPARE, /* its creator died: may be removed */
	POD_STATE_PREPARED,        /* may be run or removed */
	POD_STATE_RUNNING,         /* may be stopped; files other than stage1's do not change */
	POD_STATE_EXITED,          /* exit codes are final; may be removed */
	POD_STATE_EXITED_DELETING, /* somebody deletes it: files may be missing */
	POD_STATE_EXITED_GARBAGE,  /* exit codes are final; may be removed */
	POD_STATE_DELETING,        /* somebody deletes it: files may be missing */
	POD_STATE_GARBAGE,         /* never ran; may be deleted */
	POD_STATE_COUNT_,
};

/*
 * POD_GONE: the pod is not (any more) where the caller saw it; somebody else moved it on.
 * POD_BUSY: somebody else holds the pod's lock.
 */
enum {
	POD_GONE = 1,
	POD_BUSY = 2,
};

/* Most pods that one listing holds; a host runs out of memory for VMs long before. */
#define POD_LIST_MAX ((size_t)16384)

/* The pods of one data directory: descriptors of DATA/pods and its phase directories. */
struct pods;

/* One pod, opened. Owned by the caller, who may keep it longer than the struct pods. */
struct pod {
	struct uuid uuid;
	enum pod_phase phase; /* as last seen or last moved to by us */
	bool locked;          /* somebody holds the exclusive lock (maybe this process) */
	bool lock_is_ours;    /* this process holds it through @fd */
	bool durable;         /* what we do to it is synced, so that it survives a power cut */
	int fd;               /* of the directory; carries the lock */
};

#define POD_INIT ((struct pod){ .fd = -EBADF })

/* Closes the descriptor and so gives up a lock of ours. Accepts a POD_INIT pod and NULL. */
void pod_deinit(struct pod *p);

#define cleanup_pod CLEANUP(pod_deinit)

/* "embryo", "prepare", ...: the directory of a phase. */
const char *pod_phase_name(enum pod_phase phase);

/* The state that phase and lock make. Pure. */
enum pod_state pod_state_of(enum pod_phase phase, bool locked);

/* "running", "aborted prepare", ...: as `husk list` prints it. */
const char *pod_state_name(enum pod_state state);

/* True if a pod in @from may move to @to. Pure: the table of the life cycle. */
bool pod_transition_allowed(enum pod_phase from, enum pod_phase to);

/* Below the data directory: what stage1 keeps for all pods. */
#define PODS_CACHE_DIR "cache"

/*
 * Opens DATA/pods below the directory @data_fd (not consumed). With @create missing directories are
 * made, mode 0750, and PODS_CACHE_DIR, too; without, missing ones are taken for empty. With it,
 * -EACCES if DATA/pods is missing and DATA shared, for who is neither root nor its owner. -EPERM if
 * one of them is not as lib/data/datadir.h says. 0 or -errno and @e.
 */
int pods_open(int data_fd, bool create, struct pods **ret, struct err *e);

/* Accepts NULL. */
void pods_free(struct pods *ps);

static inline void cleanup_pods_(struct pods **ps)
{
	pods_free(*ps);
}

#define cleanup_pods CLEANUP(cleanup_pods_)

/* The descriptor of a phase directory, owned by @ps; -EBADF if the directory is not there. */
int pods_phase_fd(const struct pods *ps, enum pod_phase phase);

/*
 * Makes a pod: embryo, lock, prepare. *ret is empty, locked by us and in POD_PREPARE, mode 0750. A
 * pod that is run at once need not be @durable: a power cut ends it, and gc takes what is left of
 * it, in whatever phase. Only its manifest is synced, so that nobody ever reads half of one.
 * 0 or -errno and @e; nothing is left behind on failure but, after a crash, an embryo for gc.
 */
int pod_create(struct pods *ps, bool durable, struct pod *ret, struct err *e);

/*
 * Opens the pod @uuid wherever it is, in the order of the phases, so a pod that moves on meanwhile
 * is still found, and probes its lock. 0, POD_GONE if there is none, or -errno and @e.
 */
int pod_open(struct pods *ps, const char *uuid, struct pod *ret, struct err *e);

/* The same for one phase only: POD_GONE if it is not there. */
int pod_open_in(struct pods *ps, enum pod_phase phase, const char *uuid, struct pod *ret,
		struct err *e);

/* 0 if the pod is still where it was seen, POD_GONE if not, -errno and @e. */
int pod_check_place(struct pods *ps, const struct pod *p, struct err *e);

/*
 * Takes the exclusive lock if nobody holds any and the pod is still where it was seen. 0, POD_BUSY,
 * POD_GONE, -errno and @e.
 */
int pod_try_lock(struct pods *ps, struct pod *p, struct err *e);

/*
 * The same for a pod that nobody held when it was opened: waits up to POD_LOCK_WAIT_MS for holders
 * that pass, as listings do that probe it. POD_BUSY: somebody else works on it.
 */
#define POD_LOCK_WAIT_MS 2000
int pod_lock(struct pods *ps, struct pod *p, struct err *e);

/*
 * The transitions. Each needs our lock, except that pod_finish_prepare() gives it up afterwards.
 * The directory is renamed, the new parent synced (if durable), p->phase updated. 0; POD_GONE if
 * somebody else moved it first (the loser of a race stops quietly); -EINVAL and @e if the pod is in
 * a phase from which the transition is not allowed or not locked by us; -errno and @e.
 */
int pod_finish_prepare(struct pods *ps, struct pod *p, struct err *e); /* prepare -> prepared */
int pod_start(struct pods *ps, struct pod *p, struct err *e);       /* prepare, prepared -> run */
int pod_mark_exited(struct pods *ps, struct pod *p, struct err *e); /* run -> exited-garbage */
int pod_discard(struct pods *ps, struct pod *p, struct err *e); /* embryo..prepared -> garbage */

/*
 * Deletes a pod in POD_EXITED_GARBAGE or POD_GARBAGE that is locked by us, with everything in it,
 * the manifest last. Can be repeated after a crash or failure. 0, -EINVAL as above, -errno and @e.
 */
int pod_delete(struct pods *ps, struct pod *p, struct err *e);

struct pod_list {
	struct uuid *uuids; /* owned, sorted, no duplicates */
	size_t n;
};

#define POD_LIST_INIT ((struct pod_list){ 0 })

/* Accepts an empty list. */
void pod_list_deinit(struct pod_list *l);

/*
 * The UUIDs in the phases of the bit set @phases (1 << POD_RUN ...). Names that are not UUIDs are
 * skipped. @max is POD_LIST_MAX or less. 0, -E2BIG and @e beyond @max, -errno and @e.
 */
int pods_list(struct pods *ps, unsigned int phases, size_t max, struct pod_list *ret,
	      struct err *e);

/* The phases that users address: all but embryo and garbage. */
#define POD_PHASES_VISIBLE \
	(1U << POD_PREPARE | 1U << POD_PREPARED | 1U << POD_RUN | 1U << POD_EXITED_GARBAGE)

#endif
