/* SPDX-License-Identifier: Apache-2.0 */
/* Connections inside namespaces of their own, which the kernel leads to the one socket, or not. */
#include "stage1/net/local_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "stage1/net/netns.h"
#include "tests/support/fixture.h"

static int netns = -EBADF, listener = -EBADF, link_fd = -EBADF;

static struct sockaddr_in address_of(const char *ip, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	assert_int_equal(inet_pton(AF_INET, ip, &a.sin_addr), 1);
	return a;
}

static int bring_up(void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	/* An address that is the namespace's own, and no loopback. */
	struct sockaddr_in own = address_of("192.0.2.1", 0);
	struct ifreq alias = { .ifr_name = "lo:1" };
	memcpy(&alias.ifr_addr, &own, sizeof(own));
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &alias), 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	netns = netns_make(&e);
	if (netns == -EPERM)
		return 0;
	assert_true(netns >= 0);
	assert_int_equal(netns_call(netns, bring_up, NULL, &e), 0);
	int r = local_listener_make(netns, &listener, &link_fd, &e);
	if (r == -EPERM)
		netns = fd_close(netns);
	else
		assert_int_equal(r, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	netns = fd_close(netns);
	listener = fd_close(listener);
	link_fd = fd_close(link_fd);
	return 0;
}

static void need_privileges(void)
{
	if (netns < 0)
		skip();
}

struct target {
	const char *ip;
	uint16_t port;
	int fd; /* out: connected, or -errno */
};

static int dial(void *ctx, struct err *e)
{
	(void)e;
	struct target *t = ctx;
	struct sockaddr_in to = address_of(t->ip, t->port);
	cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	int r = connect(fd, (struct sockaddr *)&to, sizeof(to));
	t->fd = r < 0 ? -errno : TAKE_FD(fd);
	return 0;
}

static int connect_to(const char *ip, uint16_t port)
{
	struct err e = ERR_INIT;
	struct target t = { ip, port, -EBADF };
	assert_int_equal(netns_call(netns, dial, &t, &e), 0);
	return t.fd;
}

/* The port that was meant, of the connection that waits; 0: none waits. */
static uint16_t accept_one(void)
{
	struct sockaddr_in meant;
	socklen_t len = sizeof(meant);
	cleanup_fd int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0) {
		assert_int_equal(errno, EAGAIN);
		return 0;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&meant, &len), 0);
	return ntohs(meant.sin_port);
}

static void test_any_port(void **state)
{
	(void)state;
	need_privileges();
	static const uint16_t ports[] = { 1, 80, 8080, UINT16_MAX };
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		cleanup_fd int fd = connect_to("127.0.0.1", ports[i]);
		assert_true(fd >= 0);
		assert_int_equal(accept_one(), ports[i]);
	}
	cleanup_fd int other = connect_to("127.255.255.254", 80);
	assert_true(other >= 0);
	assert_int_equal(accept_one(), 80);
}

static void test_other_addresses(void **state)
{
	(void)state;
	need_privileges();
	assert_int_equal(connect_to("192.0.2.1", 80), -ECONNREFUSED);
	assert_int_equal(accept_one(), 0);
}

/* A namespace beside it, and the one that we are in, notice nothing. */
static void test_other_namespaces(void **state)
{
	(void)state;
	need_privileges();
	struct err e = ERR_INIT;
	cleanup_fd int mine = netns;
	netns = netns_make(&e);
	assert_int_equal(netns_call(netns, bring_up, NULL, &e), 0);
	assert_int_equal(connect_to("127.0.0.1", 80), -ECONNREFUSED);
	fd_close(netns);
	netns = TAKE_FD(mine);
	assert_int_equal(accept_one(), 0);
}

/* As "ip netns add" leaves it: the pod starts, and it works when somebody brings it up. */
static void test_loopback_is_down(void **state)
{
	(void)state;
	need_privileges();
	struct err e = ERR_INIT;
	teardown(NULL);
	netns = netns_make(&e);
	assert_int_equal(local_listener_make(netns, &listener, &link_fd, &e), 0);
	assert_true(connect_to("127.0.0.1", 80) < 0);
	assert_int_equal(netns_call(netns, bring_up, NULL, &e), 0);
	cleanup_fd int fd = connect_to("127.0.0.1", 80);
	assert_true(fd >= 0);
	assert_int_equal(accept_one(), 80);
}

static int listen_there(void *ctx, struct err *e)
{
	(void)e;
	struct sockaddr_in own = address_of("127.0.0.1", 80);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(listen(fd, 1), 0);
	*(int *)ctx = fd;
	return 0;
}

/* The manual says so. */
static void test_before_others(void **state)
{
	(void)state;
	need_privileges();
	struct err e = ERR_INIT;
	cleanup_fd int other = -EBADF;
	assert_int_equal(netns_call(netns, listen_there, &other, &e), 0);
	cleanup_fd int fd = connect_to("127.0.0.1", 80);
	assert_int_equal(accept_one(), 80);
	link_fd = fd_close(link_fd);
	cleanup_fd int second = connect_to("127.0.0.1", 80);
	assert_int_equal(accept_one(), 0);
	assert_true(fd_close(accept4(other, NULL, NULL, SOCK_CLOEXEC)) < 0);
	assert_true(fd >= 0 && second >= 0);
}

static void test_end_of_link(void **state)
{
	(void)state;
	need_privileges();
	link_fd = fd_close(link_fd);
	assert_int_equal(connect_to("127.0.0.1", 80), -ECONNREFUSED);
}

static void test_end_of_socket(void **state)
{
	(void)state;
	need_privileges();
	listener = fd_close(listener);
	assert_int_equal(connect_to("127.0.0.1", 80), -ECONNREFUSED);
}

static void test_twice(void **state)
{
	(void)state;
	need_privileges();
	struct err e = ERR_INIT;
	int second = -EBADF, second_link = -EBADF;
	int r = local_listener_make(netns, &second, &second_link, &e);
	fd_close(second);
	fd_close(second_link);
	assert_int_equal(r, 0);
	/* The kernel asks both programs, and the first one has an answer. */
	cleanup_fd int fd = connect_to("127.0.0.1", 80);
	assert_true(fd >= 0);
	assert_int_equal(accept_one(), 80);
}

static void test_no_namespace(void **state)
{
	(void)state;
	need_privileges();
	struct err e = ERR_INIT;
	int fd = -EBADF, link = -EBADF;
	assert_true(local_listener_make(STDIN_FILENO, &fd, &link, &e) < 0);
	assert_int_equal(fd, -EBADF);
	assert_int_equal(link, -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_any_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_namespaces, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loopback_is_down, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_of_link, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end_of_socket, setup, teardown),
		cmocka_unit_test_setup_teardown(test_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_namespace, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
