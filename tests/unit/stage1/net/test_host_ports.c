/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/host_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static const struct net_ip any = { .family = AF_UNSPEC };

/* A port that nobody has at the moment. */
static uint16_t free_port(int type)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	cleanup_fd int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

static struct net_ip ip(const char *text)
{
	struct net_ip a;
	assert_int_equal(net_ip_parse(text, &a), 0);
	return a;
}

static void taken_once(int protocol, int type)
{
	struct err e = ERR_INIT;
	uint16_t port = free_port(type);
	int fd = -EBADF, other = -EBADF, fd2 = -EBADF, other2 = -EBADF;
	const struct net_ip local = ip("127.0.0.1"), far = ip("192.0.2.77");
	assert_int_equal(host_port_take(protocol, &any, port, &fd, &other, &e), 0);
	assert_true(fd >= 0);
	assert_int_equal(host_port_take(protocol, &any, port, &fd2, &other2, &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "in use"));
	assert_int_equal(host_port_take(protocol, &local, port, &fd2, &other2, &e), -EADDRINUSE);
	assert_int_equal(fd2, -EBADF);
	fd_replace(&fd, -EBADF);
	fd_replace(&other, -EBADF);
	assert_int_equal(host_port_take(protocol, &local, port, &fd, &other, &e), 0);
	assert_int_equal(other, -EBADF);
	fd_replace(&fd, -EBADF);
	assert_true(host_port_take(protocol, &far, port, &fd, &other, &e) < 0); /* nobody's here */
}

static void test_tcp(void **state)
{
	(void)state;
	taken_once(IPPROTO_TCP, SOCK_STREAM);
}

static void test_udp(void **state)
{
	(void)state;
	taken_once(IPPROTO_UDP, SOCK_DGRAM);
}

/* A server of the host, whatever options it has set, is in the way, and not the other way round. */
static void test_servers(void **state)
{
	(void)state;
	const int on = 1;
	struct err e = ERR_INIT;
	int fd = -EBADF, other = -EBADF;
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(free_port(SOCK_STREAM)) };
	cleanup_fd int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(host_port_take(IPPROTO_TCP, &any, ntohs(at.sin_port), &fd, &other, &e),
			 -EADDRINUSE);
	fd_replace(&server, -EBADF);
	assert_int_equal(host_port_take(IPPROTO_TCP, &any, ntohs(at.sin_port), &fd, &other, &e), 0);
	cleanup_fd int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(late, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(late, (struct sockaddr *)&at, sizeof(at)), -1);
	/* Who connects without being led to the pod is refused at once. */
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	cleanup_fd int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	fd_close(fd);
	fd_close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_servers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
