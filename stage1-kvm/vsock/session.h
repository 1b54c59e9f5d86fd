/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vhost-user session: reads the VMM's requests from its socket, lets vhost_user.h judge them,
 * carries out what follows on the device, and answers.
 *
 * A request is read in two steps, header and payload, so no byte of the next one is taken; its
 * descriptors come with the header. Requests are handled one at a time. The VMM waits for each
 * reply, so there is room for one in the socket: one that does not fit is a protocol error. Every
 * error here is final.
 */
#ifndef STAGE1_KVM_VSOCK_SESSION_H
#define STAGE1_KVM_VSOCK_SESSION_H

#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"

struct device;
struct session;

/*
 * A session on the connected stream socket @fd, which is made non-blocking but stays the caller's.
 * When the VMM closes it, or after an error, the loop is told to quit. 0 or -errno.
 */
int session_new(struct loop *loop, int fd, uint64_t guest_cid, struct device *d,
		struct session **ret);

/* Accepts NULL. */
void session_free(struct session *s);

/* 0, or the error that ended the session; fills @e then. */
int session_error(const struct session *s, struct err *e);

#endif
