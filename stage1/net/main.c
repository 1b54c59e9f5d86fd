/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-net: makes the network of one pod, and keeps the privileges for that away from the
 * supervisor, which talks to the pod. It talks to the supervisor alone (stage1/net/message.h), and
 * takes the network away when that is gone. Called with --clean-up by the gc entrypoint, it takes
 * away what one that was killed has left, with --check it asks plugins whether all is as it was.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/uuid.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1/net/cni/state.h"
#include "stage1/net/connection.h"
#include "stage1/net/message.h"

enum action {
	ACTION_SERVE,
	ACTION_CLEAN_UP,
	ACTION_CHECK,
};

struct options {
	enum action action;
	struct connection_input in;
};

static void options_init(struct options *o)
{
	*o = (struct options){
		.in = { .pod_fd = NET_FD_POD, .cancel_fd = NET_FD_SOCKET, .netns_socket = -EBADF }
	};
	strv_init(&o->in.nets, NET_INTERFACES_MAX);
	strv_init(&o->in.config_dirs, CONNECTION_DIRS_MAX);
	strv_init(&o->in.plugin_dirs, CONNECTION_DIRS_MAX);
	net_dns_init(&o->in.dns);
}

static void options_deinit(struct options *o)
{
	strv_deinit(&o->in.nets);
	strv_deinit(&o->in.config_dirs);
	strv_deinit(&o->in.plugin_dirs);
	net_dns_deinit(&o->in.dns);
}

enum {
	OPT_UUID,
	OPT_NET,
	OPT_NETNS,
	OPT_PASST,
	OPT_CONFIG,
	OPT_CNI_PATH,
	OPT_DNS,
	OPT_DNS_SEARCH,
	OPT_DNS_OPT,
	OPT_TAPS,
	OPT_NETNS_COMES,
	OPT_DEBUG,
	OPT_CLEAN_UP,
	OPT_CHECK,
};

static const struct option table[] = {
	{ "uuid", required_argument, NULL, OPT_UUID },
	{ "net", required_argument, NULL, OPT_NET },
	{ "netns", required_argument, NULL, OPT_NETNS },
	{ "passt", required_argument, NULL, OPT_PASST },
	{ "net-config", required_argument, NULL, OPT_CONFIG },
	{ "cni-path", required_argument, NULL, OPT_CNI_PATH },
	{ "dns", required_argument, NULL, OPT_DNS },
	{ "dns-search", required_argument, NULL, OPT_DNS_SEARCH },
	{ "dns-opt", required_argument, NULL, OPT_DNS_OPT },
	{ "taps", required_argument, NULL, OPT_TAPS },
	{ "netns-comes", no_argument, NULL, OPT_NETNS_COMES },
	{ "debug", no_argument, NULL, OPT_DEBUG },
	{ "clean-up", no_argument, NULL, OPT_CLEAN_UP },
	{ "check", no_argument, NULL, OPT_CHECK },
	{ 0 },
};

static int take_taps(struct options *o)
{
	uint64_t n;
	int r = num_parse_u64(optarg, TAP_QUEUES_MAX, &n);
	if (r == 0)
		o->in.n_queues = (size_t)n;
	return r;
}

