/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/veth.h"

#include <errno.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <sys/socket.h>

#include "lib/base/macros.h"
#include "lib/net/netlink.h"
#include "stage1/net/netns.h"

static void cleanup_link_(struct rtnl_link **l)
{
	rtnl_link_put(*l);
}

struct end {
	const char *name;
	int index,
		peer; /* peer: 0 if there is none; it means something in the peer's namespace alone */
};

/* In the pod's namespace. */
static int look_inside(void *ctx, struct err *e)
{
	struct end *v = ctx;
	CLEANUP(cleanup_link_) struct rtnl_link *link = NULL;
	cleanup_nl_socket struct nl_sock *s = netlink_open(e);
	if (!s)
		return -EIO;
	int r = rtnl_link_get_kernel(s, 0, v->name, &link);
	if (r < 0)
		return netlink_failed(r, v->name, e);
	v->index = rtnl_link_get_ifindex(link);
	v->peer = rtnl_link_is_veth(link) ? rtnl_link_get_link(link) : 0;
	return 0;
}

static int take_id(struct nl_msg *m, void *ctx)
{
	struct nlattr *attr = nlmsg_find_attr(nlmsg_hdr(m), sizeof(struct rtgenmsg), NETNSA_NSID);
	if (attr)
		*(int *)ctx = (int)nla_get_u32(attr);
	return NL_STOP;
}

/* What the kernel calls @netns where the caller is. -1: it has no name, as nothing leads there. */
static int name_of_netns(struct nl_sock *s, int netns)
{
	const struct rtgenmsg head = { .rtgen_family = AF_UNSPEC };
	int id = -1;
	struct nl_msg *m = nlmsg_alloc_simple(RTM_GETNSID, NLM_F_REQUEST);
	nl_socket_disable_auto_ack(s);
	nl_socket_modify_cb(s, NL_CB_VALID, NL_CB_CUSTOM, take_id, &id);
	if (m && nlmsg_append(m, (void *)(uintptr_t)&head, sizeof(head), NLMSG_ALIGNTO) == 0 &&
	    nla_put_u32(m, NETNSA_FD, (uint32_t)netns) == 0 && nl_send_auto(s, m) >= 0)
		nl_recvmsgs_default(s);
	nlmsg_free(m);
	return id;
}

/* An index says nothing of the namespace that it belongs to, so both ends must name the other. */
static bool leads_back(struct nl_sock *s, const struct end *v, int netns)
{
	CLEANUP(cleanup_link_) struct rtnl_link *link = NULL;
	int id = -1;
	return rtnl_link_get_kernel(s, v->peer, NULL, &link) == 0 && rtnl_link_is_veth(link) &&
	       rtnl_link_get_link(link) == v->index && rtnl_link_get_link_netnsid(link, &id) == 0 &&
	       id >= 0 && id == name_of_netns(s, netns);
}

int veth_find_peer(int netns, const char *name, struct err *e)
{
	struct end v = { .name = name };
	int r = netns_call(netns, look_inside, &v, e);
	if (r < 0 || v.peer <= 0)
		return r;
	cleanup_nl_socket struct nl_sock *s = netlink_open(e);
	if (!s)
		return -EIO;
	return leads_back(s, &v, netns) ? v.peer : 0;
}
