/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/loop.h"

#include <errno.h>
#include <limits.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"

int loop_init(struct loop *l)
{
	*l = (struct loop){ .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
	return l->epoll_fd < 0 ? -errno : 0;
}

void loop_deinit(struct loop *l)
{
	l->epoll_fd = fd_close(l->epoll_fd);
	l->timers = NULL;
}

int loop_watch_add(struct loop *l, struct loop_watch *w, int fd, uint32_t events, loop_watch_fn fn,
		   void *ctx)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return -errno;
	*w = (struct loop_watch){ .loop = l, .fd = fd, .events = events, .fn = fn, .ctx = ctx };
	return 0;
}

int loop_watch_modify(struct loop_watch *w, uint32_t events)
{
	if (!w->loop || w->events == events)
		return 0;
	struct epoll_event ev = { .events = events, .data.ptr = w };
	if (epoll_ctl(w->loop->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev) < 0)
		return -errno;
	w->events = events;
	return 0;
}

void loop_watch_remove(struct loop_watch *w)
{
	struct loop *l = w->loop;
	if (!l)
		return;
	epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = 0; i < l->n_batch; i++)
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
	*w = LOOP_WATCH_INIT;
}

void loop_timer_arm(struct loop *l, struct loop_timer *t, int64_t deadline_ns, loop_timer_fn fn,
		    void *ctx)
{
	loop_timer_disarm(t);
	*t = (struct loop_timer){
		.loop = l, .next = l->timers, .deadline_ns = deadline_ns, .fn = fn, .ctx = ctx
	};
	l->timers = t;
}

void loop_timer_disarm(struct loop_timer *t)
{
	if (!t->loop)
		return;
	struct loop_timer **p = &t->loop->timers;
	while (*p && *p != t)
		p = &(*p)->next;
	if (*p)
		*p = t->next;
	t->loop = NULL;
	t->next = NULL;
}

int loop_signal_fd(const sigset_t *set)
{
	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return -errno;
	int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Milliseconds until the next deadline, rounded up; -1 without timers. */
static int next_timeout(const struct loop *l)
{
	int64_t first = INT64_MAX;
	for (const struct loop_timer *t = l->timers; t; t = t->next)
		first = MIN(first, t->deadline_ns);
	if (first == INT64_MAX)
		return -1;
	int64_t left = first - clock_monotonic_ns();
	if (left <= 0)
		return 0;
	int64_t ms = (left + NS_PER_MS - 1) / NS_PER_MS;
	return (int)MIN(ms, (int64_t)INT_MAX);
}

/* Runs one expired timer; callbacks may change the list, so start over after each. */
static bool run_expired_timer(struct loop *l, int64_t now)
{
	for (struct loop_timer *t = l->timers; t; t = t->next) {
		if (t->deadline_ns > now)
			continue;
		loop_timer_disarm(t);
		t->fn(t->ctx);
		return true;
	}
	return false;
}

int loop_turn(struct loop *l)
{
	int n = epoll_wait(l->epoll_fd, l->batch, LOOP_BATCH_MAX, next_timeout(l));
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	l->n_batch = n;
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = l->batch[i].data.ptr;
		if (w)
			w->fn(w->ctx, l->batch[i].events);
	}
	l->n_batch = 0;
	int64_t now = clock_monotonic_ns();
	while (!l->quit && run_expired_timer(l, now))
		;
	return 0;
}

int loop_run(struct loop *l)
{
	int r = 0;
	while (!l->quit && r == 0)
		r = loop_turn(l);
	return r;
}

void loop_quit(struct loop *l)
{
	l->quit = true;
}