static int take_option(int option, struct options *o)
{
	switch (option) {
	case OPT_UUID:
		o->in.uuid = optarg;
		return uuid_is_valid(optarg) ? 0 : -EINVAL;
	case OPT_NET:
		return strv_add(&o->in.nets, optarg);
	case OPT_NETNS:
		o->in.netns = optarg;
		return 0;
	case OPT_PASST:
		o->in.passt = optarg;
		return 0;
	case OPT_CONFIG:
		return strv_add(&o->in.config_dirs, optarg);
	case OPT_CNI_PATH:
		return strv_add(&o->in.plugin_dirs, optarg);
	case OPT_DNS:
		return strv_add(&o->in.dns.nameservers, optarg);
	case OPT_DNS_SEARCH:
		return strv_add(&o->in.dns.search, optarg);
	case OPT_DNS_OPT:
		return strv_add(&o->in.dns.options, optarg);
	case OPT_TAPS:
		return take_taps(o);
	case OPT_NETNS_COMES:
		o->in.netns_socket = NET_FD_NETNS;
		return 0;
	case OPT_DEBUG:
		o->in.debug = true;
		return 0;
	case OPT_CLEAN_UP:
	case OPT_CHECK:
		o->action = option == OPT_CHECK ? ACTION_CHECK : ACTION_CLEAN_UP;
		o->in.cancel_fd = -EBADF;
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse_options(int argc, char **argv, struct options *o)
{
	int r = 0;
	for (int c; r == 0 && (c = getopt_long(argc, argv, "", table, NULL)) != -1;)
		r = take_option(c, o);
	return r < 0 || !o->in.uuid ? -EINVAL : 0;
}

/* ---- messages ---- */

/* A supervisor that is gone shows as the end of the socket. */
static int tell(struct net_message *m, const int *fds, size_t n_fds)
{
	size_t sent;
	return unix_send_fds(NET_FD_SOCKET, m, offsetof(struct net_message, text) + m->len, fds,
			     n_fds, &sent);
}

static int tell_tap(struct net_message *m, const struct tap *t)
{
	int fds[2 * TAP_QUEUES_MAX];
	bool has_vhost = true;
	for (size_t i = 0; i < t->n_queues; i++) {
		has_vhost &= t->vhosts[i] >= 0;
		fds[i] = t->queues[i];
		fds[t->n_queues + i] = t->vhosts[i];
	}
	m->kind = NET_MESSAGE_TAP;
	m->len = 0;
	m->n_queues = (uint32_t)t->n_queues;
	m->n_vhosts = has_vhost ? m->n_queues : 0;
	return tell(m, fds, m->n_queues + m->n_vhosts);
}

static int tell_socket(struct net_message *m, enum net_message_kind kind, int socket)
{
	m->kind = kind;
	m->len = 0;
	return socket < 0 ? 0 : tell(m, &socket, 1);
}

/* {"net": ..., "dns": ...}, as the supervisor reads it. */
static int tell_ready(struct net_message *m, const struct connection *c, struct err *e)
{
	cleanup_json struct json_object *body = json_object_new_object();
	struct json_object *net = NULL, *dns = NULL;
	cleanup_buf struct buf text;
	buf_init(&text, NET_TEXT_MAX);
	int r = net_encode(&c->net, &net);
	if (r == 0)
		r = json_put(body, "net", net);
	if (r == 0)
		r = net_dns_encode(&c->dns, &dns);
	if (r == 0)
		r = json_put(body, "dns", dns);
	if (r == 0)
		r = json_write(body, false, &text);
	if (r < 0)
		return err_sys(e, r, "more than a pod can be told");
	m->kind = NET_MESSAGE_READY;
	m->len = (uint32_t)buf_len(&text);
	memcpy(m->text, buf_data(&text), m->len);
	r = tell(m, NULL, 0);
	return r < 0 ? err_sys(e, r, "supervisor") : 0;
}

static int tell_all(struct net_message *m, struct connection *c, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->n_taps; i++)
		r = tell_tap(m, &c->taps[i]);
	if (r == 0)
		r = tell_socket(m, NET_MESSAGE_STREAM, c->passt.stream);
	if (r == 0)
		r = tell_socket(m, NET_MESSAGE_LISTENER, c->listener);
	if (r < 0)
		return err_sys(e, r, "supervisor");
	r = tell_ready(m, c, e);
	connection_close_given(c);
	return r;
}

static void tell_failure(struct net_message *m, const struct err *e)
{
	m->kind = NET_MESSAGE_FAILED;
	m->len = (uint32_t)MIN(strlen(e->text), (size_t)NET_TEXT_MAX);
	memcpy(m->text, e->text, m->len);
	tell(m, NULL, 0);
}

/* ---- life ---- */

/*
 * Until nobody wants the network any more (false), or the process @pidfd has ended before (true).
 */
static bool wait_for_end(int pidfd)
{
	struct pollfd ways[] = { { NET_FD_SOCKET, POLLIN, 0 }, { pidfd, POLLIN, 0 } };
	while (poll(ways, ARRAY_SIZE(ways), -1) < 0)
		;
	return !ways[0].revents;
}

static int complain(const char *what, const struct err *e)
{
	fprintf(stderr, "stage1: %s: %s\n", what, e->text);
	return 1;
}

static void say_times(const struct connection *c, int64_t start_ns)
{
	fprintf(stderr, "stage1: network after %.1f ms, of which plugins took %.1f ms\n",
		(double)(clock_monotonic_ns() - start_ns) / NS_PER_MS,
		(double)c->plugins_ns / NS_PER_MS);
}

static int serve(const struct connection_input *in)
{
	int64_t start_ns = clock_monotonic_ns();
	struct err e = ERR_INIT, end = ERR_INIT;
	CLEANUP(connection_deinit) struct connection c = CONNECTION_INIT;
	net_dns_init(&c.dns);
	cleanup_free struct net_message *m = calloc(1, sizeof(*m));
	int r = m ? connection_make(&c, in, &e) : err_sys(&e, -ENOMEM, "network");
	if (r == 0)
		r = tell_all(m, &c, &e);
	if (r == 0 && in->debug)
		say_times(&c, start_ns);
	if (r == 0)
		r = connection_release(in, &e);
	if (r == 0 && wait_for_end(c.passt.pidfd))
		r = passt_ended(&c.passt, &e);
	if (r < 0 && m) {
		tell_failure(m, &e);
		shutdown(in->netns_socket, SHUT_RDWR); /* the pod may wait there */
		wait_for_end(-EBADF); /* this is said before anything is said of the end */
	}
	int left = connection_end(&c, in, &end);
	return left < 0 ? complain("warning: network", &end) : 0;
}

static int check(const struct connection_input *in)
{
	struct err e = ERR_INIT;
	size_t asked, n;
	if (connection_check(in, &asked, &n, &e) < 0)
		return complain("network", &e);
	fprintf(stderr, "%zu of %zu networks checked\n", asked, n);
	return 0;
}

/* stage0 keeps the pod until this works, so somebody may have to say that it never will. */
static int clean_up(const struct connection_input *in)
{
	struct err why = ERR_INIT, e = ERR_INIT;
	char dir[PATH_MAX];
	if (connection_clean_up(in, &why) == 0)
		return 0;
	if (access(CNI_STATE_FILE, F_OK) < 0 || !getcwd(dir, sizeof(dir)))
		return complain("gc: network", &why);
	err_set(&e, why.code, "%s (to give up what is left, remove \"%s/" CNI_STATE_FILE "\")",
		why.text, dir);
	return complain("gc: network", &e);
}

static int act(const struct options *o)
{
	switch (o->action) {
	case ACTION_SERVE:
		return serve(&o->in);
	case ACTION_CHECK:
		return check(&o->in);
	case ACTION_CLEAN_UP:
		return clean_up(&o->in);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct options o;
	options_init(&o);
	signal(SIGPIPE, SIG_IGN); /* nobody may read what is said while all is taken away */
	int r = parse_options(argc, argv, &o) < 0 ? 2 : 0;
	if (r == 0)
		for (int fd = NET_FD_SOCKET; fd <= NET_FD_NETNS; fd++)
			fd_set_cloexec(fd, true);
	if (r == 0)
		r = act(&o);
	else
		fprintf(stderr, "husk-net: is started by husk\n");
	options_deinit(&o);
	return r;
}
