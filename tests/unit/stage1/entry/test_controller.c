/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/entry/controller.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fixture.h"

static struct loop loop;
static struct controller controller;
static int ends[2]; /* of who controls, and ours */
static char said[256];

static void on_signal(void *ctx, int64_t number)
{
	(void)ctx;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "signal:%d ", (int)number);
}

static void on_resize(void *ctx, int64_t rows, int64_t cols)
{
	(void)ctx;
	snprintf(said + strlen(said), sizeof(said) - strlen(said), "size:%dx%d ", (int)rows,
		 (int)cols);
}

static const struct controller_ops both = { .signal = on_signal, .resize = on_resize };
static const struct controller_ops sizes = { .resize = on_resize };

static void begin(const struct controller_ops *ops)
{
	said[0] = '\0';
	assert_int_equal(unix_pair(ends), 0);
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(controller_listen(&controller, &loop, ends[1], ops, NULL), 0);
}

static void end(void)
{
	controller_ignore(&controller);
	controller_ignore(&controller);
	loop_deinit(&loop);
	close(ends[0]);
	close(ends[1]);
}

static void expect_said(const char *text)
{
	assert_string_equal(said, text);
	said[0] = '\0';
}

static void say(const char *method, const char *body)
{
	cleanup_buf struct buf out;
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}", method, body);
	buf_init(&out, sizeof(text) + FRAME_HEADER_LEN);
	assert_int_equal(frame_append(&out, text, (size_t)n), 0);
	assert_int_equal(fd_write_all(ends[0], buf_data(&out), buf_len(&out)), 0);
}

static void test_messages(void **state)
{
	(void)state;
	begin(&both);
	say("exec.signal", "{\"exec\":1,\"signal\":64}");
	say("exec.resize", "{\"exec\":1,\"rows\":24,\"cols\":80}");
	say("exec.signal", "{\"exec\":1,\"signal\":65}"); /* there is none */
	say("exec.resize", "{}");
	say("exec.others", "{}");
	say("exec.signal", "{\"exec\":1,\"signal\":1}");
	assert_int_equal(loop_turn(&loop), 0);
	expect_said("signal:64 size:24x80 signal:1 ");
	end();
}

/* What has been sent before is heard at once; who knows sizes only hears of nothing else. */
static void test_heard_at_once(void **state)
{
	(void)state;
	begin(&both);
	controller_ignore(&controller);
	say("exec.signal", "{\"exec\":1,\"signal\":9}");
	say("exec.resize", "{\"exec\":1,\"rows\":1,\"cols\":2}");
	assert_int_equal(controller_listen(&controller, &loop, ends[1], &sizes, NULL), 0);
	expect_said("size:1x2 ");
	end();
}

/* Its end, and what is no message, end that: the watch is gone, and so nothing turns for ever. */
static void test_useless(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		begin(&both);
		if (i == 0)
			assert_int_equal(shutdown(ends[0], SHUT_WR), 0);
		else if (i == 1)
			assert_int_equal(fd_write_all(ends[0], "\0\0\0\1x", 5), 0);
		else
			assert_int_equal(fd_write_all(ends[0], "\0\0\x7f\0", 4), 0);
		for (int n = 0; i == 2 && n < (1 << 15) && controller.fd >= 0; n++) {
			ssize_t sent = send(ends[0], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
			assert_true(sent == 1 || errno == EAGAIN);
			if (sent != 1 || n % 256 == 0)
				assert_int_equal(loop_turn(&loop), 0);
		}
		if (i < 2)
			assert_int_equal(loop_turn(&loop), 0);
		assert_int_equal(controller.fd, -EBADF);
		assert_null(controller.watch.loop);
		expect_said("");
		end();
	}
}

static void expect_told(const char *method, const char *part)
{
	char text[512] = "";
	ssize_t n = recv(ends[0], text, sizeof(text) - 1, MSG_DONTWAIT);
	assert_true(n > FRAME_HEADER_LEN);
	assert_non_null(strstr(text + FRAME_HEADER_LEN, method));
	assert_non_null(strstr(text + FRAME_HEADER_LEN, part));
}

static void test_tells(void **state)
{
	(void)state;
	const struct agent_exec_exited m = { .exec = 77, .signal = 9, .message = "why" };
	begin(&both);
	controller_tell_started(ends[1]);
	expect_told("exec.started", "\"exec\":1}");
	controller_tell_exited(ends[1], &m);
	expect_told("exec.exited", "\"exec\":1,\"code\":0,\"signal\":9,\"message\":\"why\"");
	/* Whether somebody is there or hears it does not matter. */
	controller_tell_started(-EBADF);
	controller_tell_exited(-EBADF, &m);
	for (int i = 0; i < 10000; i++)
		controller_tell_started(ends[1]);
	close(ends[0]);
	controller_tell_exited(ends[1], &m);
	ends[0] = -EBADF;
	end();
}

/* A number beside the three standard ones, of a descriptor that is there; it is not passed on. */
static void test_option(void **state)
{
	(void)state;
	char text[64];
	int fd = -1;
	cleanup_fd int null = open("/dev/null", O_RDWR);
	static const char *const wrong[] = { "--control=",  "--control=2", "--control=99999",
					     "--control=x", "--contro=7",  "--control=2147483648" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(controller_option(wrong[i], &fd));
	assert_int_equal(fd, -1);
	snprintf(text, sizeof(text), "--control=%d", null);
	assert_true(controller_option(text, &fd));
	assert_int_equal(fd, null);
	assert_int_equal(fcntl(null, F_GETFD), FD_CLOEXEC);
}

/* Nobody there is fine. */
static void test_nobody(void **state)
{
	(void)state;
	assert_int_equal(controller_listen(&controller, &loop, -EBADF, &both, NULL), 0);
	controller_ignore(&controller);
	controller = CONTROLLER_NONE;
	controller_ignore(&controller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_messages), fixture_test(test_heard_at_once),
		fixture_test(test_useless),  fixture_test(test_tells),
		fixture_test(test_option),   fixture_test(test_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
