/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of one pod under every interleaving: an explorer of a model.
 *
 * The model is the pod's place, its content and its lock, and actors whose steps are the system
 * calls of pod.c, gc.c and run.c that matter between processes: open, probe, lock, look at the
 * place, rename, write, delete. Which rename is allowed is asked of the real table
 * (pod_transition_allowed()), what a listing makes of what it sees of the real pod_state_of(). From
 * each reachable state every actor takes its next step, or is killed, which gives its locks back.
 * Checked in every state:
 *
 *   - a pod in run or in the hands of somebody who prepares it is never moved or deleted by
 *     another,
 *   - nobody supervises a pod that is elsewhere than in run, and never two do,
 *   - content is deleted only in garbage and exited-garbage, under the lock; the manifest goes
 *     last,
 *   - a pod that is prepared or runs is complete,
 *   - a listing has no reason to complain,
 *
 * and where all actors have ended or were killed: one more collection leaves nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/pod/pod.h"
#include "tests/support/fixture.h"

#define NOWHERE    POD_PHASE_COUNT_ /* not made yet, or deleted */
#define ACTORS_MAX 3
#define NOBODY     0xff
#define SEEN_SIZE  (1u << 22) /* slots of the hash table: ten times what the largest run needs */

enum program {
	RUN,          /* husk run */
	PREPARE,      /* husk prepare, which may also fail and take the pod back */
	RUN_PREPARED, /* husk run-prepared */
	RM,           /* husk rm */
	GC,           /* husk gc --grace-period=0 --expire-prepared=0 */
	LIST,         /* husk list, or status */
	PROGRAM_COUNT_,
};

static const char *const program_names[PROGRAM_COUNT_] = { "run", "prepare", "run-prepared",
							   "rm",  "gc",      "list" };

/* Where an actor is in its program. */
enum step {
	MAKE,
	OPEN_EMBRYO,
	LOCK_EMBRYO,
	TO_PREPARE,
	WRITE_CONTENT,
	WRITE_MANIFEST,
	FINISH,    /* prepare -> run or prepared */
	TAKE_BACK, /* prepare -> garbage, after a failure */
	UNLOCK,
	SUPERVISE,
	FIND,  /* opens the pod in the phase that it looks at, or goes to the next */
	PROBE, /* takes the shared lock, if nobody has the exclusive one */
	PROBE_END,
	PLACE, /* still where it was opened? */
	DECIDE,
	TRY_LOCK,
	PLACE_LOCKED,
	MOVE,
	DELETE_CONTENT,
	DELETE_MANIFEST,
	DELETE_DIR,
	READ, /* of a listing: the manifest */
	PLACE_READ,
	DONE,
};

struct actor {
	uint8_t program, step;
	uint8_t look;   /* FIND: the phase looked at */
	uint8_t seen;   /* the phase in which it has the directory open */
	uint8_t locked; /* what the probe said */
	uint8_t tries;
};

struct world {
	uint8_t place; /* enum pod_phase or NOWHERE */
	uint8_t made;
	uint8_t content, manifest;
	uint8_t owner;  /* of the exclusive lock: an actor or NOBODY */
	uint8_t shared; /* how many hold the shared lock */
	uint8_t n_actors;
	struct actor actors[ACTORS_MAX];
};

static struct world *seen;
static uint8_t *used;
static size_t n_states, n_ends;
static struct world trail[512];

static void violated(const struct world *w, size_t depth, const char *what)
{
	for (size_t i = 0; i <= depth; i++) {
		const struct world *t = i == depth ? w : &trail[i];
		printf("%2zu: place %d content %d manifest %d owner %d shared %d:", i, t->place,
		       t->content, t->manifest, t->owner == NOBODY ? -1 : t->owner, t->shared);
		for (size_t a = 0; a < t->n_actors; a++)
			printf("  %s step %d seen %d", program_names[t->actors[a].program],
			       t->actors[a].step, t->actors[a].seen);
		printf("\n");
	}
	fail_msg("%s", what);
}

/* ---- what holds always ---- */

static bool holds_pod(const struct world *w, size_t i)
{
	return w->owner == i;
}

static void check_world(const struct world *w, size_t depth)
{
	int supervisors = 0;
	for (size_t i = 0; i < w->n_actors; i++) {
		if (w->actors[i].step != SUPERVISE)
			continue;
		supervisors++;
		if (w->place != POD_RUN || !holds_pod(w, i))
			violated(w, depth,
				 "supervised, and not in run under the supervisor's lock");
	}
	if (supervisors > 1)
		violated(w, depth, "two supervisors");
	if ((w->place == POD_PREPARED || w->place == POD_RUN) && (!w->content || !w->manifest))
		violated(w, depth, "not complete");
	if (w->owner != NOBODY && w->shared > 0)
		violated(w, depth, "the model's lock is wrong");
}

