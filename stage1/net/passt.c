/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: passt stays in the foreground, a child of ours that dies with us. What it
 * takes for its PID file is a FIFO: it writes there when all is set up. Its error output is a pipe,
 * which nobody reads behind that: it is not blocking, so that passt cannot hang there.
 *
 * It is shown a namespace by a process in it, which is there as long as it starts: newer ones close
 * descriptors that they do not know, and having joined the user namespace it cannot read our links
 * in /proc.
 */
#include "stage1/net/passt.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"

#define START_MS \
	10000        /* it takes some 50 ms; limits of the host's memory or processors make more */
#define LOG_MAX 4096 /* bytes of what it says that are looked at */

#define IF_NAME     "eth0"
#define IF_MTU      65520 /* what passt takes at most, which is best without offloads */
#define ADDRESS     "10.0.2.15"
#define NETMASK     24
#define GATEWAY     "10.0.2.2"
#define NAMESERVER  "10.0.2.3" /* what passt hands to the host's, wherever that listens */
#define ADDRESS6    "fd68:7573:6b::15"
#define NETMASK6    64
#define GATEWAY6    "fe80::2"
#define NAMESERVER6 "fd68:7573:6b::3"

static const unsigned char pod_mac[NET_MAC_LEN] = { 0x02, 0x68, 0x75, 0x73, 0x6b, 0x01 };

static void add_family(struct net_interface *i, const char *address, int len, const char *gateway)
{
	struct net_prefix *p = &i->addresses[i->n_addresses++];
	struct net_route *r = &i->routes[i->n_routes++];
	*p = (struct net_prefix){ .len = len };
	net_ip_parse(address, &p->ip);
	*r = (struct net_route){ .to.ip.family = p->ip.family };
	net_ip_parse(gateway, &r->via);
}

int passt_describe(bool ipv4, bool ipv6, struct net *ret, struct net_dns *dns)
{
	*ret = (struct net){ .n_interfaces = 1 };
	struct net_interface *i = &ret->interfaces[0];
	snprintf(i->name, sizeof(i->name), IF_NAME);
	memcpy(i->mac, pod_mac, sizeof(i->mac));
	i->mtu = IF_MTU;
	if (ipv4)
		add_family(i, ADDRESS, NETMASK, GATEWAY);
	if (ipv6)
		add_family(i, ADDRESS6, NETMASK6, GATEWAY6);
	return strv_add(&dns->nameservers, ipv4 ? NAMESERVER : NAMESERVER6);
}

/* ---- its words ---- */

/* "--tcp-ports=192.0.2.1/8080:80" */
static int add_port(struct strv *argv, const struct pod_port *p, struct err *e)
{
	if (p->protocol == PORT_SCTP)
		return err_set(e, -EOPNOTSUPP, "port %u: passt forwards no SCTP", p->host_port);
	return strv_addf(argv, "--%s-ports=%s%s%u:%u", p->protocol == PORT_TCP ? "tcp" : "udp",
			 p->host_ip, p->host_ip[0] ? "/" : "", p->host_port, p->port);
}

static bool has_protocol(const struct pod_ports *ports, enum port_protocol protocol)
{
	for (size_t i = 0; i < ports->n; i++)
		if (ports->v[i].protocol == protocol)
			return true;
	return false;
}

/* Ports that are not said, pasta would find out by itself. */
static int add_ports(struct strv *argv, const struct pod_ports *ports, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ports->n; i++)
		r = add_port(argv, &ports->v[i], e);
	if (r == 0 && !has_protocol(ports, PORT_TCP))
		r = strv_add(argv, "--tcp-ports=none");
	if (r == 0 && !has_protocol(ports, PORT_UDP))
		r = strv_add(argv, "--udp-ports=none");
	return r;
}

static int add_family_words(struct strv *argv, const struct net_interface *i, size_t n)
{
	char address[NET_IP_TEXT_MAX + 1], gateway[NET_IP_TEXT_MAX + 1];
	bool is_ipv4 = i->addresses[n].ip.family == AF_INET;
	net_ip_format(&i->addresses[n].ip, address);
	net_ip_format(&i->routes[n].via, gateway);
	int r = strv_addf(argv, "--address=%s", address);
	if (r == 0 && is_ipv4)
		r = strv_addf(argv, "--netmask=%d", i->addresses[n].len);
	if (r == 0)
		r = strv_addf(argv, "--gateway=%s", gateway);
	return r < 0 ? r : strv_addf(argv, "--dns-forward=%s", is_ipv4 ? NAMESERVER : NAMESERVER6);
}

static int add_all(struct strv *argv, const char *const *words)
{
	int r = 0;
	for (; r == 0 && *words; words++)
		r = strv_add(argv, *words);
	return r;
}

static int add_words(const struct net *net, pid_t holder, struct strv *argv)
{
	static const char *const both[] = { "--foreground", "--quiet",     "--pid",
					    PASST_FIFO,     "--no-map-gw", "--no-dhcp",
					    "--no-dhcpv6",  "--no-ra",     NULL };
	static const char *const of_namespace[] = { "--config-net", "--ns-ifname", IF_NAME, "-T",
						    "none",         "-U",          "none",  NULL };
	const struct net_interface *i = &net->interfaces[0];
	char mac[NET_MAC_TEXT_MAX + 1];
	net_mac_format(i->mac, mac);
	int r = strv_add(argv, holder ? "pasta" : "passt");
	if (r == 0)
		r = add_all(argv, both);
	if (r == 0)
		r = holder ? add_all(argv, of_namespace)
			   : strv_addf(argv, "--fd=%d", PASST_FD_STREAM);
	if (r == 0 && holder)
		r = strv_addf(argv, "--ns-mac-addr=%s", mac);
	if (r == 0 && i->n_addresses == 1)
		r = strv_add(argv, i->addresses[0].ip.family == AF_INET ? "-4" : "-6");
	for (size_t n = 0; r == 0 && n < i->n_addresses; n++)
		r = add_family_words(argv, i, n);
	return r;
}

