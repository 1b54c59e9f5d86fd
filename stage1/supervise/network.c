/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/network.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/route.h"
#include "lib/os/spawn.h"
#include "lib/os/trusted.h"
#include "lib/os/unix.h"
#include "lib/wire/stage1.h"
#include "stage1/net/message.h"

#define HELPER "husk-net"

/* Each network, directory, plugin directory and word about names, and eight others. */
#define ARGS_MAX (8 + NET_INTERFACES_MAX + 2 * NETWORK_DIRS_MAX + 3 * NET_DNS_LIST_MAX)

/* Where programs are looked for if the environment does not say it. */
#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

/* What the default network cannot do without. */
#define DEFAULT_PLUGIN "ptp"

#define DEFAULT_NET "default"

_Static_assert(STAGE1_NETS_MAX == NET_INTERFACES_MAX, "what stage0 takes can be made");

void network_options_init(struct network_options *o)
{
	*o = (struct network_options){ 0 };
	strv_init(&o->nets, NET_INTERFACES_MAX);
	strv_init(&o->config_dirs, NETWORK_DIRS_MAX);
	strv_init(&o->plugin_dirs, NETWORK_DIRS_MAX);
}

void network_options_deinit(struct network_options *o)
{
	strv_deinit(&o->nets);
	strv_deinit(&o->config_dirs);
	strv_deinit(&o->plugin_dirs);
}

void network_init(struct network *n)
{
	*n = (struct network){ .socket = -EBADF, .listener = -EBADF };
	net_dns_init(&n->dns);
}

/* ---- which one ---- */

bool network_is_off(const struct network_options *o)
{
	return o->plugin_dirs.n == 1 && !*o->plugin_dirs.v[0];
}

/* Whether husk-net would execute it. */
static bool has_plugin_in(const char *dirs)
{
	char path[PATH_MAX];
	struct err none = ERR_INIT;
	return path_find_program(DEFAULT_PLUGIN, dirs, path, sizeof(path)) == 0 &&
	       trusted_path(path, geteuid(), &none) == 0;
}

static bool has_plugin(const struct network_options *o)
{
	if (network_is_off(o))
		return false;
	if (o->plugin_dirs.n == 0)
		return has_plugin_in(NETWORK_PLUGIN_DIRS);
	for (size_t i = 0; i < o->plugin_dirs.n; i++)
		if (has_plugin_in(o->plugin_dirs.v[i]))
			return true;
	return false;
}

/* The user's, who executes it with the rights that he has anyway. */
static int find_passt(char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	return path_find_program("passt", dirs ? dirs : USUAL_PATH, path, PATH_MAX);
}

static bool has_net(const struct network_options *o, const char *name)
{
	for (size_t i = 0; i < o->nets.n; i++)
		if (strcmp(o->nets.v[i], name) == 0)
			return true;
	return false;
}

static int check_choice(const struct network_options *o, const struct backend *backend,
			const struct network_choice *c, struct err *e)
{
	if (o->nets.n > 1 && c->kind != NETWORK_OWN)
		return err_set(e, -EINVAL, "--net=%s: no other network goes with it",
			       c->kind == NETWORK_NONE ? "none" : "host");
	if (o->nets.n > 0 && o->netns)
		return err_set(e, -EINVAL,
			       "--netns: a namespace has its networks (leave --net away)");
	if (c->kind == NETWORK_HOST && !backend->in_netns)
		return err_set(e, -EOPNOTSUPP,
			       "flavor %s requires private network configuration (try --net)",
			       backend->flavor);
	return 0;
}

/* Whether passt can do what it does for such a pod. */
static bool is_online(const struct backend *backend)
{
	if (!route_to_world(AF_INET) && !route_to_world(AF_INET6))
		return false;
	return !backend->in_netns || access("/dev/net/tun", R_OK | W_OK) == 0;
}

/* Without anybody having asked for it, a host that is not online has pods, too. */
static enum network_kind choose_of_user(const struct network_options *o,
					const struct backend *backend, bool is_default)
{
	char path[PATH_MAX];
	if (find_passt(path) < 0 || network_is_off(o))
		return is_default ? NETWORK_NONE : NETWORK_OWN;
	if (is_default)
		return is_online(backend) ? NETWORK_USER : NETWORK_NONE;
	return o->nets.n == 1 && has_net(o, DEFAULT_NET) ? NETWORK_USER : NETWORK_OWN;
}