static void move(struct world *w, size_t i, enum pod_phase to, size_t depth)
{
	if (!holds_pod(w, i))
		violated(w, depth, "moved without the lock");
	if (!pod_transition_allowed((enum pod_phase)w->place, to))
		violated(w, depth, "a transition that the table does not allow");
	w->place = (uint8_t)to;
	w->actors[i].seen = (uint8_t)to;
}

static void release(struct world *w, size_t i)
{
	if (w->owner == i)
		w->owner = NOBODY;
}

static void end(struct world *w, size_t i)
{
	struct actor *a = &w->actors[i];
	if (a->step == PROBE_END)
		w->shared--;
	release(w, i);
	a->step = DONE;
	a->look = a->seen = a->locked = a->tries = 0; /* the same end, however it came */
}

/* On to the next phase of a search or of a collection, or the end. */
static void next_phase(struct world *w, size_t i)
{
	struct actor *a = &w->actors[i];
	release(w, i);
	a->step = FIND;
	a->seen = a->locked = a->tries = 0;
	if (++a->look == POD_PHASE_COUNT_)
		end(w, i);
}

/* ---- the steps; each returns how many ways there are to take it, @way chooses ---- */

static bool can_lock(const struct world *w)
{
	return w->owner == NOBODY && w->shared == 0;
}

static unsigned maker_step(struct world *w, size_t i, unsigned way, size_t depth)
{
	struct actor *a = &w->actors[i];
	switch (a->step) {
	case MAKE:
		w->place = POD_EMBRYO;
		w->made = 1;
		a->step = OPEN_EMBRYO;
		return 1;
	case OPEN_EMBRYO:
		if (w->place == POD_EMBRYO)
			a->step = LOCK_EMBRYO;
		else
			end(w, i); /* and it tries again with another UUID */
		return 1;
	case LOCK_EMBRYO:
		if (!can_lock(w))
			return 0; /* waits */
		w->owner = (uint8_t)i;
		a->step = TO_PREPARE;
		return 1;
	case TO_PREPARE:
		if (w->place != POD_EMBRYO) {
			end(w, i);
			return 1;
		}
		move(w, i, POD_PREPARE, depth);
		a->step = WRITE_CONTENT;
		return 1;
	case WRITE_CONTENT:
		if (way == 1) {
			a->step = TAKE_BACK;
			return 2;
		}
		w->content = 1;
		a->step = WRITE_MANIFEST;
		return 2;
	case WRITE_MANIFEST:
		if (way == 1) {
			a->step = TAKE_BACK;
			return 2;
		}
		w->manifest = 1;
		a->step = FINISH;
		return 2;
	case FINISH:
		if (w->place != POD_PREPARE)
			violated(w, depth, "taken from who prepares it");
		move(w, i, a->program == RUN ? POD_RUN : POD_PREPARED, depth);
		a->step = a->program == RUN ? SUPERVISE : UNLOCK;
		return 1;
	case TAKE_BACK:
		move(w, i, POD_GARBAGE, depth);
		a->step = DELETE_CONTENT;
		return 1;
	default:
		end(w, i); /* UNLOCK, SUPERVISE: the end of the process */
		return 1;
	}
}

/* What a program does with a pod that it found in phase a->seen. */
static void decide(struct world *w, size_t i)
{
	struct actor *a = &w->actors[i];
	switch ((enum program)a->program) {
	case LIST:
		a->step = a->seen == POD_GARBAGE || a->seen == POD_EMBRYO ? DONE : READ;
		break;
	case RUN_PREPARED:
		a->step = a->seen == POD_PREPARED ? TRY_LOCK : DONE;
		break;
	case GC:
		a->step = TRY_LOCK;
		if (a->locked)
			next_phase(w, i);
		break;
	case RM:
		a->step = a->seen == POD_EMBRYO ? DONE : TRY_LOCK;
		break;
	case RUN:
	case PREPARE:
	case PROGRAM_COUNT_:
		break;
	}
	if (a->step == DONE)
		end(w, i);
}

/* A gc tries once; a command about this pod tries again if nobody held it when it was opened. */
static unsigned try_lock(struct world *w, size_t i, unsigned way)
{
	struct actor *a = &w->actors[i];
	if (can_lock(w)) {
		w->owner = (uint8_t)i;
		a->step = PLACE_LOCKED;
		return 1;
	}
	if (a->program == GC) {
		next_phase(w, i);
		return 1;
	}
	if (way == 1 || a->locked || w->place != a->seen) {
		end(w, i); /* gives up: busy, or gone */
		return 2;
	}
	return 2; /* looks again */
}

