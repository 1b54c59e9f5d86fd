/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/request_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "stage1/pod/podfiles.h"
#include "tests/support/fixture.h"

struct ctx {
	struct loop loop;
	struct request_server *server;
	int requests, gones;
	uint64_t token, gone_token; /* the last ones */
	struct app_request q;       /* the last one */
	bool at_once, refuse;       /* how requests are answered: within the call */
};

static void on_request(void *arg, const struct app_request *q, uint64_t token)
{
	struct ctx *c = arg;
	struct err e = ERR_INIT;
	assert_true(token != 0);
	c->requests++;
	c->token = token;
	c->q = *q;
	err_set(&e, -ESRCH, "app \"%s\" is not running", q->app);
	if (c->at_once)
		request_server_reply(c->server, token, c->refuse ? &e : NULL);
}

static void on_gone(void *arg, uint64_t token)
{
	struct ctx *c = arg;
	c->gones++;
	c->gone_token = token;
}

static const struct request_server_ops ops = { on_request, on_gone };

static void setup(void **state, struct ctx *c)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
	assert_int_equal(chdir(fixture_path(state)), 0);
	assert_int_equal(request_server_new(&c->loop, &ops, c, &c->server), 0);
}

static void teardown(struct ctx *c)
{
	struct stat st;
	request_server_free(c->server);
	assert_int_equal(stat(POD_FILE_CONTROL, &st), -1);
	assert_null(c->loop.timers);
	loop_deinit(&c->loop);
	assert_int_equal(chdir("/"), 0);
}

/* Everything that is there happens. */
static void turns(struct ctx *c)
{
	struct epoll_event ev;
	while (epoll_wait(c->loop.epoll_fd, &ev, 1, 0) > 0)
		assert_int_equal(loop_turn(&c->loop), 0);
}

static int connect_client(struct ctx *c)
{
	int fd = unix_connect(POD_FILE_CONTROL);
	assert_true(fd >= 0);
	assert_int_equal(fd_set_nonblock(fd, true), 0);
	turns(c);
	return fd;
}

static void send_request(struct ctx *c, int fd, const char *app)
{
	cleanup_buf struct buf b;
	struct app_request q = { .verb = APP_VERB_STOP, .grace_ms = 7 };
	str_copy(q.app, sizeof(q.app), app);
	buf_init(&b, APP_REQUEST_FRAME_MAX);
	assert_int_equal(app_request_encode(&q, &b), 0);
	assert_int_equal(fd_write_all(fd, buf_data(&b), buf_len(&b)), 0);
	turns(c);
}

/* One reply that has @text in it, and then the end. */
static void expect_reply(int fd, const char *text)
{
	char got[APP_REQUEST_FRAME_MAX + 1];
	ssize_t n = read(fd, got, sizeof(got) - 1);
	assert_true(n > FRAME_HEADER_LEN);
	got[n] = '\0';
	if (!strstr(got + FRAME_HEADER_LEN, text))
		fail_msg("\"%s\" instead of %s", got + FRAME_HEADER_LEN, text);
	assert_int_equal(read(fd, got, 1), 0);
}

