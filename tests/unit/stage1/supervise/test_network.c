/* SPDX-License-Identifier: Apache-2.0 */
/* Which network a pod gets. That it gets it, tests/system/network.sh asks. */
#include "stage1/supervise/network.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/route.h"
#include "lib/os/unix.h"
#include "stage1/net/message.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"

struct ask {
	const char *nets[3];
	const char *netns;
	bool in_netns, is_user, no_plugins, has_passt;
};

static int choose(void **state, struct ask a, struct network_choice *ret, struct err *e)
{
	CLEANUP(network_options_deinit) struct network_options o;
	struct backend backend = fake_backend;
	backend.in_netns = a.in_netns;
	network_options_init(&o);
	for (size_t i = 0; i < ARRAY_SIZE(a.nets) && a.nets[i]; i++)
		assert_int_equal(strv_add(&o.nets, a.nets[i]), 0);
	o.netns = a.netns;
	unlinkat(fixture_dir(state), "ptp", 0);
	if (!a.no_plugins)
		fd_close(openat(fixture_dir(state), "ptp", O_CREAT | O_WRONLY, 0755));
	unlinkat(fixture_dir(state), "passt", 0);
	if (a.has_passt)
		fd_close(openat(fixture_dir(state), "passt", O_CREAT | O_WRONLY, 0755));
	assert_int_equal(setenv("PATH", fixture_path(state), 1), 0);
	assert_int_equal(strv_add(&o.plugin_dirs, fixture_path(state)), 0);
	*e = ERR_INIT;
	return network_choose(&o, &backend, !a.is_user, ret, e);
}

#define ASK(...) choose(state, (struct ask){ __VA_ARGS__ }, &c, &e)

static void test_default(void **state)
{
	struct network_choice c;
	struct err e;
	assert_int_equal(ASK(.netns = NULL), 0);
	assert_int_equal(c.kind, NETWORK_OWN);
	assert_true(c.is_default);
	assert_int_equal(ASK(.no_plugins = true), 0);
	assert_int_equal(c.kind, NETWORK_NONE);
	assert_true(c.is_default);
	assert_int_equal(ASK(.is_user = true), 0);
	assert_int_equal(c.kind, NETWORK_NONE);
}

static void test_asked_for(void **state)
{
	struct network_choice c;
	struct err e;
	assert_int_equal(ASK(.nets = { "none" }), 0);
	assert_int_equal(c.kind, NETWORK_NONE);
	assert_false(c.is_default);
	assert_int_equal(ASK(.nets = { "a", "b:IP=192.0.2.1" }, .no_plugins = true), 0);
	assert_int_equal(c.kind, NETWORK_OWN); /* who misses plugins is told so by husk-net */
	assert_int_equal(ASK(.netns = "/run/netns/a"), 0);
	assert_int_equal(c.kind, NETWORK_OWN);
	assert_int_equal(ASK(.nets = { "host" }, .in_netns = true), 0);
	assert_int_equal(c.kind, NETWORK_HOST);
}

static void test_refused(void **state)
{
	struct network_choice c;
	struct err e;
	assert_int_equal(ASK(.nets = { "host" }), -EOPNOTSUPP);
	assert_string_equal(e.text,
			    "flavor fake requires private network configuration (try --net)");
	assert_int_equal(ASK(.nets = { "none", "a" }), -EINVAL);
	assert_int_equal(ASK(.nets = { "a", "host" }, .in_netns = true), -EINVAL);
	assert_int_equal(ASK(.nets = { "a" }, .netns = "/run/netns/a"), -EINVAL);
	assert_int_equal(ASK(.nets = { "a" }, .is_user = true), -EPERM);
	assert_int_equal(ASK(.netns = "/run/netns/a", .is_user = true), -EPERM);
}