int network_choose(const struct network_options *o, const struct backend *backend, bool is_root,
		   struct network_choice *ret, struct err *e)
{
	struct network_choice c = { .kind = NETWORK_OWN };
	if (has_net(o, "none"))
		c.kind = NETWORK_NONE;
	else if (has_net(o, "host"))
		c.kind = NETWORK_HOST;
	c.is_default = o->nets.n == 0 && !o->netns;
	if (!is_root && c.kind == NETWORK_OWN)
		c.kind = choose_of_user(o, backend, c.is_default);
	else if (c.is_default && !has_plugin(o))
		c.kind = NETWORK_NONE;
	int r = check_choice(o, backend, &c, e);
	if (r == 0 && c.kind == NETWORK_OWN && !is_root)
		r = err_set(e, -EPERM, "--%s: only root may connect pods (use --net=none%s)",
			    o->netns ? "netns" : "net",
			    has_net(o, DEFAULT_NET) ? ", or install passt"
						    : ", or --net=default with passt");
	if (r == 0)
		*ret = c;
	return r;
}

/* ---- start ---- */

static int add_each(struct strv *argv, const char *option, const struct strv *values)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < values->n; i++)
		r = strv_addf(argv, "--%s=%s", option, values->v[i]);
	return r;
}

static int add_plugin_dirs(struct strv *argv, const struct strv *dirs)
{
	if (dirs->n > 0 && *dirs->v[0])
		return add_each(argv, "cni-path", dirs);
	const char *dir = NETWORK_PLUGIN_DIRS;
	int r = 0;
	for (size_t len; r == 0 && *dir; dir += len + (dir[len] != '\0')) {
		len = strcspn(dir, ":");
		r = strv_addf(argv, "--cni-path=%.*s", (int)len, dir);
	}
	return r;
}

/* "host" and "none" are words between the user and us. */
static int add_names(struct strv *argv, const struct names_options *o)
{
	int r = names_has_servers(o) ? add_each(argv, "dns", &o->servers) : 0;
	if (r == 0)
		r = add_each(argv, "dns-search", &o->search);
	return r < 0 ? r : add_each(argv, "dns-opt", &o->options);
}

static int add_passt(struct strv *argv)
{
	char path[PATH_MAX];
	int r = find_passt(path);
	return r < 0 ? r : strv_addf(argv, "--passt=%s", path);
}

static int make_argv(const struct network_input *in, struct strv *argv)
{
	const struct network_options *o = in->options;
	int r = strv_add(argv, HELPER);
	if (r == 0)
		r = strv_addf(argv, "--uuid=%s", in->uuid);
	if (r == 0 && in->kind == NETWORK_USER)
		r = add_passt(argv);
	else if (r == 0 && o->nets.n > 0)
		r = add_each(argv, "net", &o->nets);
	else if (r == 0)
		r = o->netns ? strv_addf(argv, "--netns=%s", o->netns)
			     : strv_add(argv, "--net=default");
	if (r == 0)
		r = add_each(argv, "net-config", &o->config_dirs);
	if (r == 0)
		r = add_plugin_dirs(argv, &o->plugin_dirs);
	if (r == 0)
		r = add_names(argv, in->names);
	if (r == 0)
		r = strv_addf(argv, "--taps=%zu", in->n_queues);
	if (r == 0 && in->netns_comes)
		r = strv_add(argv, "--netns-comes");
	return r == 0 && in->debug ? strv_add(argv, "--debug") : r;
}

/*
 * As of all helpers (stage1/pod/process.h): nobody but the supervisor tells it when to end. It
 * outlives that.
 */