static void expect_no_reply(int fd)
{
	char c;
	assert_int_equal(read(fd, &c, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

static void test_mode(void **state)
{
	struct ctx c;
	struct stat st;
	struct request_server *second;
	mode_t old = umask(0);
	setup(state, &c);
	umask(old);
	assert_int_equal(stat(POD_FILE_CONTROL, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(request_server_new(&c.loop, &ops, &c, &second), -EADDRINUSE);
	request_server_free(NULL);
	teardown(&c);
}

static void test_reply_at_once(void **state)
{
	struct ctx c;
	setup(state, &c);
	c.at_once = true;
	cleanup_fd int fd = connect_client(&c);
	send_request(&c, fd, "web");
	assert_int_equal(c.requests, 1);
	assert_int_equal(c.q.verb, APP_VERB_STOP);
	assert_string_equal(c.q.app, "web");
	assert_int_equal(c.q.grace_ms, 7);
	expect_reply(fd, "\"result\"");
	assert_int_equal(c.gones, 0);
	teardown(&c);
}

static void test_reply_later(void **state)
{
	struct ctx c;
	struct err e = ERR_INIT;
	setup(state, &c);
	cleanup_fd int one = connect_client(&c);
	cleanup_fd int two = connect_client(&c);
	send_request(&c, one, "one");
	uint64_t first = c.token;
	send_request(&c, two, "two");
	assert_true(c.token != first);
	expect_no_reply(one);
	assert_null(c.loop.timers); /* what was asked for takes its time */
	err_set(&e, -EIO, "this failed");
	request_server_reply(c.server, c.token, &e);
	request_server_reply(c.server, 4711, NULL); /* nobody's */
	turns(&c);
	expect_no_reply(one);
	expect_reply(two, "this failed");
	request_server_reply(c.server, first, NULL);
	request_server_reply(c.server, first, &e); /* the first is what counts */
	turns(&c);
	expect_reply(one, "\"result\"");
	teardown(&c);
}

static void test_pieces(void **state)
{
	struct ctx c;
	cleanup_buf struct buf b;
	struct app_request q = { .verb = APP_VERB_RM, .app = "a" };
	setup(state, &c);
	buf_init(&b, APP_REQUEST_FRAME_MAX);
	assert_int_equal(app_request_encode(&q, &b), 0);
	cleanup_fd int fd = connect_client(&c);
	for (size_t i = 0; i < buf_len(&b); i++) {
		assert_int_equal(c.requests, 0);
		assert_int_equal(write(fd, buf_data(&b) + i, 1), 1);
		turns(&c);
	}
	assert_int_equal(c.requests, 1);
	teardown(&c);
}

/* Whoever asked has been killed: the owner hears of it, and its reply goes nowhere. */
static void test_client_gone(void **state)
{
	struct ctx c;
	setup(state, &c);
	int fd = connect_client(&c);
	fd_close(fd);
	turns(&c);
	assert_int_equal(c.gones, 0); /* it had asked for nothing */
	fd = connect_client(&c);
	send_request(&c, fd, "web");
	fd_close(fd);
	turns(&c);
	assert_int_equal(c.gones, 1);
	assert_int_equal(c.gone_token, c.token);
	request_server_reply(c.server, c.token, NULL);
	turns(&c);
	teardown(&c);
}

static void test_second_request(void **state)
{
	struct ctx c;
	char byte;
	setup(state, &c);
	cleanup_fd int fd = connect_client(&c);
	send_request(&c, fd, "one");
	send_request(&c, fd, "two");
	assert_int_equal(c.requests, 1);
	assert_int_equal(c.gones, 1);
	assert_true(read(fd, &byte, 1) <= 0);
	teardown(&c);
}

static void test_garbage(void **state)
{
	static const unsigned char beyond[APP_REQUEST_FRAME_MAX] = { 0, 0, 0xff, 0xff };
	static const unsigned char huge[] = { 0xff, 0xff, 0xff, 0xff };
	static const unsigned char no_json[] = { 0, 0, 0, 1, 'x' };
	const struct {
		const unsigned char *data;
		size_t len;
	} cases[] = {
		{ beyond, sizeof(beyond) },
		{ huge, sizeof(huge) },
		{ no_json, sizeof(no_json) },
	};
	struct ctx c;
	setup(state, &c);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_fd int fd = connect_client(&c);
		assert_int_equal(fd_write_all(fd, cases[i].data, cases[i].len), 0);
		turns(&c);
		expect_reply(fd, "the request is not understood (was husk upgraded meanwhile?)");
	}
	assert_int_equal(c.requests, 0);
	assert_int_equal(c.gones, 0);
	teardown(&c);
}

/* One that connects and says nothing, or half a request, keeps its place for a limited time. */
static void test_silent_client(void **state)
{
	struct ctx c;
	char byte;
	setup(state, &c);
	cleanup_fd int fd = connect_client(&c);
	assert_int_equal(write(fd, "", 1), 1);
	turns(&c);
	assert_non_null(c.loop.timers);
	assert_null(c.loop.timers->next);
	c.loop.timers->deadline_ns = 0;
	assert_int_equal(loop_turn(&c.loop), 0);
	assert_true(read(fd, &byte, 1) <= 0);
	assert_int_equal(c.gones, 0);
	teardown(&c);
}

/* One more than there is room for waits, and is served when another has ended. */
static void test_client_limit(void **state)
{
	struct ctx c;
	int fds[APP_REQUEST_CLIENTS_MAX + 1];
	setup(state, &c);
	for (int i = 0; i <= APP_REQUEST_CLIENTS_MAX; i++) {
		fds[i] = connect_client(&c);
		send_request(&c, fds[i], "web");
	}
	assert_int_equal(c.requests, APP_REQUEST_CLIENTS_MAX);
	uint64_t last = c.token;
	request_server_reply(c.server, last, NULL);
	turns(&c);
	expect_reply(fds[APP_REQUEST_CLIENTS_MAX - 1], "\"result\"");
	assert_int_equal(c.requests, APP_REQUEST_CLIENTS_MAX + 1);
	assert_true(c.token != last);
	fd_close(fds[0]); /* so is one when another has gone */
	fds[0] = connect_client(&c);
	send_request(&c, fds[0], "web");
	assert_int_equal(c.requests, APP_REQUEST_CLIENTS_MAX + 2);
	teardown(&c);
	for (int i = 0; i <= APP_REQUEST_CLIENTS_MAX; i++)
		fd_close(fds[i]);
}

/* An entrypoint as another process: its result, and what it would print. */
static void call(struct ctx *c, int result, const char *text)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		const struct app_request q = { .verb = APP_VERB_STOP, .app = "web" };
		struct err e = ERR_INIT;
		int r = app_request_call(&q, &e);
		_exit(r == result && strcmp(e.text, text) == 0 ? 0 : 1);
	}
	assert_true(pid > 0);
	for (int before = c->requests; c->requests == before;)
		assert_int_equal(loop_turn(&c->loop), 0);
	turns(c);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_call(void **state)
{
	struct ctx c;
	setup(state, &c);
	c.at_once = true;
	call(&c, 0, "");
	c.refuse = true;
	call(&c, -ESRCH, "app \"web\" is not running");
	teardown(&c);
}

static void test_call_nobody(void **state)
{
	const struct app_request q = { .verb = APP_VERB_ADD, .app = "web" };
	struct err e = ERR_INIT;
	assert_int_equal(chdir(fixture_path(state)), 0);
	assert_int_equal(app_request_call(&q, &e), -ENOENT);
	assert_string_equal(e.text,
			    "app \"web\": the supervisor of the pod: No such file or directory");
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_mode),         fixture_test(test_reply_at_once),
		fixture_test(test_reply_later),  fixture_test(test_pieces),
		fixture_test(test_client_gone),  fixture_test(test_second_request),
		fixture_test(test_garbage),      fixture_test(test_silent_client),
		fixture_test(test_client_limit), fixture_test(test_call),
		fixture_test(test_call_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
