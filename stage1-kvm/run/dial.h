/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reaching a vsock port of the guest, whatever carries it: husk-vsock's unix socket (which takes
 * "CONNECT PORT\n" and answers "OK PORT\n", as other VMMs' hybrid vsock does) or the kernel's
 * AF_VSOCK.
 */
#ifndef STAGE1_KVM_RUN_DIAL_H
#define STAGE1_KVM_RUN_DIAL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/os/loop.h"

#define DIAL_LINE_MAX 32 /* "OK 4294967295\n" is 14 bytes */

/* How long the kernel waits for a guest that neither accepts nor refuses. */
#define DIAL_TIMEOUT_S 30

/*
 * @fd is a connected, non-blocking stream that the callback owns, or -errno: -ECONNREFUSED when
 * nothing listens in the guest (yet), -ETIMEDOUT when it says nothing at all.
 */
typedef void (*dial_fn)(void *ctx, int fd);

struct dial {
	struct loop *loop; /* NULL while idle */
	int fd;
	struct loop_watch watch;
	dial_fn done;
	void *ctx;
};

/* What carries a guest's vsock. */
struct dial_target {
	const char *socket; /* husk-vsock's, a path of at most 107 bytes; NULL: the host's kernel */
	uint32_t cid;       /* the guest's, for the kernel */
};

/*
 * Starts connecting to @port of the guest behind @target. @done is called once from the loop, unless
 * dial_stop() comes first. 0 or -errno.
 */
int dial_start(struct dial *d, struct loop *loop, const struct dial_target *target, unsigned port,
	       dial_fn done, void *ctx);

/* Gives up a dial under way; harmless on an idle or zeroed one. */
void dial_stop(struct dial *d);

#endif
