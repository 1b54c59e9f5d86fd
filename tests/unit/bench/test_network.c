/* SPDX-License-Identifier: Apache-2.0 */
/* A client beside real services: each a process that serves one port of the loopback interface. */
#include "bench/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define BYTES 200000 /* neither one chunk nor a multiple of it */

enum service {
	SINK,
	SOURCE,
	ECHO,
	ONCE, /* echoes one byte */
	MUTE, /* says nothing, and stays */
	HTTP,
};

static struct runner runner;
static const struct network_client client = { &runner, NULL, "127.0.0.1" };
static struct err e;

static void serve(enum service service, int fd)
{
	static char chunk[BYTES];
	ssize_t n;
	switch (service) {
	case SINK:
		while (read(fd, chunk, sizeof(chunk)) > 0)
			;
		break;
	case SOURCE:
		fd_write_all(fd, chunk, sizeof(chunk));
		break;
	case ECHO:
	case ONCE:
		while ((n = read(fd, chunk, sizeof(chunk))) > 0) {
			fd_write_all(fd, chunk, (size_t)n);
			if (service == ONCE)
				break;
		}
		break;
	case MUTE:
		pause();
		break;
	case HTTP:
		n = read(fd, chunk, sizeof(chunk));
		if (n > 0 && memcmp(chunk, "GET / HTTP/1.0\r\n\r\n", (size_t)n) == 0)
			fd_write_all(fd, "HTTP/1.0 200\r\n\r\n", 16);
		break;
	}
}

static void accept_all(enum service service, int listener)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0)
			_exit(1);
		serve(service, fd);
		close(fd);
	}
}

/* Its process, and *ret_port. */
static pid_t start(enum service service, unsigned *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	cleanup_fd int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	assert_int_equal(listen(listener, 16), 0);
	*ret_port = ntohs(a.sin_port);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		accept_all(service, listener);
	return pid;
}

static void stop(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_all(void **state)
{
	(void)state;
	unsigned port;
	double s = 0;
	pid_t pid = start(SINK, &port);
	assert_int_equal(network_send(&client, port, BYTES, &s, &e), 0);
	assert_true(s > 0);
	stop(pid);
	pid = start(SOURCE, &port);
	assert_int_equal(network_receive(&client, port, BYTES, &s, &e), 0);
	assert_int_equal(network_receive(&client, port, BYTES + 1, &s, &e), -EIO);
	assert_string_equal(e.text, "200000 bytes came instead of 200001");
	stop(pid);
	pid = start(ECHO, &port);
	assert_int_equal(network_echo(&client, port, 100, &s, &e), 0);
	stop(pid);
	pid = start(HTTP, &port);
	assert_int_equal(network_ask(&client, port, 10, &s, &e), 0);
	stop(pid);
}

static void test_bad_services(void **state)
{
	(void)state;
	const struct network_client nowhere = { &runner, NULL, "pod" };
	unsigned port;
	double s;
	pid_t pid = start(ONCE, &port);
	assert_int_equal(network_echo(&client, port, 1, &s, &e), 0);
	assert_int_equal(network_echo(&client, port, 100, &s, &e), -EIO);
	assert_string_equal(e.text, "the pod does not answer");
	stop(pid);
	assert_int_equal(network_echo(&nowhere, port, 1, &s, &e), -EINVAL);
	assert_string_equal(e.text, "\"pod\" is no IP address");
}

/* Nobody serves that port yet, or never again: a signal ends the wait, and the transfer. */
static void test_interrupted(void **state)
{
	(void)state;
	unsigned port;
	double s;
	stop(start(MUTE, &port));
	assert_int_equal(raise(SIGTERM), 0);
	assert_int_equal(network_echo(&client, port, 1, &s, &e), -EINTR);
	pid_t pid = start(SINK, &port);
	assert_int_equal(network_send(&client, port, (uint64_t)1 << 40, &s, &e), -EINTR);
	stop(pid);
}

static int setup(void **state)
{
	(void)state;
	return runner_init(&runner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all), cmocka_unit_test(test_bad_services),
		cmocka_unit_test(test_interrupted), /* last: the signal stays */
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
