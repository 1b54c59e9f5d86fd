/*
 * Reaching a vsock port of the guest, whatever carries it: husk-vsock's unix socket (which takes
 * "CONNECT PORT\n" and answers "OK PORT\n", as other VMMs' hybrid vsock does) or the kernel's
 * AF_VSOCK.
 */
#ifndef STAGE1_KVM_RUN_DIAL_H
#define STAGE1_KVM_RUN_DIAL_H

#include <stddef.h>

#include "lib/os/loop.h"

#define DIAL_LINE_MAX 32 /* "OK 4294967295\n" is 14 bytes */

/*
 * @fd is a connected, non-blocking stream that the callback owns, or -errno: -ECONNREFUSED when
 * nothing listens in the guest (yet).
 */
typedef void (*dial_fn)(void *ctx, int fd);

struct dial {
	struct loop *loop; /* NULL while idle */
	int fd;
	struct loop_watch watch;
	dial_fn done;
	void *ctx;
};

/*
 * Starts connecting to @port of the guest behind the unix socket @socket (a path of at most 107
 * bytes). @done is called once from the loop, unless dial_stop() comes first. 0 or -errno.
 */
int dial_start(struct dial *d, struct loop *loop, const char *socket, unsigned port, dial_fn done,
	       void *ctx);

/* Gives up a dial under way; harmless on an idle or zeroed one. */
void dial_stop(struct dial *d);

#endif
