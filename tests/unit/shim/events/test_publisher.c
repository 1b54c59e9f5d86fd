/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/events/publisher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/unix.h"
#include "shim/proto/task.pb-c.h"
#include "shim/ttrpc/server.h"
#include "tests/support/fixture.h"

/* What stands for containerd: takes events, and answers or does not. */
struct bench {
	struct loop loop;
	struct loop_timer timer;
	struct ttrpc_server *server;
	struct publisher *publisher;
	bool silent, refuses;
	size_t n;
	char topic[64], type[64], ns[64];
	uint32_t pid; /* of the last event */
};

static void on_request(void *ctx, uint64_t token, const struct ttrpc_request *q)
{
	struct bench *b = ctx;
	assert_string_equal(q->service, "containerd.services.events.ttrpc.v1.Events");
	assert_string_equal(q->method, "Forward");
	Task__ForwardRequest *m = task__forward_request__unpack(NULL, q->len, q->payload);
	assert_non_null(m);
	snprintf(b->topic, sizeof(b->topic), "%s", m->envelope->topic);
	snprintf(b->ns, sizeof(b->ns), "%s", m->envelope->namespace_);
	snprintf(b->type, sizeof(b->type), "%s", m->envelope->event->type_url);
	assert_true(m->envelope->timestamp->seconds > 1700000000);
	Task__TaskStart *event = task__task_start__unpack(NULL, m->envelope->event->value.len,
							  m->envelope->event->value.data);
	assert_non_null(event);
	b->pid = event->pid;
	task__task_start__free_unpacked(event, NULL);
	task__forward_request__free_unpacked(m, NULL);
	b->n++;
	if (b->refuses)
		ttrpc_server_refuse(b->server, token, TTRPC_UNKNOWN, "no");
	else if (!b->silent)
		ttrpc_server_answer(b->server, token, NULL, 0);
}

static void listen_again(struct bench *b)
{
	unlink("s");
	int fd = unix_listen("s", 0600);
	assert_true(fd >= 0);
	assert_int_equal(ttrpc_server_new(&b->loop, fd, on_request, b, &b->server), 0);
}

static void begin(void **state, struct bench *b)
{
	memset(b, 0, sizeof(*b));
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_int_equal(loop_init(&b->loop), 0);
	listen_again(b);
	assert_int_equal(publisher_new(&b->loop, "s", "space", &b->publisher), 0);
}

static void end(struct bench *b)
{
	publisher_free(b->publisher);
	ttrpc_server_free(b->server);
	loop_deinit(&b->loop);
}

static void publish(struct bench *b, uint32_t pid)
{
	Task__TaskStart m;
	task__task_start__init(&m);
	m.pid = pid;
	publisher_publish(b->publisher, "/tasks/start", "containerd.events.TaskStart", &m.base);
}

static void on_time(void *ctx)
{
	(void)ctx;
}

/* Runs the loop until @n events have come and, if they are answered, nothing is left to be told. */
static void wait_for(struct bench *b, size_t n)
{
	int64_t deadline = clock_monotonic_ns() + 60 * NS_PER_SEC;
	while (b->n < n || (!b->silent && !publisher_is_idle(b->publisher))) {
		assert_true(clock_monotonic_ns() < deadline);
		loop_timer_arm(&b->loop, &b->timer, clock_monotonic_ns() + 50 * NS_PER_MS, on_time,
			       b);
		assert_int_equal(loop_turn(&b->loop), 0);
		loop_timer_disarm(&b->timer);
	}
}

static void test_events(void **state)
{
	struct bench b;
	begin(state, &b);
	assert_true(publisher_is_idle(b.publisher));
	for (uint32_t i = 1; i <= 3; i++)
		publish(&b, i);
	assert_false(publisher_is_idle(b.publisher));
	wait_for(&b, 3);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.pid, 3); /* in their order */
	assert_string_equal(b.topic, "/tasks/start");
	assert_string_equal(b.type, "containerd.events.TaskStart");
	assert_string_equal(b.ns, "space");
	/* What is refused would be refused again. */
	b.refuses = true;
	publish(&b, 4);
	wait_for(&b, 4);
	assert_int_equal(b.n, 4);
	end(&b);
}

/* containerd ends with an event that it has not answered, and comes again. */
static void test_restart(void **state)
{
	struct bench b;
	begin(state, &b);
	b.silent = true;
	publish(&b, 1);
	publish(&b, 2);
	wait_for(&b, 1);
	ttrpc_server_free(b.server);
	b.silent = false;
	listen_again(&b);
	wait_for(&b, 3);
	assert_int_equal(b.n, 3); /* the first one twice */
	assert_int_equal(b.pid, 2);
	end(&b);
}

/* Nobody wants to know. */
static void test_nobody(void **state)
{
	static const char *const paths[] = { NULL, "" };
	struct loop loop;
	(void)state;
	assert_int_equal(loop_init(&loop), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct bench b = { .n = 0 };
		assert_int_equal(publisher_new(&loop, paths[i], "space", &b.publisher), 0);
		publish(&b, 1);
		assert_true(publisher_is_idle(b.publisher));
		publisher_free(b.publisher);
	}
	publisher_free(NULL);
	loop_deinit(&loop);
}

/* As many as may wait, and more, while nobody is there. */
static void test_many(void **state)
{
	struct bench b;
	begin(state, &b);
	ttrpc_server_free(b.server);
	unlink("s");
	for (uint32_t i = 1; i <= PUBLISHER_QUEUE_MAX + 10; i++)
		publish(&b, i);
	listen_again(&b);
	wait_for(&b, PUBLISHER_QUEUE_MAX);
	assert_int_equal(b.n, PUBLISHER_QUEUE_MAX);
	assert_int_equal(b.pid, PUBLISHER_QUEUE_MAX);
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_events),
		fixture_test(test_restart),
		fixture_test(test_nobody),
		fixture_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
