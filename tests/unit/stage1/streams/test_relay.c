/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/streams/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "tests/support/fixture.h"

#define BIG ((size_t)3 * 1024 * 1024)

struct ctx {
	struct loop loop;
	struct relay relay;
	int n_ends;
	enum relay_end end;
};

static void on_end(void *arg, enum relay_end end)
{
	struct ctx *c = arg;
	c->n_ends++;
	c->end = end;
	loop_quit(&c->loop);
}

static void on_limit(void *arg)
{
	(void)arg;
	fail_msg("the relay did not end in time");
}

/* Runs the loop until the relay has ended. */
static void run(struct ctx *c)
{
	struct loop_timer limit = { 0 };
	loop_timer_arm(&c->loop, &limit, clock_monotonic_ns() + 120 * NS_PER_SEC, on_limit, NULL);
	assert_int_equal(loop_run(&c->loop), 0);
	loop_timer_disarm(&limit);
	assert_int_equal(c->n_ends, 1);
}

/* Lets the relay do what it can without waiting. */
static void turn_some(struct ctx *c)
{
	struct epoll_event ev;
	for (int i = 0; i < 64 && epoll_wait(c->loop.epoll_fd, &ev, 1, 0) > 0; i++)
		assert_int_equal(loop_turn(&c->loop), 0);
}

static char pattern_at(size_t i)
{
	return (char)(i * 31 + i / 251);
}

/* A child that writes BIG bytes of the pattern to @fd and exits. */
static void write_pattern_in_child(int fd)
{
	if (fork() != 0)
		return;
	char *mem = malloc(BIG);
	for (size_t i = 0; mem && i < BIG; i++)
		mem[i] = pattern_at(i);
	_exit(mem && fd_write_all(fd, mem, BIG) == 0 ? 0 : 1);
}

/* A child that checks that exactly the pattern comes out of @fd; its exit code says so. */
static pid_t check_pattern_in_child(int fd)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	char *mem = malloc(BIG + 1);
	size_t got;
	if (!mem || fd_read_full(fd, mem, BIG + 1, &got) < 0 || got != BIG)
		_exit(1);
	for (size_t i = 0; i < BIG; i++)
		if (mem[i] != pattern_at(i))
			_exit(2);
	_exit(0);
}

static void ctx_init(struct ctx *c)
{
	memset(c, 0, sizeof(*c));
	assert_int_equal(loop_init(&c->loop), 0);
}

/* Our socket to a pipe (splice) or to a socket that is not ours (buffer). */
static void out_to(bool use_pipe)
{
	struct ctx c;
	ctx_init(&c);
	int sock[2], out[2];
	assert_int_equal(unix_pair(sock), 0);
	if (use_pipe)
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	else
		assert_int_equal(unix_pair(out), 0);
	write_pattern_in_child(sock[1]);
	close(sock[1]);
	/* The child must not hold the writing end, or it would never see the end of the file. */
	pid_t reader = fork();
	assert_true(reader >= 0);
	if (reader == 0) {
		close(out[1]);
		pid_t inner = check_pattern_in_child(out[0]);
		int status;
		_exit(waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1);
	}
	close(out[0]);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, sock[0], out[1], false, on_end, &c), 0);
	run(&c);
	assert_int_equal(c.end, RELAY_EOF);
	close(out[1]);
	close(sock[0]);
	int status;
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	loop_deinit(&c.loop);
}

static void test_out_to_pipe(void **state)
{
	(void)state;
	out_to(true);
}

static void test_out_to_socket(void **state)
{
	(void)state;
	out_to(false);
}

static void test_out_to_file(void **state)
{
	struct ctx c;
	ctx_init(&c);
	int sock[2];
	assert_int_equal(unix_pair(sock), 0);
	int file = openat(fixture_dir(state), "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	write_pattern_in_child(sock[1]);
	close(sock[1]);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, sock[0], file, false, on_end, &c), 0);
	run(&c);
	assert_int_equal(c.end, RELAY_EOF);
	assert_int_equal(lseek(file, 0, SEEK_END), (off_t)BIG);
	close(file);
	close(sock[0]);
	loop_deinit(&c.loop);
}