static void move_on(struct world *w, size_t i, size_t depth)
{
	struct actor *a = &w->actors[i];
	if (a->program == RUN_PREPARED) {
		move(w, i, POD_RUN, depth);
		a->step = SUPERVISE;
		return;
	}
	if (w->place == POD_EXITED_GARBAGE || w->place == POD_GARBAGE) {
		a->step = DELETE_CONTENT;
		return;
	}
	move(w, i, w->place == POD_RUN ? POD_EXITED_GARBAGE : POD_GARBAGE, depth);
	if (a->program == GC)
		next_phase(w, i); /* marked; swept when the collection comes to that phase */
	else
		a->step = DELETE_CONTENT;
}

static void lose(struct world *w, size_t i)
{
	if (w->actors[i].program == GC)
		next_phase(w, i);
	else
		end(w, i);
}

static unsigned seeker_step(struct world *w, size_t i, unsigned way, size_t depth)
{
	struct actor *a = &w->actors[i];
	switch (a->step) {
	case FIND:
		if (w->place != a->look) {
			next_phase(w, i);
			return 1;
		}
		a->seen = a->look;
		a->step = PROBE;
		return 1;
	case PROBE:
		a->locked = w->owner != NOBODY;
		if (!a->locked)
			w->shared++;
		a->step = a->locked ? PLACE : PROBE_END;
		return 1;
	case PROBE_END:
		w->shared--;
		a->step = PLACE;
		return 1;
	case PLACE:
		if (w->place == a->seen)
			a->step = DECIDE;
		else
			next_phase(w, i); /* goes on looking */
		return 1;
	case DECIDE:
		decide(w, i);
		return 1;
	case TRY_LOCK:
		return try_lock(w, i, way);
	case PLACE_LOCKED:
		if (w->place == a->seen)
			a->step = MOVE;
		else
			lose(w, i);
		return 1;
	case MOVE:
		if (w->place != a->seen)
			violated(w, depth, "moved by another under our lock");
		move_on(w, i, depth);
		return 1;
	case READ:
		if (w->manifest || a->seen == POD_PREPARE ||
		    pod_state_of((enum pod_phase)a->seen, a->locked) == POD_STATE_EXITED_GARBAGE ||
		    pod_state_of((enum pod_phase)a->seen, a->locked) == POD_STATE_EXITED_DELETING)
			end(w, i);
		else
			a->step = PLACE_READ;
		return 1;
	case PLACE_READ:
		if (w->place == a->seen)
			violated(w, depth, "a listing complains");
		end(w, i);
		return 1;
	default:
		end(w, i); /* SUPERVISE: the end of the process */
		return 1;
	}
}

static unsigned delete_step(struct world *w, size_t i, size_t depth)
{
	struct actor *a = &w->actors[i];
	if (!holds_pod(w, i) || (w->place != POD_GARBAGE && w->place != POD_EXITED_GARBAGE))
		violated(w, depth, "deletes what is not its own garbage");
	if (a->step == DELETE_CONTENT) {
		w->content = 0;
		a->step = DELETE_MANIFEST;
	} else if (a->step == DELETE_MANIFEST) {
		w->manifest = 0;
		a->step = DELETE_DIR;
	} else {
		w->place = NOWHERE;
		lose(w, i);
	}
	return 1;
}

/*
 * Takes the next step of actor @i. The number of ways there are, 0 if it has to wait or has ended.
 */
static unsigned step(struct world *w, size_t i, unsigned way, size_t depth)
{
	struct actor *a = &w->actors[i];
	if (a->step == DONE)
		return 0;
	if (a->step == DELETE_CONTENT || a->step == DELETE_MANIFEST || a->step == DELETE_DIR)
		return delete_step(w, i, depth);
	if (a->program == RUN || a->program == PREPARE)
		return maker_step(w, i, way, depth);
	return seeker_step(w, i, way, depth);
}

/* ---- the search ---- */

static bool is_new(const struct world *w)
{
	uint64_t h = 14695981039346656037u;
	const unsigned char *bytes = (const unsigned char *)w;
	for (size_t i = 0; i < sizeof(*w); i++)
		h = (h ^ bytes[i]) * 1099511628211u;
	for (size_t at = h & (SEEN_SIZE - 1);; at = (at + 1) & (SEEN_SIZE - 1)) {
		if (!used[at]) {
			used[at] = 1;
			seen[at] = *w;
			n_states++;
			assert_true(n_states < SEEN_SIZE / 2);
			return true;
		}
		if (memcmp(&seen[at], w, sizeof(*w)) == 0)
			return false;
	}
}

