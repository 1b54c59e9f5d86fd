/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "lib/base/macros.h"

#define PRIORITY 1u          /* before what others may attach */
#define HANDLE   0x6875736bu /* "husk": by it the program is found again */

static void cleanup_msg_(struct nl_msg **m)
{
	nlmsg_free(*m);
}

static void cleanup_socket_(struct nl_sock **s)
{
	nl_socket_free(*s);
}

/* A message of traffic control about the interface @index. NULL: memory is short. */
static struct nl_msg *make_message(int type, int flags, unsigned index, const char *kind)
{
	struct tcmsg head = { .tcm_family = AF_UNSPEC, .tcm_ifindex = (int)index };
	struct nl_msg *m = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);
	head.tcm_parent = TC_H_CLSACT;
	head.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
	if (m && nlmsg_append(m, &head, sizeof(head), NLMSG_ALIGNTO) == 0 &&
	    nla_put_string(m, TCA_KIND, kind) == 0)
		return m;
	nlmsg_free(m);
	return NULL;
}

/* Sends it and waits for the answer; frees it. 0 or -errno. */
static int ask(struct nl_msg *m)
{
	CLEANUP(cleanup_msg_) struct nl_msg *message = m;
	CLEANUP(cleanup_socket_) struct nl_sock *s = nl_socket_alloc();
	if (!message || !s)
		return -ENOMEM;
	int r = nl_connect(s, NETLINK_ROUTE);
	if (r == 0)
		r = nl_send_auto(s, message);
	if (r >= 0)
		r = nl_wait_for_ack(s);
	switch (-r) {
	case 0:
		return 0;
	case NLE_EXIST:
		return -EEXIST;
	case NLE_OBJ_NOTFOUND:
		return -ENOENT;
	case NLE_PERM:
		return -EPERM;
	case NLE_NOMEM:
		return -ENOMEM;
	case NLE_OPNOTSUPP:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

/* A message about the program of ours. */
static struct nl_msg *filter_message(int type, int flags, unsigned index, enum traffic direction)
{
	struct nl_msg *m = make_message(type, flags, index, "bpf");
	if (!m)
		return NULL;
	struct tcmsg *head = nlmsg_data(nlmsg_hdr(m));
	head->tcm_parent = TC_H_MAKE(TC_H_CLSACT,
				     direction == TRAFFIC_IN ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
	head->tcm_handle = HANDLE;
	head->tcm_info = TC_H_MAKE(PRIORITY << 16, htons(ETH_P_ALL));
	return m;
}

static struct nl_msg *attach_message(unsigned index, enum traffic direction, int program)
{
	struct nl_msg *m =
		filter_message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, index, direction);
	if (!m)
		return NULL;
	struct nlattr *options = nla_nest_start(m, TCA_OPTIONS);
	if (options && nla_put_u32(m, TCA_BPF_FD, (uint32_t)program) == 0 &&
	    nla_put_string(m, TCA_BPF_NAME, "husk") == 0 &&
	    nla_put_u32(m, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT) == 0 &&
	    nla_nest_end(m, options) == 0)
		return m;
	nlmsg_free(m);
	return NULL;
}

int traffic_prepare(unsigned index)
{
	return ask(make_message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, index, "clsact"));
}

int traffic_judge(unsigned index, const char *name, enum traffic direction, int program,
		  struct err *e)
{
	int prepared = traffic_prepare(index);
	int r = prepared == -EEXIST ? 0 : prepared;
	if (r == 0)
		r = ask(attach_message(index, direction, program));
	if (r == 0)
		return prepared == 0;
	if (prepared == 0) /* the namespace may be somebody else's, and stay */
		traffic_release(index, direction, true);
	if (r == -EEXIST)
		return err_set(
			e, r,
			"interface \"%s\": another pod has it, or one that was killed had it "
			"(a network namespace serves one pod)",
			name);
	return err_sys(e, r,
		       "interface \"%s\": cannot attach a program to it (the kernel needs "
		       "CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)",
		       name);
}

int traffic_release(unsigned index, enum traffic direction, bool is_prepared)
{
	int r = is_prepared ? ask(make_message(RTM_DELQDISC, 0, index, "clsact"))
			    : ask(filter_message(RTM_DELTFILTER, 0, index, direction));
	return r == -ENOENT ? 0 : r;
}
