/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of a pod, set up and removed by CNI plugins (CNI specification 0.3.1 to 1.0.0): the
 * door of what begins with cni_ here.
 *
 * What was begun is in a file of the pod directory before it begins (stage1/net/cni/state.h), so
 * that cni_delete() of any later process finds all of it. One process at a time may work on a pod.
 */
#ifndef STAGE1_NET_CNI_H
#define STAGE1_NET_CNI_H

#include "lib/wire/net_info.h"
#include "stage1/net/cni/attachment.h"
#include "stage1/net/cni/request.h"

/* Runtimes of Kubernetes allow minutes for a pod; DHCP, the slowest plugin, gives up in 40 s. */
#define CNI_ADD_MS   INT64_C(60000) /* for one plugin */
#define CNI_DEL_MS   INT64_C(60000) /* for all of a pod together */
#define CNI_CHECK_MS INT64_C(30000) /* for one plugin */

/* What is the same for all networks of a pod. All is borrowed. */
struct cni_runtime {
	const char *container;         /* the pod's UUID */
	const char *netns;             /* absolute path of the namespace; "" when it is gone */
	const struct strv *dirs;       /* of plugins, absolute paths; for cni_add() */
	const struct pod_ports *ports; /* for the first network that forwards ports; NULL: none */
	const struct net_dns *dns;     /* for plugins with the capability; NULL: nothing */
	int cancel_fd; /* readable or hung up: give up; negative: never. Not for what is undone */
	int64_t add_ms, del_ms, check_ms; /* 0: as above */
};

/* What was set up. */
struct cni_done {
	struct net_info_list nets;
	struct net_dns dns;   /* of the first network that says something of names */
	bool with_dhcp;       /* addresses of one are leases, which the plugin dhcp renews */
	bool ports_forwarded; /* a network took the ports; true if there are none */
	int64_t plugins_ns;   /* how long plugins took */
};

/* Frees it. Accepts NULL. */
void cni_done_deinit(struct cni_done *done);

/*
 * Attaches the pod to all networks of @list, which is taken, also on failure, one after the other,
 * and writes "net-info.json". On failure all that was begun is for cni_delete(). @pod_fd is the pod
 * directory, open for reading. 0 and the caller's *ret; -EEXIST (there are networks already),
 * -ECANCELED, -errno, with @e: "failed to setup network: network \"N\": plugin \"P\": ...".
 */
int cni_add(const struct cni_runtime *rt, struct cni_attachments *list, int pod_fd,
	    struct cni_done *ret, struct err *e);

/*
 * Undoes all of it, the last first, as often as one likes; goes on after a failure, but for
 * -ECANCELED, and each plugin gets half of the time that is left, so that one that hangs leaves
 * some to the others. When all went well the files are removed. The namespace should still be
 * there: without it plugins free what they can, but ptp and bridge 1.1.1 leave their rules for
 * masquerading. 0 also if there was nothing; the first failure, -errno, with @e.
 */
int cni_delete(const struct cni_runtime *rt, int pod_fd, struct err *e);

/*
 * Asks the plugins whether all is still as they left it, of networks that allow it: *ret_asked of
 * *ret_n. 0; the first failure, -errno, with @e.
 */
int cni_check(const struct cni_runtime *rt, int pod_fd, size_t *ret_asked, size_t *ret_n,
	      struct err *e);

#endif
