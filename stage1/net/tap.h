/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tap for an interface of the pod's namespace: whatever arrives at the one is sent by the other,
 * as far as it is the pod's (stage1/net/packet_filter.h), and the pod owns the descriptors.
 */
#ifndef STAGE1_NET_TAP_H
#define STAGE1_NET_TAP_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/wire/net.h"

#define TAP_QUEUES_MAX 4 /* one for each processor; with vhost twice as many go in a message */

struct tap {
	int queues[TAP_QUEUES_MAX]; /* /dev/net/tun, each a queue with struct virtio_net_hdr */
	int vhosts[TAP_QUEUES_MAX]; /* /dev/vhost-net for each; -EBADF: the kernel has none */
	size_t n_queues;
	bool is_prepared; /* the pod's interface was made ready for programs; for traffic_release() */
};

/*
 * In the namespace that the caller is in: makes a tap with @n_queues (1 to TAP_QUEUES_MAX) for the
 * interface @pod and ties the two; @with_dhcp as of packet_filter_load_redirect(). It goes when its
 * descriptors are closed. 0 (tap_close()), or -errno and @e.
 */
int tap_make(const struct net_interface *pod, size_t n_queues, bool with_dhcp, struct tap *ret,
	     struct err *e);

/* Closes its descriptors, which is its end unless somebody else has them, too. */
void tap_close(struct tap *t);

#endif
