/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define CLEANUP_LOOP CLEANUP(loop_deinit) struct loop

static int ready_fd(void)
{
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_true(fd >= 0);
	return fd;
}

struct counter {
	struct loop *loop;
	int calls;
	uint32_t events;
};

static void count_and_quit(void *ctx, uint32_t events)
{
	struct counter *c = ctx;
	c->calls++;
	c->events = events;
	loop_quit(c->loop);
}

static void test_watch(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	cleanup_fd int fd = ready_fd();
	struct counter c = { .loop = &l };
	struct loop_watch w = LOOP_WATCH_INIT;
	loop_watch_remove(&w); /* harmless */
	assert_int_equal(loop_watch_modify(&w, EPOLLIN), 0);
	assert_int_equal(loop_watch_add(&l, &w, fd, EPOLLIN, count_and_quit, &c), 0);
	assert_int_equal(loop_run(&l), 0);
	assert_int_equal(c.calls, 1);
	assert_int_equal(c.events, EPOLLIN);
	assert_int_equal(loop_turn(&l), 0); /* level-triggered */
	assert_int_equal(c.calls, 2);
	assert_int_equal(loop_watch_modify(&w, EPOLLOUT), 0);
	assert_int_equal(loop_turn(&l), 0);
	assert_int_equal(c.events, EPOLLOUT);
	loop_watch_remove(&w);
	assert_null(w.loop);
	assert_int_equal(w.fd, -EBADF);
	struct loop_watch bad = LOOP_WATCH_INIT;
	assert_int_equal(loop_watch_add(&l, &bad, -EBADF, EPOLLIN, count_and_quit, &c), -EBADF);
	assert_null(bad.loop);
}

struct victim {
	struct loop_watch watch;
	int fd;
};

struct killers {
	struct loop *loop;
	struct victim *victims[2 * LOOP_BATCH_MAX];
	int calls;
};

/* The first one called removes and frees all of them, its own watch included. */
static void kill_all(void *ctx, uint32_t events)
{
	struct killers *k = ctx;
	(void)events;
	k->calls++;
	for (size_t i = 0; i < ARRAY_SIZE(k->victims); i++) {
		if (!k->victims[i])
			continue;
		loop_watch_remove(&k->victims[i]->watch);
		fd_close(k->victims[i]->fd);
		free(k->victims[i]);
		k->victims[i] = NULL;
	}
}

static void test_removal_during_dispatch(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	struct killers k = { .loop = &l };
	assert_int_equal(loop_init(&l), 0);
	for (size_t i = 0; i < ARRAY_SIZE(k.victims); i++) {
		struct victim *v = calloc(1, sizeof(*v));
		assert_non_null(v);
		v->fd = ready_fd();
		assert_int_equal(loop_watch_add(&l, &v->watch, v->fd, EPOLLIN, kill_all, &k), 0);
		k.victims[i] = v;
	}
	assert_int_equal(loop_turn(&l), 0);
	assert_int_equal(k.calls, 1);
}

/* A descriptor that is closed and opened again under the same number gets no stale event. */
struct swap {
	struct loop *loop;
	struct loop_watch watch[2];
	int fd[2];
	int fresh; /* calls for the descriptor that is not readable */
};

static void must_not_be_called(void *ctx, uint32_t events)
{
	(void)events;
	((struct swap *)ctx)->fresh++;
}

static void swap_other(void *ctx, uint32_t events)
{
	struct swap *s = ctx;
	(void)events;
	for (int i = 0; i < 2; i++) {
		loop_watch_remove(&s->watch[i]);
		s->fd[i] = fd_close(s->fd[i]);
	}
	for (int i = 0; i < 2; i++) {
		s->fd[i] = eventfd(0, EFD_CLOEXEC);
		loop_watch_add(s->loop, &s->watch[i], s->fd[i], EPOLLIN, must_not_be_called, s);
	}
}

static void test_reused_number(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	struct swap s = { .loop = &l };
	for (int i = 0; i < 2; i++) {
		s.fd[i] = ready_fd();
		assert_int_equal(loop_watch_add(&l, &s.watch[i], s.fd[i], EPOLLIN, swap_other, &s),
				 0);
	}
	assert_int_equal(loop_turn(&l), 0);
	assert_int_equal(s.fresh, 0);
	fd_close(s.fd[0]);
	fd_close(s.fd[1]);
}

struct order {
	struct loop *loop;
	struct loop_timer timer;
	int64_t deadline;
	int calls, limit;
};

static void timer_fired(void *ctx)
{
	struct order *o = ctx;
	if (clock_monotonic_ns() < o->deadline)
		fail_msg("timer fired early");
	if (++o->calls == o->limit)
		loop_quit(o->loop);
	else
		loop_timer_arm(o->loop, &o->timer, o->deadline, timer_fired, o);
}