struct losses {
	struct ctx c; /* the context of the relay: first */
	int n, error;
};

static void on_loss(void *ctx, int error)
{
	struct losses *l = ctx;
	l->n++;
	l->error = error;
}

/* What a full disk does not take is dropped, to the last byte, if somebody hears of it. */
static void test_out_to_full_disk(void **state)
{
	struct losses l = { .n = 0 };
	(void)state;
	ctx_init(&l.c);
	int sock[2];
	assert_int_equal(unix_pair(sock), 0);
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	write_pattern_in_child(sock[1]);
	close(sock[1]);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&l.c.relay, &l.c.loop, sock[0], full, false, on_end, &l), 0);
	relay_set_loss(&l.c.relay, on_loss);
	run(&l.c);
	assert_int_equal(l.c.end, RELAY_EOF);
	assert_true(l.n > 0);
	assert_int_equal(l.error, ENOSPC);
	/* And otherwise it is the end. */
	close(sock[0]);
	loop_deinit(&l.c.loop);
	ctx_init(&l.c);
	assert_int_equal(unix_pair(sock), 0);
	assert_int_equal(send(sock[1], "x", 1, 0), 1);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&l.c.relay, &l.c.loop, sock[0], full, false, on_end, &l), 0);
	run(&l.c);
	assert_int_equal(l.c.end, RELAY_TARGET);
	close(full);
	close(sock[0]);
	close(sock[1]);
	loop_deinit(&l.c.loop);
}

/* A file as the source, our socket as the target. */
static void test_in_from_file(void **state)
{
	struct ctx c;
	ctx_init(&c);
	fixture_write(state, "in", "some input", 10);
	int file = openat(fixture_dir(state), "in", O_RDONLY | O_CLOEXEC);
	int sock[2];
	assert_int_equal(unix_pair(sock), 0);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, file, sock[0], true, on_end, &c), 0);
	run(&c);
	assert_int_equal(c.end, RELAY_EOF);
	char got[16];
	assert_int_equal(read(sock[1], got, sizeof(got)), 10);
	assert_memory_equal(got, "some input", 10);
	close(file);
	close(sock[0]);
	close(sock[1]);
	loop_deinit(&c.loop);
}

static void test_in_from_pipe(void **state)
{
	(void)state;
	struct ctx c;
	ctx_init(&c);
	int in[2], sock[2];
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(unix_pair(sock), 0);
	write_pattern_in_child(in[1]);
	close(in[1]);
	pid_t reader = fork();
	if (reader == 0) {
		close(sock[0]);
		int status;
		pid_t inner = check_pattern_in_child(sock[1]);
		_exit(waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1);
	}
	close(sock[1]);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, in[0], sock[0], true, on_end, &c), 0);
	run(&c);
	assert_int_equal(c.end, RELAY_EOF);
	close(sock[0]);
	close(in[0]);
	int status;
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	loop_deinit(&c.loop);
}

static void test_reader_gone(void **state)
{
	(void)state;
	struct ctx c;
	ctx_init(&c);
	int sock[2], out[2];
	assert_int_equal(unix_pair(sock), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, sock[0], out[1], false, on_end, &c), 0);
	close(out[0]); /* seen at once, without a byte to write */
	run(&c);
	assert_int_equal(c.end, RELAY_TARGET);
	close(out[1]);
	close(sock[0]);
	close(sock[1]);
	loop_deinit(&c.loop);
}

