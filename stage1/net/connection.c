/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/connection.h"

#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/net/configure.h"
#include "lib/net/scan.h"
#include "lib/os/fd.h"
#include "lib/os/route.h"
#include "lib/os/unix.h"
#include "stage1/net/cni.h"
#include "stage1/net/cni/choose.h"
#include "stage1/net/cni/dir.h"
#include "stage1/net/host_ports.h"
#include "stage1/net/info.h"
#include "stage1/net/local_listener.h"
#include "stage1/net/netns.h"
#include "stage1/net/packet_filter.h"
#include "stage1/net/traffic.h"
#include "stage1/net/veth.h"
#include "stage1/net/vm_interfaces.h"
#include "stage1/pod/podfiles.h"

/* ---- ports ---- */

static int take_port(struct connection *c, const struct pod_port *port, struct err *e)
{
	static const int protocols[] = {
		[PORT_TCP] = IPPROTO_TCP, [PORT_UDP] = IPPROTO_UDP, [PORT_SCTP] = IPPROTO_SCTP
	};
	struct net_ip ip = { .family = AF_UNSPEC };
	int *fds = &c->ports[c->n_ports];
	if (port->host_ip[0] && net_ip_parse(port->host_ip, &ip) < 0)
		return err_set(e, -EINVAL, "port %u of \"%s\": no IP address", port->host_port,
			       port->host_ip);
	int r = host_port_take(protocols[port->protocol], &ip, port->host_port, &fds[0], &fds[1],
			       e);
	if (r == 0)
		c->n_ports += 2;
	return r;
}

static int take_ports(struct connection *c, const struct pod_ports *ports, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ports->n; i++)
		r = take_port(c, &ports->v[i], e);
	return r;
}

static void free_ports(struct connection *c)
{
	while (c->n_ports > 0)
		fd_close(c->ports[--c->n_ports]);
}

/* ---- the namespace ---- */

/* Closed without one, if whoever was to send it has failed. */
static int receive_netns(int sock, int cancel_fd, struct err *e)
{
	struct pollfd ways[] = { { sock, POLLIN, 0 }, { cancel_fd, POLLIN, 0 } };
	char byte;
	int fds[UNIX_FDS_MAX];
	size_t len = 0, n = 0;
	while (poll(ways, ARRAY_SIZE(ways), -1) < 0)
		;
	if (!ways[0].revents)
		return err_set(e, -ECANCELED, "nobody wants it any more");
	int r = unix_recv_fds(sock, &byte, 1, fds, &len, &n);
	if (r < 0 || len != 1 || n != 1) {
		while (n > 0)
			fd_close(fds[--n]);
		return err_set(e, -EPIPE, "no network namespace came from the pod");
	}
	return fds[0];
}

/* Nobody means the interfaces of the host, all of which the pod would take from it. */
static int open_netns(const char *path, struct err *e)
{
	cleanup_fd int fd = netns_open(path, e);
	if (fd >= 0 && netns_is_own(fd))
		return err_set(e, -EINVAL,
			       "--netns=%s: husk itself is in that namespace (make one for the "
			       "pod, or use --net=host with --stage1=ns)",
			       path);
	return fd < 0 ? fd : TAKE_FD(fd);
}

/* Before a plugin makes an interface there, which may be up at once. */
static int prepare_inside(void *ctx, struct err *e)
{
	(void)ctx;
	return net_ignore_routers("default", e);
}

static int get_netns(struct connection *c, const struct connection_input *in, struct err *e)
{
	if (in->netns) {
		snprintf(c->path, sizeof(c->path), "%s", in->netns);
		return c->netns = open_netns(in->netns, e);
	}
	c->netns = in->netns_socket >= 0 ? receive_netns(in->netns_socket, in->cancel_fd, e)
					 : netns_make(e);
	if (c->netns < 0)
		return c->netns;
	netns_path(in->uuid, c->path);
	int r = netns_call(c->netns, prepare_inside, NULL, e);
	return r < 0 ? r : netns_name(c->netns, c->path, e);
}

/* ---- plugins ---- */

static struct cni_runtime runtime(const struct connection_input *in, const char *path)
{
	return (struct cni_runtime){
		.container = in->uuid,
		.netns = path,
		.dirs = &in->plugin_dirs,
		.cancel_fd = in->cancel_fd,
	};
}

/* The networks that are asked for, and what is known of them. */
static int choose_networks(const struct connection_input *in, struct cni_attachments *ret,
			   struct err *e)
{
	CLEANUP(cni_networks_deinit) struct cni_networks nets = { 0 };
	CLEANUP(cni_choice_deinit) struct cni_choice choice = { 0 };
	int r = cni_choice_parse(&in->nets, &choice, e);
	if (r == 0)
		r = cni_dir_load(&in->config_dirs, &nets, e);
	return r == 0 ? cni_choose(&choice, &nets, ret, e) : r;
}

