/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small single-threaded event loop over epoll(7): descriptors, deadlines, signals.
 *
 * Watches and timers are embedded in their owner and registered with the loop; the loop owns
 * nothing. A callback may unwatch or free any watch or timer, its own included: events that were
 * already fetched for it are dropped.
 */
#ifndef LIB_OS_LOOP_H
#define LIB_OS_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#define LOOP_BATCH_MAX 16 /* events fetched by one epoll_wait(2); more wait for the next turn */

struct loop_watch;
struct loop_timer;

/*
 * @events is a set of EPOLLIN, EPOLLOUT, EPOLLHUP, EPOLLERR, EPOLLRDHUP; EPOLLET, where the owner
 * remembers readiness itself, makes the watch edge-triggered.
 */
typedef void (*loop_watch_fn)(void *ctx, uint32_t events);
typedef void (*loop_timer_fn)(void *ctx);

struct loop {
	int epoll_fd;
	bool quit;
	int n_batch; /* events of the current turn */
	struct epoll_event batch[LOOP_BATCH_MAX];
	struct loop_timer *timers; /* unsorted list; husk programs have a handful */
};

/* Register with loop_watch_add(); all zero except fd = -EBADF (LOOP_WATCH_INIT) while unused. */
struct loop_watch {
	struct loop *loop; /* NULL while unregistered */
	int fd;            /* not owned */
	uint32_t events;
	loop_watch_fn fn;
	void *ctx;
};

#define LOOP_WATCH_INIT ((struct loop_watch){ .fd = -EBADF })

struct loop_timer {
	struct loop *loop; /* NULL while unarmed */
	struct loop_timer *next;
	int64_t deadline_ns; /* CLOCK_MONOTONIC */
	loop_timer_fn fn;
	void *ctx;
};

/* 0 or -errno. */
int loop_init(struct loop *l);

/* Forgets all watches and timers. */
void loop_deinit(struct loop *l);

/*
 * Calls @fn(@ctx) whenever one of @events holds on @fd (level-triggered; errors and hang-ups are
 * always reported). @w must stay in place until loop_watch_remove(). 0 or -errno.
 */
int loop_watch_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events, loop_watch_fn fn,
		   void *ctx);

/* Changes the events of a registered watch; no system call if nothing changes. 0 or -errno. */
int loop_watch_modify(struct loop_watch *w, uint32_t events);

/* Unregisters; harmless on an unregistered watch. Does not close the descriptor. */
void loop_watch_remove(struct loop_watch *w);

/* Calls @fn(@ctx) once, at or after @deadline_ns. Re-arming moves the deadline. */
void loop_timer_arm(struct loop *l, struct loop_timer *t, int64_t deadline_ns, loop_timer_fn fn,
		    void *ctx);

/* Disarms; harmless on an unarmed timer. */
void loop_timer_disarm(struct loop_timer *t);

/* Blocks @set for the process and yields a descriptor that reads them (non-blocking). Or -errno. */
int loop_signal_fd(const sigset_t *set);

/* Waits for events and runs the callbacks of one turn. 0 or -errno. */
int loop_turn(struct loop *l);

/* Runs turns until loop_quit(). 0 or -errno. */
int loop_run(struct loop *l);

/* Makes loop_run() return after the current turn. */
void loop_quit(struct loop *l);

#endif