/* A reader that stops reading: the relay stalls, reads nothing, and uses no processor. */
static void test_stalled_reader(void **state)
{
	(void)state;
	struct ctx c;
	ctx_init(&c);
	int sock[2], out[2];
	assert_int_equal(unix_pair(sock), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(fd_set_nonblock(sock[1], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, sock[0], out[1], false, on_end, &c), 0);
	char block[4096] = { 0 };
	size_t total = 0;
	for (;;) {
		ssize_t n = write(sock[1], block, sizeof(block));
		if (n > 0)
			total += (size_t)n;
		turn_some(&c);
		if (n < 0)
			break;
	}
	assert_true(total < (size_t)4 * 1024 * 1024); /* a pipe's and a socket's buffers */
	assert_true(relay_is_stalled(&c.relay));
	close(sock[1]); /* even a hang-up of the source wakes nobody now */
	struct epoll_event ev;
	assert_int_equal(epoll_wait(c.loop.epoll_fd, &ev, 1, 0), 0);
	relay_stop(&c.relay);
	assert_int_equal(c.n_ends, 0);
	close(out[0]);
	close(out[1]);
	close(sock[0]);
	loop_deinit(&c.loop);
}

/* Two apps of a pod have one standard output: as many pumps to one descriptor as there are. */
static void test_same_target(void **state)
{
	(void)state;
	struct ctx c;
	struct relay other = { 0 };
	int out[2], first[2], second[2];
	char text[8];
	ctx_init(&c);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(unix_pair(first), 0);
	assert_int_equal(unix_pair(second), 0);
	assert_int_equal(fd_set_nonblock(first[0], true), 0);
	assert_int_equal(fd_set_nonblock(second[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, first[0], out[1], false, on_end, &c), 0);
	assert_int_equal(relay_start(&other, &c.loop, second[0], out[1], false, on_end, &c), 0);
	assert_int_equal(write(first[1], "one", 3), 3);
	turn_some(&c);
	assert_int_equal(write(second[1], "two", 3), 3);
	turn_some(&c);
	assert_int_equal(read(out[0], text, sizeof(text)), 6);
	assert_memory_equal(text, "onetwo", 6);
	relay_stop(&c.relay);
	relay_stop(&other);
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(first[i]);
		close(second[i]);
	}
	loop_deinit(&c.loop);
}

/* Two ends of a connection; closing one while it has bytes unread resets the other. */
static void tcp_pair(int fds[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	cleanup_fd int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&a, len), 0);
	fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fds[1] >= 0);
}

/* Our end of a connection that the other end has reset. */
static int reset_socket(void)
{
	int fds[2];
	tcp_pair(fds);
	assert_int_equal(send(fds[0], "unread", 6, 0), 6);
	struct pollfd pfd = { .fd = fds[1], .events = POLLIN };
	assert_int_equal(poll(&pfd, 1, 120000), 1);
	fd_close(fds[1]);
	pfd = (struct pollfd){ .fd = fds[0] };
	assert_int_equal(poll(&pfd, 1, 120000), 1); /* POLLERR, when the reset has come */
	assert_int_equal(fd_set_nonblock(fds[0], true), 0);
	return fds[0];
}

/*
 * A reset is of our socket, whichever end of the relay that is: the guest's side has gone, not the
 * user's. Both errors and both ways of moving bytes.
 */
static void test_reset(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		bool to_ours = i & 1, use_pipe = i & 2;
		struct ctx c;
		int user[2];
		ctx_init(&c);
		cleanup_fd int ours = reset_socket();
		if (use_pipe)
			assert_int_equal(pipe2(user, O_CLOEXEC), 0);
		else
			assert_int_equal(unix_pair(user), 0);
		assert_int_equal(write(user[1], "data", 4), 4);
		int from = to_ours ? user[0] : ours, to = to_ours ? ours : user[1];
		assert_int_equal(relay_start(&c.relay, &c.loop, from, to, to_ours, on_end, &c), 0);
		run(&c);
		assert_int_equal(c.end, to_ours ? RELAY_TARGET : RELAY_SOURCE);
		fd_close(user[0]);
		fd_close(user[1]);
		loop_deinit(&c.loop);
	}
}

/*
 * A target that has gone, in either direction, is found by writing to it, before epoll tells of it.
 */