static int add_networks(struct connection *c, const struct connection_input *in,
			const struct pod_ports *ports, struct err *e)
{
	struct cni_attachments list = { 0 };
	struct cni_done done = { 0 };
	struct cni_runtime rt = runtime(in, c->path);
	rt.ports = ports;
	rt.dns = &in->dns;
	int r = choose_networks(in, &list, e);
	if (r == 0)
		r = cni_add(&rt, &list, in->pod_fd, &done, e);
	if (r < 0)
		return r;
	if (!done.ports_forwarded)
		r = err_set(e, -EOPNOTSUPP,
			    "no network of the pod forwards ports (add the plugin "
			    "portmap to one, or leave --port away)");
	net_dns_deinit(&c->dns);
	c->dns = done.dns;
	c->with_dhcp = done.with_dhcp;
	c->plugins_ns = done.plugins_ns;
	c->made = done.nets;
	net_dns_init(&done.dns);
	cni_done_deinit(&done);
	return r;
}

/* ---- what the pod may send ---- */

struct filtered {
	const struct net_interface *i;
	bool with_dhcp;
};

static int filter(const struct filtered *f, unsigned index, enum traffic direction, struct err *e)
{
	const struct net_interface *i = f->i;
	cleanup_fd int program = packet_filter_load(i, 0, f->with_dhcp);
	if (program < 0)
		return err_sys(e, program, "interface \"%s\": its filter", i->name);
	return MIN(traffic_judge(index, i->name, direction, program, e), 0);
}

/* In the namespace: what the pod sends is judged when it leaves its interface. */
static int filter_inside(void *ctx, struct err *e)
{
	const struct filtered *f = ctx;
	return filter(f, if_nametoindex(f->i->name), TRAFFIC_OUT, e);
}

/*
 * Of a pod that is in the namespace itself. A socket of an app with CAP_NET_RAW can pass by what is
 * attached inside (PACKET_QDISC_BYPASS), so the other end is better, where there is one that no
 * plugin has taken (bandwidth does).
 */
static int filter_interface(int netns, struct filtered *f, struct err *e)
{
	int peer = veth_find_peer(netns, f->i->name, e);
	if (peer < 0)
		return peer;
	if (peer > 0 && traffic_prepare((unsigned)peer) == 0)
		return filter(f, (unsigned)peer, TRAFFIC_IN, e);
	return netns_call(netns, filter_inside, f, e);
}

static int filter_interfaces(struct connection *c, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < c->net.n_interfaces; i++) {
		struct filtered f = { &c->net.interfaces[i], c->with_dhcp };
		r = filter_interface(c->netns, &f, e);
	}
	return r;
}

/* ---- interfaces ---- */

/* Of a namespace that somebody else has made, this is all that there is to know. */
static int describe_interfaces(const struct connection *c, int pod_fd, struct err *e)
{
	cleanup_free struct net_info_list *list = calloc(1, sizeof(*list));
	if (!list)
		return err_sys(e, -ENOMEM, "network");
	info_of_interfaces(&c->net, list);
	return info_write(pod_fd, list, e);
}

struct inside {
	struct connection *c;
	const struct connection_input *in;
};

/* In the namespace. */
static int connect_inside(void *ctx, struct err *e)
{
	struct inside *v = ctx;
	struct connection *c = v->c;
	int r = net_scan(&c->net, e);
	for (size_t i = 0; r == 0 && !v->in->netns && i < c->net.n_interfaces; i++)
		r = net_ignore_routers(c->net.interfaces[i].name, e); /* whatever plugins say */
	if (!v->in->netns)
		net_allow_ping();
	if (r == 0 && v->in->n_queues > 0)
		r = vm_interfaces_check(&c->net, &c->made, e);
	for (size_t i = 0; r == 0 && v->in->n_queues > 0 && i < c->net.n_interfaces; i++) {
		r = tap_make(&c->net.interfaces[i], v->in->n_queues, c->with_dhcp,
			     &c->taps[c->n_taps], e);
		c->n_taps += r == 0;
		c->n_tied = c->n_taps;
	}
	return r;
}

/* Of a namespace that stays: nothing of ours remains at its interfaces. */
static int release_inside(void *ctx, struct err *e)
{
	struct connection *c = ctx;
	(void)e;
	for (size_t i = 0; i < c->n_tied; i++) {
		unsigned index = if_nametoindex(c->net.interfaces[i].name);
		if (index != 0)
			traffic_release(index, TRAFFIC_IN, c->taps[i].is_prepared);
	}
	return 0;
}

/* ---- without privileges ---- */

static int describe_passt(const struct connection *c, const struct connection_input *in,
			  struct err *e)
{
	cleanup_free struct net_info_list *list = calloc(1, sizeof(*list));
	if (!list)
		return err_sys(e, -ENOMEM, "network");
	info_of_interfaces(&c->net, list);
	snprintf(list->nets[0].net_name, sizeof(list->nets[0].net_name), "default");
	int r = str_copy(list->nets[0].plugin_path, sizeof(list->nets[0].plugin_path), in->passt);
	return r < 0 ? err_sys(e, r, "\"%.100s...\"", in->passt) : info_write(in->pod_fd, list, e);
}