int passt_args(const struct pod_ports *ports, const struct net *net, pid_t holder,
	       struct strv *argv, struct err *e)
{
	int r = add_words(net, holder, argv);
	if (r == 0)
		r = add_ports(argv, ports, e);
	if (r == 0 && holder)
		r = strv_addf(argv, "%d", (int)holder);
	return r < 0 && r != -EOPNOTSUPP ? err_sys(e, r, "passt") : r;
}

/* ---- its life ---- */

/* The last line that it said of itself: not that there is no system log. */
static void last_words(int log, char *out, size_t size)
{
	char text[LOG_MAX + 1];
	ssize_t n = read(log, text, LOG_MAX);
	text[MAX(n, 0)] = '\0';
	snprintf(out, size, "it ended without a word");
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (*line && strncmp(line, "Failed to send ", 15) != 0)
			str_copy_text(out, size, line);
}

int passt_ended(struct passt *p, struct err *e)
{
	char why[256];
	int status = 0;
	spawn_wait(p->pid, &status);
	p->pid = 0;
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "passt: killed by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) == 0) /* what it says, it has said of its start */
		return err_set(e, -EIO, "passt: exit code 0");
	last_words(p->log, why, sizeof(why));
	return err_set(e, -EIO, "passt: %s", why);
}

static int wait_ready(const struct passt_input *in, int fifo, struct passt *p, struct err *e)
{
	struct pollfd ways[] = { { fifo, POLLIN, 0 },
				 { p->pidfd, POLLIN, 0 },
				 { in->cancel_fd, POLLIN, 0 } };
	int64_t deadline = clock_monotonic_ns() + START_MS * NS_PER_MS;
	for (;;) {
		int64_t left = deadline - clock_monotonic_ns();
		if (left <= 0)
			return err_set(e, -ETIMEDOUT, "passt was not ready within %d s",
				       START_MS / 1000);
		if (poll(ways, ARRAY_SIZE(ways), (int)(left / NS_PER_MS) + 1) <= 0)
			continue;
		if (ways[0].revents & POLLIN)
			return 0;
		if (ways[1].revents)
			return passt_ended(p, e);
		if (ways[2].revents)
			return err_set(e, -ECANCELED, "nobody wants it any more");
		ways[0].fd = -EBADF; /* closed without a word, as when it ends: that tells more */
	}
}

/* In a process of its own: joins the namespace, says so, and stays until it is killed. */
_Noreturn static void hold(int netns, int userns, int said)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setns(userns, CLONE_NEWUSER) < 0 || setns(netns, CLONE_NEWNET) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1) < 0 || write(said, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* The process, or -errno. */
static pid_t start_holder(int netns)
{
	int pair[2];
	char byte;
	cleanup_fd int userns = ioctl(netns, NS_GET_USERNS);
	if (userns < 0 || pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	cleanup_fd int said = pair[0], there = pair[1];
	pid_t pid = fork();
	if (pid == 0)
		hold(netns, userns, there);
	there = fd_close(there);
	return pid < 0 ? -errno : read(said, &byte, 1) == 1 ? pid : -EPERM;
}

static void end_child(pid_t *pid)
{
	int status;
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		spawn_wait(*pid, &status);
	}
	*pid = 0;
}

/* A descriptor that is readable when passt is ready, or -errno. */
static int make_fifo(void)
{
	unlink(PASST_FIFO);
	int fd = mkfifo(PASST_FIFO, 0600) < 0 ? -1
					      : open(PASST_FIFO, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int spawn_passt(const struct passt_input *in, char *const *argv, struct passt *ret)
{
	static char *const no_environment[] = { NULL };
	struct spawn_plan plan = { .program = in->program,
				   .argv = argv,
				   .envp = no_environment,
				   .die_with_parent = true,
				   .new_session = true };
	int pair[2];
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	ret->log = pair[0];
	cleanup_fd int log = pair[1], stream = -EBADF;
	if (in->netns < 0) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
			return -errno;
		ret->stream = pair[0];
		stream = pair[1];
		spawn_plan_fd(&plan, stream, PASST_FD_STREAM);
	}
	spawn_plan_limit(&plan, RLIMIT_CORE, 0);
	spawn_plan_fd(&plan, log, STDERR_FILENO);
	return spawn(&plan, &ret->pid, &ret->pidfd);
}

int passt_start(const struct passt_input *in, const struct net *net, struct passt *ret,
		struct err *e)
{
	CLEANUP(strv_deinit) struct strv argv;
	CLEANUP(end_child) pid_t holder = in->netns >= 0 ? start_holder(in->netns) : 0;
	cleanup_fd int fifo = make_fifo();
	strv_init(&argv, PASST_ARGS_MAX);
	int r = holder < 0 ? holder : MIN(fifo, 0);
	if (r < 0)
		return err_sys(e, r, "passt: %s", holder < 0 ? "namespace" : PASST_FIFO);
	r = passt_args(in->ports, net, holder, &argv, e);
	if (r == 0 && (r = spawn_passt(in, argv.v, ret)) < 0)
		err_sys(e, r, "cannot start \"%s\"", in->program);
	if (r == 0)
		r = wait_ready(in, fifo, ret, e);
	unlink(PASST_FIFO);
	return r;
}

void passt_stop(struct passt *p)
{
	p->stream = fd_close(p->stream);
	end_child(&p->pid);
	p->pidfd = fd_close(p->pidfd);
	p->log = fd_close(p->log);
}