static void test_broken_pipe(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 3; i++) {
		bool to_ours = i == 1, use_pipe = i < 2;
		struct ctx c;
		int sock[2], user[2];
		ctx_init(&c);
		assert_int_equal(unix_pair(sock), 0);
		assert_int_equal(use_pipe ? pipe2(user, O_CLOEXEC) : unix_pair(user), 0);
		assert_int_equal(fd_set_nonblock(sock[0], true), 0);
		assert_int_equal(write(to_ours ? user[1] : sock[1], "data", 4), 4);
		if (to_ours)
			sock[1] = fd_close(sock[1]);
		else
			user[0] = fd_close(user[0]);
		assert_int_equal(relay_start(&c.relay, &c.loop, to_ours ? user[0] : sock[0],
					     to_ours ? sock[0] : user[1], to_ours, on_end, &c),
				 0);
		run(&c);
		assert_int_equal(c.end, RELAY_TARGET);
		for (int k = 0; k < 2; k++) {
			fd_close(sock[k]);
			fd_close(user[k]);
		}
		loop_deinit(&c.loop);
	}
	signal(SIGPIPE, SIG_DFL);
}

/* What is typed reaches the socket, but for the keys, and what may be their beginning not yet. */
static void test_keys(void **state)
{
	(void)state;
	struct ctx c;
	struct detach_keys keys;
	int typed[2], sock[2];
	char got[16];
	assert_int_equal(detach_keys_parse(DETACH_KEYS_DEFAULT, &keys), 0);
	ctx_init(&c);
	assert_int_equal(pipe2(typed, O_CLOEXEC), 0);
	assert_int_equal(unix_pair(sock), 0);
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, typed[0], sock[0], true, on_end, &c), 0);
	assert_int_equal(relay_watch_keys(&c.relay, &keys), 0);
	assert_int_equal(write(typed[1], "ab\x10", 3), 3);
	turn_some(&c);
	assert_int_equal(read(sock[1], got, sizeof(got)), 2);
	assert_memory_equal(got, "ab", 2);
	assert_int_equal(write(typed[1], "x", 1), 1);
	turn_some(&c);
	assert_int_equal(read(sock[1], got, sizeof(got)), 2);
	assert_memory_equal(got, "\x10x", 2);
	assert_int_equal(write(typed[1], "c\x10\x11rest", 7), 7);
	run(&c);
	assert_int_equal(c.end, RELAY_LEFT);
	sock[0] = fd_close(sock[0]);
	assert_int_equal(read(sock[1], got, sizeof(got)), 1);
	assert_memory_equal(got, "c", 1);
	assert_int_equal(read(sock[1], got, sizeof(got)), 0);
	fd_close(sock[1]);
	fd_close(typed[0]);
	fd_close(typed[1]);
	loop_deinit(&c.loop);
}

/* ---- tapped ---- */

static struct {
	size_t seen;
	bool right;
} tapped;

static void on_bytes(void *arg, const char *bytes, size_t len)
{
	const struct ctx *c = arg;
	assert_non_null(c->relay.loop);
	for (size_t i = 0; i < len; i++)
		tapped.right &= bytes[i] == pattern_at(tapped.seen + i);
	tapped.seen += len;
}

enum target {
	TO_PIPE,
	TO_APPENDING_PIPE,
	TO_SOCKET,
	TO_FILE
};

