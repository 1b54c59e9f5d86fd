/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/support/settle.h"

static struct loop loop;
static struct stream stream;
static int app = -EBADF;  /* the app's end */
static int host = -EBADF; /* the host's end */

static int begin(void **state)
{
	signal(SIGPIPE, SIG_IGN);
	if (fixture_setup(state) != 0)
		return -1;
	return loop_init(&loop);
}

static int end(void **state)
{
	stream_deinit(&stream);
	fd_replace(&app, -EBADF);
	fd_replace(&host, -EBADF);
	loop_deinit(&loop);
	return fixture_teardown(state);
}

static void open_stream(enum agent_stream kind)
{
	int fds[2];
	bool in = kind == AGENT_STREAM_STDIN;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(fds[in ? 1 : 0], true), 0);
	assert_int_equal(fd_set_nonblock(fds[in ? 0 : 1], true), 0);
	stream_open(&stream, &loop, kind, fds[in ? 1 : 0]);
	app = fds[in ? 0 : 1];
}

static void attach(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
			 0);
	host = fds[1];
	assert_int_equal(stream_attach(&stream, fds[0]), 0);
	assert_int_equal(stream.state, STREAM_ATTACHED);
}

#define DEADLINE_NS (120 * NS_PER_SEC)

/* Runs the loop until @text has come out of @fd: what a terminal passes on takes its time. */
static void expect_read(int fd, const char *text)
{
	char mem[256];
	size_t len = 0, want = strlen(text);
	int64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	while (len < want && clock_monotonic_ns() < deadline) {
		ssize_t n = read(fd, mem + len, want - len);
		if (n > 0)
			len += (size_t)n;
		else
			loop_settle(&loop);
	}
	assert_int_equal(len, want);
	assert_memory_equal(mem, text, want);
}

static void expect_end(int fd)
{
	char c;
	ssize_t n;
	int64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	while ((n = read(fd, &c, 1)) < 0 && errno == EAGAIN && clock_monotonic_ns() < deadline)
		loop_settle(&loop);
	assert_int_equal(n, 0);
}

/* The host reads to the end and closes, which the stream waits for. */
static void expect_closed(void)
{
	expect_end(host);
	assert_int_equal(stream.state, STREAM_SENT);
	assert_true(stream_is_sending(&stream));
	fd_replace(&host, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_DONE);
	assert_false(stream_is_sending(&stream));
}

static void test_output(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDOUT);
	assert_int_equal(write(app, "early ", 6), 6); /* waits in the pipe */
	attach();
	loop_settle(&loop);
	expect_read(host, "early ");
	assert_int_equal(write(app, "late", 4), 4);
	loop_settle(&loop);
	expect_read(host, "late");
	assert_int_equal(write(app, "last", 4), 4);
	fd_replace(&app, -EBADF);
	loop_settle(&loop);
	expect_read(host, "last");
	expect_closed();
}

/* Everything came before the connection, the end included. */
static void test_late_attach(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDERR);
	assert_int_equal(write(app, "bye", 3), 3);
	fd_replace(&app, -EBADF);
	attach();
	loop_settle(&loop);
	expect_read(host, "bye");
	expect_end(host);
}

static void test_input(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDIN);
	attach();
	assert_int_equal(write(host, "to the app", 10), 10);
	loop_settle(&loop);
	expect_read(app, "to the app");
	assert_int_equal(write(host, "end", 3), 3);
	assert_int_equal(shutdown(host, SHUT_WR), 0);
	loop_settle(&loop);
	expect_read(app, "end");
	expect_end(app);
	assert_int_equal(stream.state, STREAM_DONE);
}

static void test_app_closes_input(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDIN);
	attach();
	loop_settle(&loop);
	fd_replace(&app, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_DONE);
	expect_end(host);
}

static void test_host_goes_away(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDOUT);
	attach();
	loop_settle(&loop);
	fd_replace(&host, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_DONE);
	assert_int_equal(write(app, "x", 1), -1); /* the app learns it */
}

static size_t fill(int fd)
{
	static const char junk[4096];
	size_t total = 0;
	for (ssize_t n; (n = write(fd, junk, sizeof(junk))) > 0;)
		total += (size_t)n;
	assert_int_equal(errno, EAGAIN);
	return total;
}