static int spawn_helper(const struct network_input *in, const char *program, int socket, int netns,
			pid_t *ret)
{
	static char *const no_environment[] = { NULL };
	static const int not_its[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	CLEANUP(strv_deinit) struct strv argv;
	strv_init(&argv, ARGS_MAX);
	int r = make_argv(in, &argv);
	if (r < 0)
		return r;
	struct spawn_plan plan = {
		.program = program, .argv = argv.v, .envp = no_environment, .new_session = true
	};
	for (size_t i = 0; i < ARRAY_SIZE(not_its); i++)
		sigaddset(&plan.blocked, not_its[i]);
	spawn_plan_limit(&plan, RLIMIT_CORE, 0);
	spawn_plan_fd(&plan, STDERR_FILENO, STDERR_FILENO);
	spawn_plan_fd(&plan, socket, NET_FD_SOCKET);
	spawn_plan_fd(&plan, in->lock_fd, NET_FD_POD);
	if (netns >= 0)
		spawn_plan_fd(&plan, netns, NET_FD_NETNS);
	return spawn(&plan, ret, NULL);
}

static int make_pair(int *ret_here, int *ret_there)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ret_here = pair[0];
	*ret_there = pair[1];
	return 0;
}

int network_start(struct network *n, const struct network_input *in, int *ret_netns, struct err *e)
{
	char program[PATH_MAX];
	cleanup_fd int there = -EBADF, netns = -EBADF, netns_there = -EBADF;
	int r = path_from_self(HELPER, program, sizeof(program));
	if (r < 0)
		return err_set(e, r, HELPER " is not beside stage1's run (install husk again)");
	r = make_pair(&n->socket, &there);
	if (r == 0 && in->netns_comes)
		r = make_pair(&netns, &netns_there);
	if (r == 0)
		r = spawn_helper(in, program, there, netns_there, &n->helper);
	if (r < 0)
		return err_sys(e, r, "cannot start \"%s\"", program);
	if (in->netns_comes)
		*ret_netns = TAKE_FD(netns);
	return 0;
}

/* ---- what comes ---- */

static int take_tap(struct network *n, const struct net_message *m, int *fds, size_t n_fds)
{
	if (n->n_taps == NET_INTERFACES_MAX || m->n_queues > BACKEND_QUEUES_MAX ||
	    m->n_queues + m->n_vhosts != n_fds || (m->n_vhosts && m->n_vhosts != m->n_queues))
		return -EPROTO;
	struct backend_tap *t = &n->taps[n->n_taps++];
	*t = (struct backend_tap){ .n_queues = m->n_queues, .has_vhost = m->n_vhosts > 0 };
	for (size_t i = 0; i < m->n_queues; i++) {
		t->queues[i] = TAKE_FD(fds[i]);
		t->vhosts[i] = m->n_vhosts ? TAKE_FD(fds[m->n_queues + i]) : -EBADF;
	}
	return 0;
}

static int take_stream(struct network *n, int *fds, size_t n_fds)
{
	if (n->n_taps > 0 || n_fds != 1)
		return -EPROTO;
	struct backend_tap *t = &n->taps[n->n_taps++];
	*t = (struct backend_tap){ .n_queues = 1, .is_stream = true };
	t->queues[0] = TAKE_FD(fds[0]);
	t->vhosts[0] = -EBADF;
	return 0;
}

static int take_listener(struct network *n, int *fds, size_t n_fds)
{
	if (n->listener >= 0 || n_fds != 1)
		return -EPROTO;
	n->listener = TAKE_FD(fds[0]);
	return 0;
}

/* {"net": as net_encode() has it, "dns": as net_dns_encode() has it} */
static int take_report(struct network *n, const struct net_message *m)
{
	cleanup_json struct json_object *body = NULL;
	int r = json_parse(m->text, m->len, &body);
	n->net = r == 0 ? calloc(1, sizeof(*n->net)) : NULL;
	if (r == 0 && !n->net)
		r = -ENOMEM;
	if (r == 0)
		r = net_decode(json_member(body, "net"), n->net);
	if (r == 0)
		r = net_dns_decode(json_member(body, "dns"), &n->dns);
	return r;
}