/* Everything reaches the target, and the tap has seen it. */
static void tap_to(void **state, enum target kind)
{
	struct ctx c;
	int sock[2], out[2] = { -EBADF, -EBADF };
	pid_t reader = 0;
	int status = 0;
	tapped.seen = 0;
	tapped.right = true;
	ctx_init(&c);
	assert_int_equal(unix_pair(sock), 0);
	if (kind == TO_FILE)
		out[1] = openat(fixture_dir(state), "out", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	else
		assert_int_equal(kind == TO_SOCKET ? unix_pair(out) : pipe2(out, O_CLOEXEC), 0);
	if (kind == TO_APPENDING_PIPE)
		assert_int_equal(fcntl(out[1], F_SETFL, O_APPEND), 0);
	write_pattern_in_child(sock[1]);
	close(sock[1]);
	if (kind != TO_FILE && (reader = fork()) == 0) {
		close(out[1]);
		pid_t inner = check_pattern_in_child(out[0]);
		_exit(waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1);
	}
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, sock[0], out[1], false, on_end, &c), 0);
	assert_int_equal(relay_set_tap(&c.relay, on_bytes), 0);
	assert_int_equal(c.relay.relay[1] >= 0, kind == TO_PIPE);
	run(&c);
	assert_int_equal(c.end, RELAY_EOF);
	assert_int_equal(tapped.seen, BIG);
	assert_true(tapped.right);
	if (kind == TO_FILE)
		assert_int_equal(lseek(out[1], 0, SEEK_END), (off_t)BIG);
	fd_close(out[0]);
	fd_close(out[1]);
	close(sock[0]);
	if (reader > 0)
		assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	loop_deinit(&c.loop);
}

static void test_tapped(void **state)
{
	for (int kind = TO_PIPE; kind <= TO_FILE; kind++)
		tap_to(state, (enum target)kind);
}

/*
 * A pipe that others fill holds the relay up, but does not block it; what was held back comes when
 * there is room, and no more was read meanwhile than is held.
 */
static void test_tapped_and_stalled(void **state)
{
	(void)state;
	struct ctx c;
	int sock[2], out[2];
	char block[PIPE_BUF] = "", last = 0;
	size_t others = 0, got = 0;
	ssize_t n;
	tapped.seen = 0;
	ctx_init(&c);
	assert_int_equal(unix_pair(sock), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(out[1], true), 0);
	while ((n = write(out[1], block, sizeof(block))) > 0)
		others += (size_t)n;
	assert_int_equal(fd_set_nonblock(out[1], false), 0); /* as a shell's */
	assert_int_equal(fd_set_nonblock(sock[0], true), 0);
	assert_int_equal(fd_set_nonblock(sock[1], true), 0);
	assert_int_equal(relay_start(&c.relay, &c.loop, sock[0], out[1], false, on_end, &c), 0);
	assert_int_equal(relay_set_tap(&c.relay, on_bytes), 0);
	assert_int_equal(write(sock[1], "x", 1), 1);
	turn_some(&c);
	assert_true(relay_is_stalled(&c.relay));
	while (write(sock[1], block, sizeof(block)) > 0)
		turn_some(&c);
	assert_true(tapped.seen > 0 && tapped.seen <= RELAY_BUFFER_SIZE);
	sock[1] = fd_close(sock[1]);
	assert_int_equal(fd_set_nonblock(out[0], true), 0);
	while (c.n_ends == 0) {
		while ((n = read(out[0], block, sizeof(block))) > 0)
			got += (size_t)n;
		turn_some(&c);
	}
	assert_int_equal(c.end, RELAY_EOF);
	while ((n = read(out[0], &last, 1)) > 0)
		got += (size_t)n;
	assert_int_equal(got, others + tapped.seen);
	fd_close(sock[0]);
	fd_close(out[0]);
	fd_close(out[1]);
	loop_deinit(&c.loop);
}

static void test_stop_twice(void **state)
{
	(void)state;
	struct relay p = { 0 };
	relay_stop(&p);
	relay_stop(&p);
	assert_false(relay_is_stalled(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_out_to_pipe),        fixture_test(test_out_to_socket),
		fixture_test(test_out_to_file),        fixture_test(test_out_to_full_disk),
		fixture_test(test_in_from_file),       fixture_test(test_in_from_pipe),
		fixture_test(test_reader_gone),        fixture_test(test_stalled_reader),
		fixture_test(test_same_target),        fixture_test(test_reset),
		fixture_test(test_broken_pipe),        fixture_test(test_keys),
		fixture_test(test_stop_twice),         fixture_test(test_tapped),
		fixture_test(test_tapped_and_stalled),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
