/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/unix.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static void test_listen_and_connect(void **state)
{
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	cleanup_fd int server = unix_listen("sock", 0600);
	assert_true(server >= 0);
	struct stat st;
	assert_int_equal(stat("sock", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(fcntl(server, F_GETFD), FD_CLOEXEC);
	assert_true(fcntl(server, F_GETFL) & O_NONBLOCK);
	assert_int_equal(accept4(server, NULL, NULL, SOCK_CLOEXEC), -1); /* does not block */
	cleanup_fd int client = unix_connect("sock");
	assert_true(client >= 0);
	assert_int_equal(fcntl(client, F_GETFD), FD_CLOEXEC);
	cleanup_fd int conn = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(conn >= 0);
	assert_int_equal(unix_listen("sock", 0600), -EADDRINUSE);
	server = fd_close(server);
	assert_int_equal(unix_connect("sock"), -ECONNREFUSED);
	assert_int_equal(unix_connect("none"), -ENOENT);
}

/* Who accepts nobody holds nobody up. */
static void test_never_accepts(void **state)
{
	int clients[8], n = 0;
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	cleanup_fd int server = unix_listen("sock", 0600);
	assert_true(server >= 0);
	assert_int_equal(listen(server, 0), 0); /* as who was handed it can do */
	alarm(60);
	while (n < (int)ARRAY_SIZE(clients) && (clients[n] = unix_connect("sock")) >= 0)
		n++;
	assert_int_equal(n, 1);
	assert_int_equal(clients[n], -ETIMEDOUT);
	assert_false(fcntl(clients[0], F_GETFL) & O_NONBLOCK);
	cleanup_fd int conn = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	cleanup_fd int next = unix_connect("sock");
	assert_true(conn >= 0 && next >= 0);
	alarm(0);
	close(clients[0]);
}

static void test_name_limit(void **state)
{
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	char name[109];
	memset(name, 'n', sizeof(name));
	name[108] = '\0';
	assert_int_equal(unix_listen(name, 0600), -ENAMETOOLONG);
	assert_int_equal(unix_connect(name), -ENAMETOOLONG);
	name[107] = '\0';
	cleanup_fd int server = unix_listen(name, 0600);
	assert_true(server >= 0);
	cleanup_fd int client = unix_connect(name);
	assert_true(client >= 0);
}

/* Sends @n descriptors in one message past unix_send_fds() and its limit. */
static void send_many(int sock, int fd, size_t n)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * 2 * UNIX_FDS_MAX)];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 'x';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = CMSG_SPACE(sizeof(int) * n) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * n);
	for (size_t i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

static void test_pass_fds(void **state)
{
	(void)state;
	int pair[2], sent[UNIX_FDS_MAX], got[UNIX_FDS_MAX];
	char text[16];
	size_t len = 0, n = 0;
	assert_int_equal(unix_pair(pair), 0);
	for (int i = 0; i < UNIX_FDS_MAX; i++)
		sent[i] = pair[0];
	for (size_t want = 0; want <= UNIX_FDS_MAX; want++) {
		assert_int_equal(unix_send_fds(pair[0], "hello", 5, sent, want, &len), 0);
		assert_int_equal(len, 5);
		assert_int_equal(unix_recv_fds(pair[1], text, sizeof(text), got, &len, &n), 0);
		assert_int_equal(len, 5);
		assert_memory_equal(text, "hello", 5);
		assert_int_equal(n, want);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
			fd_close(got[i]);
		}
	}
	assert_int_equal(unix_send_fds(pair[0], "x", 1, sent, UNIX_FDS_MAX + 1, &len), -EINVAL);
	fd_close(pair[0]);
	assert_int_equal(unix_recv_fds(pair[1], text, sizeof(text), got, &len, &n), 0);
	assert_int_equal(len, 0); /* end of file */
	assert_int_equal(n, 0);
	fd_close(pair[1]);
}

/* The fixture sees to it that none of the surplus stays open. */
static void test_surplus_is_closed(void **state)
{
	(void)state;
	int pair[2], got[UNIX_FDS_MAX];
	char text[16];
	size_t len = 4711, n = 4711;
	assert_int_equal(unix_pair(pair), 0);
	for (size_t many = UNIX_FDS_MAX + 1; many <= 2 * (size_t)UNIX_FDS_MAX; many++) {
		send_many(pair[0], pair[0], many);
		assert_int_equal(unix_recv_fds(pair[1], text, sizeof(text), got, &len, &n),
				 -EMSGSIZE);
	}
	assert_int_equal(len, 4711);
	assert_int_equal(n, 4711);
	/* The connection goes on. */
	send_many(pair[0], pair[0], 1);
	assert_int_equal(unix_recv_fds(pair[1], text, sizeof(text), got, &len, &n), 0);
	assert_int_equal(n, 1);
	fd_close(got[0]);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void test_errors(void **state)
{
	(void)state;
	int pair[2], got[UNIX_FDS_MAX];
	char text[16];
	size_t len, n;
	assert_int_equal(unix_pair(pair), 0);
	assert_int_equal(fd_set_nonblock(pair[0], true), 0);
	assert_int_equal(unix_recv_fds(pair[0], text, sizeof(text), got, &len, &n), -EAGAIN);
	fd_close(pair[1]);
	/* No SIGPIPE, which would end this program. */
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(unix_send_fds(pair[0], "x", 1, NULL, 0, &len), -EPIPE);
	const int bad = -EBADF;
	assert_int_equal(unix_send_fds(pair[0], "x", 1, &bad, 1, &len), -EBADF);
	fd_close(pair[0]);
}

/* More than the peer takes stays; what has come is read piece by piece, up to the end. */
static void test_buffers(void **state)
{
	static const size_t size = (size_t)4 << 20;
	(void)state;
	int pair[2];
	char *where;
	size_t n = 1, read_back = 0;
	cleanup_buf struct buf out, in;
	buf_init(&out, size);
	buf_init(&in, size);
	assert_int_equal(unix_pair(pair), 0);
	assert_int_equal(unix_recv_buf(pair[0], &in, 1, &n), -EAGAIN);
	assert_int_equal(unix_send_buf(pair[1], &out), 0); /* nothing */
	assert_int_equal(buf_reserve(&out, size, &where), 0);
	memset(where, 'x', size);
	buf_commit(&out, size);
	assert_int_equal(unix_send_buf(pair[1], &out), 0);
	assert_true(buf_len(&out) > 0 && buf_len(&out) < size);
	while (buf_len(&out) > 0) {
		assert_int_equal(unix_recv_buf(pair[0], &in, 65536, &n), 0);
		assert_true(n > 0 && n <= 65536 && buf_len(&in) == n);
		read_back += n;
		buf_consume(&in, n);
		assert_int_equal(unix_send_buf(pair[1], &out), 0);
	}
	fd_close(pair[1]);
	do {
		assert_int_equal(unix_recv_buf(pair[0], &in, 65536, &n), 0);
		read_back += n;
		buf_consume(&in, n);
	} while (n > 0);
	assert_int_equal(read_back, size);
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(buf_puts(&out, "x"), 0);
	assert_int_equal(unix_send_buf(pair[0], &out), -EPIPE);
	assert_int_equal(buf_len(&out), 1);
	fd_close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_listen_and_connect),
		fixture_test(test_never_accepts),
		fixture_test(test_name_limit),
		fixture_test(test_pass_fds),
		fixture_test(test_surplus_is_closed),
		fixture_test(test_errors),
		fixture_test(test_buffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
