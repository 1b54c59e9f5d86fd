/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fixture.h"

static struct loop loop;
static struct control control;
static int other;
static char heard[2048];
static bool closes; /* when it hears something */

static void note(const char *text)
{
	snprintf(heard + strlen(heard), sizeof(heard) - strlen(heard), "%s ", text);
	if (closes)
		control_close(&control);
}

static void on_started(void *ctx)
{
	assert_ptr_equal(ctx, &control);
	note("started");
}

static void on_exited(void *ctx, const struct agent_exec_exited *m)
{
	char text[AGENT_TEXT_MAX + 64];
	(void)ctx;
	snprintf(text, sizeof(text), "exited:%d:%d:%s", (int)m->code, (int)m->signal, m->message);
	note(text);
}

static const struct control_ops ops = { .started = on_started, .exited = on_exited };

static void begin(void)
{
	heard[0] = '\0';
	closes = false;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(control_open(&control, &loop, &ops, &control, &other), 0);
}

static void end(void)
{
	control_close(&control);
	control_close(&control);
	loop_deinit(&loop);
	if (other >= 0)
		close(other);
}

static void say(const char *method, const char *body)
{
	cleanup_buf struct buf out;
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}", method, body);
	buf_init(&out, sizeof(text) + FRAME_HEADER_LEN);
	assert_int_equal(frame_append(&out, text, (size_t)n), 0);
	assert_int_equal(fd_write_all(other, buf_data(&out), buf_len(&out)), 0);
}

#define EXITED "{\"exec\":1,\"code\":3,\"signal\":0,\"message\":\"why\"}"

static void test_hears(void **state)
{
	(void)state;
	begin();
	say("exec.started", "{\"exec\":1}");
	say("exec.others", "{}");
	say("exec.exited",
	    "{\"exec\":1,\"code\":256,\"signal\":0,\"message\":\"\"}"); /* none such */
	say("exec.exited", EXITED);
	assert_int_equal(loop_turn(&loop), 0);
	assert_string_equal(heard, "started exited:3:0:why ");
	/* What was said last is there when the other end has gone. */
	say("exec.exited", EXITED);
	other = fd_close(other);
	control_listen(&control);
	assert_string_equal(heard, "started exited:3:0:why exited:3:0:why ");
	assert_null(control.watch.loop); /* nothing turns for ever */
	end();
}

/* Who hears the end may close it, with more to come. */
static void test_closed_meanwhile(void **state)
{
	(void)state;
	begin();
	closes = true;
	say("exec.started", "{\"exec\":1}");
	say("exec.exited", EXITED);
	assert_int_equal(loop_turn(&loop), 0);
	assert_string_equal(heard, "started ");
	control_listen(&control);
	control_signal(&control, 9);
	control_resize(&control, 1, 2);
	assert_string_equal(heard, "started ");
	end();
}

static void test_useless(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin();
		assert_int_equal(fd_write_all(other, i ? "\0\0\0\1x" : "\0\0\0\0", i ? 5 : 4), 0);
		assert_int_equal(loop_turn(&loop), 0);
		assert_string_equal(heard, "");
		assert_null(control.watch.loop);
		end();
	}
}

static void expect_asked(const char *method, const char *part)
{
	char text[512] = "";
	ssize_t n = recv(other, text, sizeof(text) - 1, MSG_DONTWAIT);
	assert_true(n > FRAME_HEADER_LEN);
	assert_non_null(strstr(text + FRAME_HEADER_LEN, method));
	assert_non_null(strstr(text + FRAME_HEADER_LEN, part));
}

static void test_asks(void **state)
{
	(void)state;
	begin();
	control_signal(&control, 64);
	expect_asked("\"method\":\"exec.signal\"", "\"exec\":1,\"signal\":64}");
	control_resize(&control, 24, AGENT_TTY_SIZE_MAX);
	expect_asked("\"method\":\"exec.resize\"", "\"exec\":1,\"rows\":24,\"cols\":65535}");
	/* One who does not read is not waited for, one who has gone is no matter. */
	for (int i = 0; i < 10000; i++)
		control_signal(&control, 1);
	other = fd_close(other);
	control_signal(&control, 1);
	end();
}

int main(void)
{
	control = CONTROL_NONE;
	const struct CMUnitTest tests[] = {
		fixture_test(test_hears),
		fixture_test(test_closed_meanwhile),
		fixture_test(test_useless),
		fixture_test(test_asks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