static void test_timer(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	struct order o = { .loop = &l, .limit = 3 };
	loop_timer_disarm(&o.timer); /* harmless */
	o.deadline = clock_monotonic_ns() + 3 * NS_PER_MS;
	loop_timer_arm(&l, &o.timer, o.deadline + NS_PER_SEC * 1000, timer_fired, &o);
	loop_timer_arm(&l, &o.timer, o.deadline, timer_fired, &o); /* moves it */
	assert_int_equal(loop_run(&l), 0);
	assert_int_equal(o.calls, 3); /* re-armed by itself */
	assert_null(o.timer.loop);
}

static void never(void *ctx)
{
	(void)ctx;
	fail_msg("disarmed timer fired");
}

static void disarm_other(void *ctx)
{
	loop_timer_disarm(ctx);
}

static void quit_loop(void *ctx)
{
	loop_quit(ctx);
}

/* Of two timers that are due at the same time, each disarms the other: one fires. */
static void test_timer_disarmed_by_timer(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	struct loop_timer a = { 0 }, b = { 0 }, c = { 0 }, end = { 0 };
	int64_t now = clock_monotonic_ns();
	loop_timer_arm(&l, &a, now, disarm_other, &b);
	loop_timer_arm(&l, &b, now, disarm_other, &a);
	loop_timer_arm(&l, &c, now, never, NULL);
	loop_timer_disarm(&c);
	loop_timer_arm(&l, &end, now + NS_PER_MS, quit_loop, &l);
	assert_int_equal(loop_run(&l), 0);
	assert_null(a.loop);
	assert_null(b.loop);
}

struct cross {
	struct loop_watch *watch;
	struct loop_timer *timer;
	int calls;
};

static void remove_watch_and_timer(void *ctx, uint32_t events)
{
	struct cross *c = ctx;
	(void)events;
	c->calls++;
	loop_watch_remove(c->watch);
	loop_timer_disarm(c->timer);
}

/* A due timer that a watch's callback disarms does not fire in that turn. */
static void test_timer_disarmed_by_watch(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	cleanup_fd int fd = ready_fd();
	struct loop_watch w = LOOP_WATCH_INIT;
	struct loop_timer t = { 0 };
	struct cross c = { .watch = &w, .timer = &t };
	loop_timer_arm(&l, &t, 0, never, NULL);
	assert_int_equal(loop_watch_add(&l, &w, fd, EPOLLIN, remove_watch_and_timer, &c), 0);
	assert_int_equal(loop_turn(&l), 0);
	assert_int_equal(c.calls, 1);
}

static void test_signal(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, NULL, &old);
	cleanup_fd int fd = loop_signal_fd(&set);
	assert_true(fd >= 0);
	struct counter c = { .loop = &l };
	struct loop_watch w = LOOP_WATCH_INIT;
	assert_int_equal(loop_watch_add(&l, &w, fd, EPOLLIN, count_and_quit, &c), 0);
	assert_int_equal(kill(getpid(), SIGUSR1), 0);
	assert_int_equal(loop_run(&l), 0);
	struct signalfd_siginfo info;
	assert_int_equal(read(fd, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.ssi_signo, SIGUSR1);
	assert_int_equal(read(fd, &info, sizeof(info)), -1); /* non-blocking */
	assert_int_equal(errno, EAGAIN);
	loop_watch_remove(&w);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* More ready descriptors than one batch: all are served in some turn. */
static void count_once(void *ctx, uint32_t events)
{
	struct victim *v = ctx;
	(void)events;
	loop_watch_remove(&v->watch);
	v->fd = fd_close(v->fd);
}

static void test_more_than_a_batch(void **state)
{
	(void)state;
	CLEANUP_LOOP l;
	assert_int_equal(loop_init(&l), 0);
	struct victim v[LOOP_BATCH_MAX + 1];
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		v[i].fd = ready_fd();
		assert_int_equal(
			loop_watch_add(&l, &v[i].watch, v[i].fd, EPOLLIN, count_once, &v[i]), 0);
	}
	assert_int_equal(loop_turn(&l), 0);
	assert_int_equal(loop_turn(&l), 0);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_int_equal(v[i].fd, -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_watch),
		fixture_test(test_removal_during_dispatch),
		fixture_test(test_reused_number),
		fixture_test(test_timer),
		fixture_test(test_timer_disarmed_by_timer),
		fixture_test(test_timer_disarmed_by_watch),
		fixture_test(test_signal),
		fixture_test(test_more_than_a_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
