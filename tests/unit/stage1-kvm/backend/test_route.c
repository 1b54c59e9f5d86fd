/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/backend/route.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1/backend.h"
#include "tests/support/fixture.h"

struct ctx {
	struct loop loop;
	struct dial dial;
	int listener, peer;
	int calls, fd;
};

static void on_done(void *arg, int fd)
{
	struct ctx *c = arg;
	c->calls++;
	c->fd = fd;
}

static void setup(void **state, struct ctx *c)
{
	memset(c, 0, sizeof(*c));
	c->fd = -EBADF;
	assert_int_equal(loop_init(&c->loop), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	unlink(ROUTE_FILE_SOCKET);
	c->listener = unix_listen(ROUTE_FILE_SOCKET, 0600);
	assert_true(c->listener >= 0);
	assert_int_equal(dial_start(&c->dial, &c->loop, &flavor_route, 1024, on_done, c), 0);
	c->peer = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(c->peer >= 0);
	char line[64] = { 0 };
	assert_int_equal(read(c->peer, line, sizeof(line)), 13);
	assert_string_equal(line, "CONNECT 1024\n");
}

static void teardown(struct ctx *c)
{
	dial_stop(&c->dial);
	fd_close(c->fd);
	fd_close(c->peer);
	fd_close(c->listener);
	loop_deinit(&c->loop);
	assert_int_equal(chdir("/"), 0);
}

static void device_says(struct ctx *c, const char *text)
{
	assert_int_equal(write(c->peer, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(loop_turn(&c->loop), 0);
}

/* Bytes behind the answer belong to the stream. */
static void test_connects(void **state)
{
	struct ctx c;
	setup(state, &c);
	device_says(&c, "OK 10");
	assert_int_equal(c.calls, 0);
	device_says(&c, "24\nfirst bytes");
	assert_int_equal(c.calls, 1);
	assert_true(c.fd >= 0);
	char rest[32] = { 0 };
	assert_int_equal(read(c.fd, rest, sizeof(rest)), 11);
	assert_string_equal(rest, "first bytes");
	teardown(&c);
}

static void test_refused(void **state)
{
	struct ctx c;
	setup(state, &c);
	c.peer = fd_close(c.peer);
	assert_int_equal(loop_turn(&c.loop), 0);
	assert_int_equal(c.calls, 1);
	assert_int_equal(c.fd, -ECONNREFUSED);
	teardown(&c);
}

static void test_bad_answers(void **state)
{
	static const char *const answers[] = {
		"NO\n",
		"\n",
		"OKAY 1\n",
		"OK 11111111111111111111111111111111111111111111",
	};
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		struct ctx c;
		setup(state, &c);
		device_says(&c, answers[i]);
		assert_int_equal(c.calls, 1);
		assert_int_equal(c.fd, -EPROTO);
		teardown(&c);
	}
}

static void test_stop(void **state)
{
	struct ctx c;
	setup(state, &c);
	dial_stop(&c.dial);
	dial_stop(&c.dial);
	assert_int_equal(c.calls, 0);
	teardown(&c);
	struct dial zero = { 0 };
	dial_stop(&zero);
}

static void test_nobody_listens(void **state)
{
	struct loop loop;
	struct dial d;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	assert_int_equal(dial_start(&d, &loop, &flavor_route, 1024, on_done, NULL), -ENOENT);
	assert_null(d.loop);
	assert_int_equal(chdir("/"), 0);
	loop_deinit(&loop);
}

/*
 * Whether a machine can dial itself, and how long that takes, is its kernel's affair: here it is
 * only begun and given up. The KVM lab dials real guests.
 */
static void test_kernel(void **state)
{
	static const char *const bad[] = { "", "x\n", "4294967296\n" };
	struct ctx c = { .fd = 0 };
	assert_int_equal(loop_init(&c.loop), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fixture_write(state, ROUTE_FILE_CID, bad[i], strlen(bad[i]));
		int r = dial_start(&c.dial, &c.loop, &flavor_route, 1024, on_done, &c);
		assert_true(r == -EINVAL || r == -ERANGE);
	}
	fixture_write(state, ROUTE_FILE_CID, "1\n", 2); /* this machine */
	if (dial_start(&c.dial, &c.loop, &flavor_route, 1024, on_done, &c) == 0)
		dial_stop(&c.dial);
	assert_null(c.dial.loop);
	assert_int_equal(c.calls, 0);
	loop_deinit(&c.loop);
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_connects),       fixture_test(test_refused),
		fixture_test(test_bad_answers),    fixture_test(test_stop),
		fixture_test(test_nobody_listens), fixture_test(test_kernel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