/* Of others than root: what passt can do, and nothing else. */
static void test_user(void **state)
{
	struct network_choice c;
	struct err e;
	bool online = route_to_world(AF_INET) || route_to_world(AF_INET6);
	assert_int_equal(ASK(.is_user = true, .has_passt = true), 0);
	assert_int_equal(c.kind, online ? NETWORK_USER : NETWORK_NONE);
	assert_int_equal(ASK(.nets = { "default" }, .is_user = true, .has_passt = true), 0);
	assert_int_equal(c.kind, NETWORK_USER); /* who is not online is told so by husk-net */
	assert_int_equal(ASK(.nets = { "none" }, .is_user = true, .has_passt = true), 0);
	assert_int_equal(c.kind, NETWORK_NONE);
	assert_int_equal(ASK(.nets = { "default" }, .is_user = true), -EPERM);
	assert_non_null(strstr(e.text, "install passt"));
	assert_int_equal(ASK(.nets = { "a" }, .is_user = true, .has_passt = true), -EPERM);
	assert_int_equal(ASK(.nets = { "default", "a" }, .is_user = true, .has_passt = true),
			 -EPERM);
	assert_int_equal(ASK(.netns = "/run/netns/a", .is_user = true, .has_passt = true), -EPERM);
	assert_int_equal(ASK(.netns = NULL, .has_passt = true), 0);
	assert_int_equal(c.kind, NETWORK_OWN); /* root has plugins */
}

/* What husk-net would refuse to execute is none: such a pod has no network, but starts. */
static void test_untrusted_plugin(void **state)
{
	CLEANUP(network_options_deinit) struct network_options o;
	struct network_choice c;
	struct err e = ERR_INIT;
	network_options_init(&o);
	assert_int_equal(strv_add(&o.plugin_dirs, fixture_path(state)), 0);
	fd_close(openat(fixture_dir(state), "ptp", O_CREAT | O_WRONLY, 0755));
	assert_int_equal(network_choose(&o, &fake_backend, true, &c, &e), 0);
	assert_int_equal(c.kind, NETWORK_OWN);
	assert_int_equal(fchmodat(fixture_dir(state), "ptp", 0777, 0), 0);
	assert_int_equal(network_choose(&o, &fake_backend, true, &c, &e), 0);
	assert_int_equal(c.kind, NETWORK_NONE);
	assert_true(c.is_default);
}

/* What is configured as nowhere is no default network, and no reason to warn. */
static void test_off(void **state)
{
	(void)state;
	CLEANUP(network_options_deinit) struct network_options o;
	struct network_choice c;
	struct err e = ERR_INIT;
	network_options_init(&o);
	assert_false(network_is_off(&o));
	assert_int_equal(strv_add(&o.plugin_dirs, ""), 0);
	assert_true(network_is_off(&o));
	assert_int_equal(network_choose(&o, &fake_backend, true, &c, &e), 0);
	assert_int_equal(c.kind, NETWORK_NONE);
}

/* A helper that sends @kind with @text, or nothing, and ends by @sig, or with 3. */
static void start_helper(struct network *n, int kind, const char *text, int sig)
{
	int pair[2];
	struct net_message m = { .kind = (uint32_t)kind, .len = (uint32_t)strlen(text) };
	memcpy(m.text, text, m.len);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	network_init(n);
	n->socket = pair[0];
	n->helper = fork();
	if (n->helper == 0) {
		size_t len = offsetof(struct net_message, text) + m.len, sent;
		if (kind >= 0)
			unix_send_fds(pair[1], &m, len, NULL, 0, &sent);
		kill(getpid(), sig);
		_exit(3);
	}
	close(pair[1]);
}

/* A message of a helper with taps or a stream, and what becomes of the next that ends it. */
struct devices {
	enum net_message_kind kind;
	uint32_t n_queues, n_vhosts;
	size_t n_fds, times;
	bool are_wrong;
};

