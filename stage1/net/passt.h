/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a pod of somebody who is not root: passt (https://passt.top), a program of the
 * user's, makes of each connection of the pod's one of its own, so it needs no privileges and no
 * interface of the host. It speaks Ethernet, with a VM over a stream socket (QEMU's "-netdev
 * stream"), and called pasta, with an interface that it makes in a network namespace. When it
 * is gone, so is all of it.
 *
 * Addresses are the same for all pods, as nobody but passt ever sees them.
 */
#ifndef STAGE1_NET_PASST_H
#define STAGE1_NET_PASST_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/net.h"
#include "lib/wire/net_names.h"
#include "lib/wire/pod_ports.h"

/* A word for each port, and at most 32 others. */
#define PASST_ARGS_MAX (32 + POD_PORTS_MAX)

#define PASST_FD_STREAM 3 /* of passt at its start: that of a VM */

/* In the working directory, which is the pod's: where passt says that it can be used. */
#define PASST_FIFO "passt.ready"

struct passt_input {
	const char *program; /* absolute path */
	const struct pod_ports *ports;
	int netns;     /* where the interface is to be; -EBADF: it is a VM's */
	int cancel_fd; /* as of struct connection_input */
};

struct passt {
	pid_t pid;  /* 0: it does not run */
	int stream; /* the VM's end; -EBADF: it has none */
	int pidfd;  /* readable when it has ended; -EBADF: it does not run */
	int log;    /* what passt says; open as long as it runs */
};

#define PASST_INIT ((struct passt){ .stream = -EBADF, .pidfd = -EBADF, .log = -EBADF })

/* What the pod sees of it; with addresses of the families that the host has a default route for. */
int passt_describe(bool ipv4, bool ipv6, struct net *ret, struct net_dns *dns);

/*
 * Its words, of a pod that sees @net; @holder is a process in its namespace, 0 for a VM. 0, or
 * -EOPNOTSUPP (SCTP), errors as strv_add(), and @e.
 */
int passt_args(const struct pod_ports *ports, const struct net *net, pid_t holder,
	       struct strv *argv, struct err *e);

/* Starts it for a pod that sees @net, and waits until it can be used. 0, or -errno and @e. */
int passt_start(const struct passt_input *in, const struct net *net, struct passt *ret,
		struct err *e);

/* For one that has ended by itself, or is about to: -EIO, and @e says how. */
int passt_ended(struct passt *p, struct err *e);

/* Ends it. */
void passt_stop(struct passt *p);

#endif