static size_t drain(int fd)
{
	static char junk[65536];
	size_t total = 0;
	for (ssize_t n; (n = read(fd, junk, sizeof(junk))) > 0;)
		total += (size_t)n;
	return total;
}

/* Runs the loop until nothing happens in it any more; one that spins never gets there. */
static void wait_for_silence(void)
{
	struct epoll_event ev;
	int64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	do {
		loop_settle(&loop);
		assert_true(clock_monotonic_ns() < deadline);
	} while (epoll_wait(loop.epoll_fd, &ev, 1, 20) != 0);
}

/* The reader stalls: the writer fills what is between them and then waits. Nothing is lost. */
static void stall(int from, int to, bool close_from)
{
	size_t sent = 0, before, got = 0;
	do {
		before = sent;
		sent += fill(from);
		wait_for_silence();
	} while (sent > before);
	if (close_from)
		fd_replace(from == app ? &app : &host, -EBADF);
	wait_for_silence();
	assert_int_equal(stream.state, STREAM_ATTACHED);
	int64_t deadline = clock_monotonic_ns() + DEADLINE_NS;
	while (got < sent && clock_monotonic_ns() < deadline) {
		got += drain(to);
		loop_settle(&loop);
	}
	assert_int_equal(got, sent);
}

static void test_stalled_host(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDOUT);
	attach();
	stall(app, host, false);
}

static void test_stalled_host_after_exit(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDOUT);
	attach();
	stall(app, host, true);
	expect_end(host);
}

static void test_stalled_app(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDIN);
	attach();
	stall(host, app, false);
}

static void test_stalled_app_after_close(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDIN);
	attach();
	stall(host, app, true);
	expect_end(app);
}

/* --- terminals --- */

static void open_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	app = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	assert_true(app >= 0);
	stream_open(&stream, &loop, AGENT_STREAM_TTY, master);
}

static void test_terminal(void **state)
{
	(void)state;
	open_terminal();
	attach();
	assert_int_equal(write(app, "prompt", 6), 6);
	assert_int_equal(write(host, "typed\n", 6), 6);
	loop_settle(&loop);
	expect_read(app, "typed\n");
	expect_read(host, "prompttyped\r\n"); /* it echoes */
	assert_int_equal(write(app, "bye", 3), 3);
	fd_replace(&app, -EBADF);
	loop_settle(&loop);
	expect_read(host, "bye");
	expect_end(host);
}

static struct key {
	int n, sig;
	pid_t foreground;
} key; /* the last one, and how many there were */

static void on_key(void *ctx, int sig, pid_t foreground)
{
	struct key *k = ctx;
	*k = (struct key){ k->n + 1, sig, foreground };
}

/* A process whose terminal it is, and which does not care for signals of keys. */
static pid_t start_owner(void)
{
	int ready[2];
	char byte;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		if (setsid() > 0 && ioctl(app, TIOCSCTTY, 0) == 0 && write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void type(const char *text)
{
	assert_int_equal(write(host, text, strlen(text)), (ssize_t)strlen(text));
	loop_settle(&loop);
}

static void set_mode(tcflag_t local, cc_t interrupt)
{
	struct termios t;
	assert_int_equal(tcgetattr(app, &t), 0);
	t.c_lflag = local;
	t.c_cc[VINTR] = interrupt;
	assert_int_equal(tcsetattr(app, TCSANOW, &t), 0);
}

/* Keys are told as the terminal understands them, of the group in the foreground. */
static void test_terminal_keys(void **state)
{
	(void)state;
	open_terminal();
	attach();
	stream.on_key = on_key;
	stream.key_ctx = &key;
	type("\x03"); /* nobody's terminal yet */
	assert_int_equal(key.n, 0);
	pid_t owner = start_owner();
	type("text \x04\x1a");
	assert_int_equal(key.n, 0);
	type("a\x03z");
	assert_true(key.n == 1 && key.sig == SIGINT && key.foreground == owner);
	type("\x1c");
	assert_true(key.n == 2 && key.sig == SIGQUIT && key.foreground == owner);
	set_mode(ISIG, 'q');
	type("\x03");
	assert_int_equal(key.n, 2);
	type("q");
	assert_true(key.n == 3 && key.sig == SIGINT);
	set_mode(0, 'q');
	type("q\x1c");
	assert_int_equal(key.n, 3);
	set_mode(ISIG, _POSIX_VDISABLE);
	assert_int_equal(write(host, "", 1), 1);
	loop_settle(&loop);
	assert_int_equal(key.n, 3);
	kill(owner, SIGKILL);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
}

static void test_terminal_half_closed(void **state)
{
	(void)state;
	open_terminal();
	attach();
	assert_int_equal(shutdown(host, SHUT_WR), 0);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_ATTACHED);
	assert_int_equal(write(app, "still", 5), 5);
	loop_settle(&loop);
	expect_read(host, "still");
}

static void test_terminal_host_gone(void **state)
{
	(void)state;
	open_terminal();
	attach();
	assert_int_equal(write(host, "last words\n", 11), 11);
	fd_replace(&host, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_DONE);
}

static void test_terminal_stalled_host(void **state)
{
	(void)state;
	open_terminal();
	attach();
	stall(app, host, false);
}

/* A stream that is kept survives its host, and only that. */
static void test_kept_output(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDOUT);
	stream.keep = true;
	attach();
	assert_int_equal(write(app, "one", 3), 3);
	loop_settle(&loop);
	expect_read(host, "one");
	fd_replace(&host, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_WAITING);
	assert_int_equal(write(app, "two", 3), 3); /* it waits, and the app notices nothing */
	attach();
	loop_settle(&loop);
	expect_read(host, "two");
	fd_replace(&app, -EBADF);
	loop_settle(&loop);
	expect_closed();
}