static void expect_devices(const struct devices *d)
{
	const int fd = STDIN_FILENO;
	const int fds[UNIX_FDS_MAX] = { fd, fd, fd, fd, fd, fd, fd, fd };
	const struct net_message m = { d->kind, d->n_queues, d->n_vhosts, 0, "" };
	struct network n;
	struct err e = ERR_INIT;
	int pair[2];
	size_t sent = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	network_init(&n);
	n.socket = pair[0];
	n.helper = fork();
	if (n.helper == 0)
		_exit(3);
	for (size_t i = 0; i < d->times; i++)
		assert_int_equal(unix_send_fds(pair[1], &m, offsetof(struct net_message, text), fds,
					       d->n_fds, &sent),
				 0);
	close(pair[1]);
	assert_int_equal(network_receive(&n, &e), d->are_wrong ? -EPROTO : -EPIPE);
	network_deinit(&n);
}

/* As many descriptors as there is room for, and as many as it says. */
static void test_devices(void **state)
{
	static const struct devices cases[] = {
		{ NET_MESSAGE_TAP, 1, 0, 1, NET_INTERFACES_MAX, false },
		{ NET_MESSAGE_TAP, 1, 0, 1, NET_INTERFACES_MAX + 1, true },
		{ NET_MESSAGE_TAP, BACKEND_QUEUES_MAX, BACKEND_QUEUES_MAX, 2 * BACKEND_QUEUES_MAX,
		  1, false },
		{ NET_MESSAGE_TAP, BACKEND_QUEUES_MAX + 1, 0, BACKEND_QUEUES_MAX + 1, 1, true },
		{ NET_MESSAGE_TAP, 1, 0, 2, 1, true },
		{ NET_MESSAGE_TAP, 2, 1, 3, 1, true },
		{ NET_MESSAGE_STREAM, 0, 0, 1, 1, false },
		{ NET_MESSAGE_STREAM, 0, 0, 1, 2, true },
		{ NET_MESSAGE_STREAM, 0, 0, 2, 1, true },
		{ NET_MESSAGE_STREAM, 0, 0, 0, 1, true },
		{ NET_MESSAGE_LISTENER, 0, 0, 1, 1, false },
		{ NET_MESSAGE_LISTENER, 0, 0, 1, 2, true },
		{ NET_MESSAGE_LISTENER, 0, 0, 2, 1, true },
		{ NET_MESSAGE_LISTENER, 0, 0, 0, 1, true },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		expect_devices(&cases[i]);
}

/* What it or its own end says, before the pod has a network and later. */
static void test_helper_ends(void **state)
{
	(void)state;
	struct network n;
	struct err e = ERR_INIT;
	start_helper(&n, NET_MESSAGE_FAILED, "no cable", 0);
	assert_int_equal(network_receive(&n, &e), -EIO);
	assert_string_equal(e.text, "failed to setup network: no cable");
	assert_int_equal(network_end(&n, &e), -EIO);
	start_helper(&n, -1, "", SIGKILL);
	assert_int_equal(network_receive(&n, &e), -EPIPE);
	assert_string_equal(e.text, "failed to setup network: husk-net: killed by signal 9");
	network_deinit(&n);
	start_helper(&n, NET_MESSAGE_FAILED, "no cable", 0);
	assert_int_equal(network_lost(&n, &e), -EIO);
	assert_string_equal(e.text, "what connects the pod ended unexpectedly: no cable");
	network_deinit(&n);
	start_helper(&n, -1, "", 0);
	assert_int_equal(network_lost(&n, &e), -EPIPE);
	assert_string_equal(e.text,
			    "what connects the pod ended unexpectedly: husk-net: exit code 3");
	network_deinit(&n);
	start_helper(&n, 99, "", 0);
	assert_int_equal(network_lost(&n, &e), -EPROTO);
	network_deinit(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_default), fixture_test(test_asked_for),
		fixture_test(test_refused), fixture_test(test_user),
		fixture_test(test_off),     fixture_test(test_helper_ends),
		fixture_test(test_devices), fixture_test(test_untrusted_plugin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