/* 1: it was the last. */
static int take_message(struct network *n, struct net_message *m, int *fds, size_t n_fds,
			struct err *e)
{
	int r = -EPROTO;
	if (m->kind == NET_MESSAGE_FAILED)
		return err_set(e, -EIO, "%s", m->text);
	if (m->kind == NET_MESSAGE_TAP)
		r = take_tap(n, m, fds, n_fds);
	else if (m->kind == NET_MESSAGE_STREAM)
		r = take_stream(n, fds, n_fds);
	else if (m->kind == NET_MESSAGE_LISTENER)
		r = take_listener(n, fds, n_fds);
	else if (m->kind == NET_MESSAGE_READY && (r = take_report(n, m)) == 0)
		return 1;
	return r < 0 ? err_sys(e, r, HELPER) : 0;
}

/* It is reaped at the end. */
static int describe_end(const struct network *n, struct err *e)
{
	siginfo_t info = { 0 };
	waitid(P_PID, (id_t)n->helper, &info, WEXITED | WNOWAIT);
	return err_set(e, -EPIPE, HELPER ": %s %d",
		       info.si_code == CLD_EXITED ? "exit code" : "killed by signal",
		       info.si_status);
}

static int receive_one(struct network *n, struct net_message *m, struct err *e)
{
	int fds[UNIX_FDS_MAX];
	size_t len = 0, n_fds = 0;
	int r;
	do
		r = unix_recv_fds(n->socket, m, sizeof(*m), fds, &len, &n_fds);
	while (r == -EINTR);
	if (r == 0 && len == 0) {
		r = describe_end(n, e);
	} else if (r < 0 || len < offsetof(struct net_message, text) || m->len > NET_TEXT_MAX ||
		   len != offsetof(struct net_message, text) + m->len) {
		r = err_sys(e, r < 0 ? r : -EPROTO, HELPER);
	} else {
		m->text[m->len] = '\0';
		r = take_message(n, m, fds, n_fds, e);
	}
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	return r;
}

bool network_is_awaited(const struct network *n)
{
	return n->helper != 0 && !n->received;
}

/* Up to the last message. 0, or -errno and @e. */
static int receive_all(struct network *n, struct err *e)
{
	cleanup_free struct net_message *m = malloc(sizeof(*m));
	int r = m ? 0 : err_sys(e, -ENOMEM, HELPER);
	while (r == 0)
		r = receive_one(n, m, e);
	return MIN(r, 0);
}

int network_receive(struct network *n, struct err *e)
{
	if (!network_is_awaited(n))
		return 0;
	n->received = true;
	return receive_all(n, e) < 0 ? err_context(e, "failed to setup network") : 0;
}

int network_lost(struct network *n, struct err *e)
{
	if (receive_all(n, e) == 0)
		err_sys(e, -EPROTO, HELPER); /* it was ready before */
	return err_context(e, "what connects the pod ended unexpectedly");
}

void network_cancel(const struct network *n)
{
	if (network_is_awaited(n))
		shutdown(n->socket, SHUT_WR);
}

void network_close_taps(struct network *n)
{
	for (; n->n_taps > 0; n->n_taps--) {
		struct backend_tap *t = &n->taps[n->n_taps - 1];
		for (size_t i = 0; i < t->n_queues; i++) {
			fd_close(t->queues[i]);
			fd_close(t->vhosts[i]);
		}
	}
}

bool network_has_world(const struct network *n)
{
	for (size_t i = 0; n->net && i < n->net->n_interfaces; i++)
		for (size_t k = 0; k < n->net->interfaces[i].n_routes; k++)
			if (n->net->interfaces[i].routes[k].to.len == 0)
				return true;
	return false;
}

/* ---- the end ---- */

int network_end(struct network *n, struct err *e)
{
	int status = 0;
	n->socket = fd_close(n->socket);
	if (n->helper == 0)
		return 0;
	int r = spawn_wait(n->helper, &status);
	n->helper = 0;
	if (r < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, -EIO,
			       "the pod's network could not be taken away as a whole (husk gc will "
			       "try again)");
	return 0;
}

void network_deinit(struct network *n)
{
	struct err none = ERR_INIT;
	network_close_taps(n);
	n->listener = fd_close(n->listener);
	network_end(n, &none);
	free(n->net);
	n->net = NULL;
	net_dns_deinit(&n->dns);
}