/* Which port it cannot have passt says, and not why. */
static int start_passt(struct connection *c, const struct passt_input *in, struct err *e)
{
	struct err why = ERR_INIT;
	int r = passt_start(in, &c->net, &c->passt, e);
	if (r == -EIO && take_ports(c, in->ports, &why) < 0)
		*e = why;
	free_ports(c);
	return r;
}

static int make_by_passt(struct connection *c, const struct connection_input *in,
			 const struct pod_ports *ports, struct err *e)
{
	bool ipv4 = route_to_world(AF_INET), ipv6 = route_to_world(AF_INET6);
	if (!ipv4 && !ipv6)
		return err_set(
			e, -ENETUNREACH,
			"this host has no default route, which passt needs (use --net=none)");
	if (in->netns_socket >= 0)
		c->netns = receive_netns(in->netns_socket, in->cancel_fd, e);
	int r = in->netns_socket >= 0 && c->netns < 0 ? c->netns : 0;
	if (r == 0 && (r = passt_describe(ipv4, ipv6, &c->net, &c->dns)) < 0)
		err_sys(e, r, "network");
	const struct passt_input passt = { in->passt, ports, c->netns, in->cancel_fd };
	if (r == 0)
		r = start_passt(c, &passt, e);
	return r == 0 ? describe_passt(c, in, e) : r;
}

/* ---- all of it ---- */

static int make_by_plugins(struct connection *c, const struct connection_input *in,
			   const struct pod_ports *ports, struct err *e)
{
	struct inside inside = { c, in };
	int r = in->netns ? 0 : take_ports(c, ports, e); /* who has made that has led ports to it */
	if (r == 0)
		r = get_netns(c, in, e);
	if (r >= 0 && !in->netns)
		r = add_networks(c, in, ports, e);
	if (r >= 0)
		r = netns_call(c->netns, connect_inside, &inside, e);
	if (r >= 0 && in->netns && in->n_queues > 0 &&
	    (r = local_listener_make(c->netns, &c->listener, &c->listener_link, e)) < 0)
		err_context(e, "--netns=%s", in->netns);
	if (r >= 0 && in->netns)
		r = describe_interfaces(c, in->pod_fd, e);
	else if (r >= 0 && in->n_queues == 0)
		r = filter_interfaces(c, e);
	return MIN(r, 0);
}

int connection_make(struct connection *c, const struct connection_input *in, struct err *e)
{
	struct pod_manifest manifest;
	pod_manifest_init(&manifest);
	int r = podfiles_read_manifest(in->pod_fd, &manifest, e);
	if (r == 0)
		r = in->passt ? make_by_passt(c, in, &manifest.ports, e)
			      : make_by_plugins(c, in, &manifest.ports, e);
	pod_manifest_deinit(&manifest);
	return r;
}

void connection_close_given(struct connection *c)
{
	while (c->n_taps > 0)
		tap_close(&c->taps[--c->n_taps]);
	c->passt.stream = fd_close(c->passt.stream);
	c->listener = fd_close(c->listener);
}

int connection_release(const struct connection_input *in, struct err *e)
{
	if (in->netns_socket < 0)
		return 0;
	int r = fd_write_all(in->netns_socket, "", 1);
	return r < 0 ? err_sys(e, r, "the pod does not wait for its network") : 0;
}

/*
 * What plugins and we have made; @path is the namespace, or "" if it is gone. It stays for a plugin
 * that has failed: ptp and bridge read there which rules of theirs to remove.
 */
static int take_away(const struct connection_input *in, const char *path, struct err *e)
{
	const struct cni_runtime rt = runtime(in, path);
	char named[PATH_MAX];
	netns_path(in->uuid, named);
	int r = cni_delete(&rt, in->pod_fd, e);
	return r < 0 ? r : netns_forget(named, e);
}

int connection_end(struct connection *c, const struct connection_input *in, struct err *e)
{
	struct connection_input last = *in;
	struct err none = ERR_INIT;
	connection_close_given(c);
	passt_stop(&c->passt);
	last.cancel_fd = -EBADF; /* it has served its purpose */
	if (c->netns >= 0 && in->netns)
		netns_call(c->netns, release_inside, c, &none);
	int r = in->netns || in->passt ? info_remove(in->pod_fd, e) : take_away(&last, c->path, e);
	free_ports(c);
	return r;
}

int connection_clean_up(const struct connection_input *in, struct err *e)
{
	char path[PATH_MAX];
	netns_path(in->uuid, path);
	if (!netns_exists(path))
		path[0] = '\0'; /* after a reboot of the host, for instance */
	return take_away(in, path, e);
}

int connection_check(const struct connection_input *in, size_t *ret_asked, size_t *ret_n,
		     struct err *e)
{
	char path[PATH_MAX];
	netns_path(in->uuid, path);
	const struct cni_runtime rt = runtime(in, path);
	return cni_check(&rt, in->pod_fd, ret_asked, ret_n, e);
}

void connection_deinit(struct connection *c)
{
	connection_close_given(c);
	passt_stop(&c->passt);
	free_ports(c);
	c->listener_link = fd_close(c->listener_link);
	c->netns = fd_close(c->netns);
	net_dns_deinit(&c->dns);
}