/* All have ended: one more collection, undisturbed. */
static void check_end(const struct world *w, size_t depth)
{
	struct world last = *w;
	n_ends++;
	if (last.owner != NOBODY || last.shared > 0)
		violated(w, depth, "a lock without a holder");
	last.n_actors = 1;
	last.actors[0] = (struct actor){ .program = GC, .step = FIND };
	while (last.actors[0].step != DONE)
		step(&last, 0, 0, depth);
	if (last.place != NOWHERE || last.content || last.manifest)
		violated(&last, depth, "something is left");
}

static void explore(const struct world *w, size_t depth)
{
	bool ended = true;
	assert_true(depth < ARRAY_SIZE(trail));
	check_world(w, depth);
	if (!is_new(w))
		return;
	trail[depth] = *w;
	for (size_t i = 0; i < w->n_actors; i++) {
		struct world next = *w;
		if (w->actors[i].step == DONE)
			continue;
		ended = false;
		unsigned ways = step(&next, i, 0, depth);
		if (ways > 0)
			explore(&next, depth + 1);
		if (ways > 1) {
			next = *w;
			step(&next, i, 1, depth);
			explore(&next, depth + 1);
		}
		next = *w;
		end(&next, i); /* killed before that step */
		explore(&next, depth + 1);
	}
	if (ended)
		check_end(w, depth);
}

static struct actor start_of(enum program program)
{
	return (struct actor){ .program = (uint8_t)program,
			       .step = program == RUN || program == PREPARE ? MAKE : FIND };
}

/* Explores @n actors beginning with a pod in @place, complete unless it is on its way. */
static void explore_from(enum pod_phase place, const enum program *programs, size_t n)
{
	struct world w;
	memset(&w, 0, sizeof(w));
	memset(used, 0, SEEN_SIZE);
	w.place = (uint8_t)place;
	w.owner = NOBODY;
	w.made = place != NOWHERE;
	w.content = w.manifest = place >= POD_PREPARE && place < NOWHERE;
	w.n_actors = (uint8_t)n;
	for (size_t i = 0; i < n; i++)
		w.actors[i] = start_of(programs[i]);
	explore(&w, 0);
}

static bool makes(enum program p)
{
	return p == RUN || p == PREPARE;
}

/* Every pair of programs, from every phase, and from nothing where one of them makes the pod. */
static void test_pairs(void **state)
{
	(void)state;
	n_states = n_ends = 0;
	size_t total = 0;
	for (enum program a = 0; a < PROGRAM_COUNT_; a++)
		for (enum program b = a; b < PROGRAM_COUNT_; b++) {
			const enum program pair[] = { a, b };
			if (makes(b))
				continue; /* two UUIDs are two pods */
			for (enum pod_phase p = 0; p <= POD_PHASE_COUNT_; p++)
				if (makes(a) == (p == NOWHERE)) {
					n_states = 0;
					explore_from(p, pair, 2);
					total += n_states;
				}
		}
	print_message("pairs: %zu states, %zu ends\n", total, n_ends);
}

/* Three at once, where it matters most. */
static void test_triples(void **state)
{
	static const enum program triples[][3] = {
		{ PREPARE, RUN_PREPARED, GC },
		{ PREPARE, RUN_PREPARED, RM },
		{ RUN_PREPARED, RUN_PREPARED, GC },
		{ RUN_PREPARED, RM, GC },
		{ RUN, GC, GC },
		{ RUN, GC, LIST },
		{ RUN, RM, LIST },
		{ RM, GC, LIST },
		{ GC, GC, LIST },
		{ RUN_PREPARED, GC, LIST },
	};
	(void)state;
	size_t total = 0;
	n_ends = 0;
	for (size_t i = 0; i < ARRAY_SIZE(triples); i++)
		for (enum pod_phase p = 0; p <= POD_PHASE_COUNT_; p++)
			if (makes(triples[i][0]) == (p == NOWHERE)) {
				n_states = 0;
				explore_from(p, triples[i], 3);
				total += n_states;
			}
	print_message("triples: %zu states, %zu ends\n", total, n_ends);
}

static int allocate(void **state)
{
	(void)state;
	seen = malloc(SEEN_SIZE * sizeof(*seen));
	used = malloc(SEEN_SIZE);
	return seen && used ? 0 : -1;
}

static int deallocate(void **state)
{
	(void)state;
	free(seen);
	free(used);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_triples),
	};
	return cmocka_run_group_tests(tests, allocate, deallocate);
}
