/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/disk_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

struct seen {
	struct loop loop;
	struct disk_jobs jobs;
	int begun, late, done, failed;
	int last; /* LUN of the one that was begun */
	bool adds_more;
};

static void on_begin(void *ctx)
{
	struct seen *s = ctx;
	s->begun++;
	s->last = s->jobs.queue[0].lun;
}

static void on_late(void *ctx)
{
	((struct seen *)ctx)->late++;
}

static const struct disk_jobs_ops ops = { on_begin, on_late, 1000 };

static int add(struct seen *s, int lun, int fd);

static void on_done(void *ctx, const struct err *why, bool left)
{
	struct seen *s = ctx;
	s->done++;
	s->failed += why != NULL;
	assert_int_equal(left, why != NULL);
	if (s->adds_more)
		assert_int_equal(add(s, 99, -EBADF), 0);
	s->adds_more = false;
}

static int add(struct seen *s, int lun, int fd)
{
	const struct disk_job job = { .lun = lun, .fd = fd, .done = on_done, .ctx = s };
	return disk_jobs_add(&s->jobs, &job);
}

static void begin(struct seen *s)
{
	memset(s, 0, sizeof(*s));
	assert_int_equal(loop_init(&s->loop), 0);
	disk_jobs_init(&s->jobs, &s->loop, &ops, s);
}

static void end(struct seen *s)
{
	disk_jobs_deinit(&s->jobs);
	assert_null(s->loop.timers);
	loop_deinit(&s->loop);
}

static void turn(struct seen *s)
{
	assert_int_equal(loop_turn(&s->loop), 0);
}

/* Each begins from the loop, when the one in front of it has ended. */
static void test_order(void **state)
{
	struct seen s;
	struct err e = ERR_INIT;
	(void)state;
	begin(&s);
	assert_int_equal(add(&s, 1, -EBADF), 0);
	assert_int_equal(add(&s, 2, -EBADF), 0);
	assert_int_equal(s.begun, 0);
	turn(&s);
	assert_int_equal(s.begun, 1);
	assert_int_equal(s.last, 1);
	err_set(&e, -EIO, "no");
	s.adds_more = true;
	disk_jobs_finish(&s.jobs, &e, true);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.begun, 1);
	turn(&s);
	assert_int_equal(s.last, 2);
	disk_jobs_finish(&s.jobs, NULL, false);
	turn(&s);
	assert_int_equal(s.last, 99);
	disk_jobs_finish(&s.jobs, NULL, false);
	assert_int_equal(s.done, 3);
	assert_int_equal(s.jobs.n, 0);
	end(&s);
}

/* The time of one begins with it. */
static void test_limit(void **state)
{
	struct seen s;
	(void)state;
	begin(&s);
	assert_int_equal(add(&s, 1, -EBADF), 0);
	turn(&s);
	assert_int_equal(s.late, 0);
	s.loop.timers->deadline_ns = 0;
	turn(&s);
	assert_int_equal(s.late, 1);
	assert_int_equal(s.done, 0);
	end(&s);
}

/* As many as a pod can have apps; what is not taken, and what is forgotten, is closed. */
static void test_full(void **state)
{
	struct seen s;
	int pipes[2];
	(void)state;
	begin(&s);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(add(&s, 0, pipes[0]), 0);
	for (int i = 1; i < DISK_JOBS_MAX; i++)
		assert_int_equal(add(&s, i, -EBADF), 0);
	assert_int_equal(add(&s, DISK_JOBS_MAX, pipes[1]), -E2BIG);
	assert_int_equal(fcntl(pipes[1], F_GETFD), -1);
	assert_true(fcntl(pipes[0], F_GETFD) >= 0);
	end(&s);
	assert_int_equal(fcntl(pipes[0], F_GETFD), -1);
	assert_int_equal(s.begun + s.done, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_order),
		fixture_test(test_limit),
		fixture_test(test_full),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