static void test_kept_input(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDIN);
	stream.keep = true;
	attach();
	assert_int_equal(write(host, "one", 3), 3);
	assert_int_equal(shutdown(host, SHUT_WR), 0);
	loop_settle(&loop);
	expect_read(app, "one");
	assert_int_equal(stream.state, STREAM_WAITING);
	expect_end(host);
	fd_replace(&host, -EBADF);
	attach();
	assert_int_equal(write(host, "two", 3), 3);
	loop_settle(&loop);
	expect_read(app, "two");
	fd_replace(&app, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_DONE);
}

/* Input whose end is the app's: not if the host leaves, but if it only has no more to say. */
static void test_kept_input_ends(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDIN);
	stream.keep = stream.end_in = true;
	attach();
	assert_int_equal(write(host, "one", 3), 3);
	fd_replace(&host, -EBADF);
	loop_settle(&loop);
	expect_read(app, "one");
	assert_int_equal(stream.state, STREAM_WAITING);
	attach();
	assert_int_equal(write(host, "two", 3), 3);
	assert_int_equal(shutdown(host, SHUT_WR), 0);
	loop_settle(&loop);
	expect_read(app, "two");
	expect_end(app);
	assert_int_equal(stream.state, STREAM_DONE);
	assert_false(stream_is_sending(&stream));
}

static void test_kept_terminal(void **state)
{
	(void)state;
	open_terminal();
	stream.keep = true;
	attach();
	assert_int_equal(write(app, "one", 3), 3);
	loop_settle(&loop);
	expect_read(host, "one");
	fd_replace(&host, -EBADF);
	loop_settle(&loop);
	assert_int_equal(stream.state, STREAM_WAITING);
	attach();
	assert_int_equal(write(app, "two", 3), 3);
	loop_settle(&loop);
	expect_read(host, "two");
	fd_replace(&app, -EBADF);
	loop_settle(&loop);
	expect_closed();
}

static void test_never_attached(void **state)
{
	(void)state;
	open_stream(AGENT_STREAM_STDOUT);
	stream_deinit(&stream);
	assert_int_equal(stream.state, STREAM_NONE);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_output),
		TEST(test_late_attach),
		TEST(test_input),
		TEST(test_app_closes_input),
		TEST(test_host_goes_away),
		TEST(test_stalled_host),
		TEST(test_stalled_host_after_exit),
		TEST(test_stalled_app),
		TEST(test_stalled_app_after_close),
		TEST(test_terminal),
		TEST(test_terminal_keys),
		TEST(test_terminal_half_closed),
		TEST(test_terminal_host_gone),
		TEST(test_terminal_stalled_host),
		TEST(test_kept_output),
		TEST(test_kept_input),
		TEST(test_kept_input_ends),
		TEST(test_kept_terminal),
		TEST(test_never_attached),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
