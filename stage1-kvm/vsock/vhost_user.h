/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back-end side of the vhost-user protocol, sans-IO: requests of the VMM (bytes and a number of
 * descriptors) in; state, one action for the owner and the bytes of a reply out. It follows QEMU's
 * "Vhost-user Protocol" page (docs/interop/vhost-user.rst) of version 7.2.
 *
 * Supported is what a vsock device needs: two queues, a memory table of up to eight regions, the
 * device's configuration space, acknowledged requests. Nothing else is offered, so anything else is
 * a protocol error, and a protocol error is final: the VMM is broken and the owner gives up.
 *
 * A session begins with SET_OWNER, which forgets everything that was set before: a VMM may remove
 * the device and add it again over the same socket. A queue runs from SET_VRING_KICK to
 * GET_VRING_BASE while it is enabled (vhost_user_queue_runs()); its size, addresses and base can be
 * set again while it is stopped.
 */
#ifndef STAGE1_KVM_VSOCK_VHOST_USER_H
#define STAGE1_KVM_VSOCK_VHOST_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "stage1-kvm/vsock/memory.h"

#define VHOST_USER_HEADER_SIZE 12 /* request, flags, payload size: three 32-bit numbers */
#define VHOST_USER_QUEUES      2  /* rx and tx; the event queue stays in the VMM */

/* Largest payload that is accepted: a message of the configuration space with its 256 bytes. */
#define VHOST_USER_CONFIG_MAX  256
#define VHOST_USER_PAYLOAD_MAX (12 + VHOST_USER_CONFIG_MAX)
#define VHOST_USER_MESSAGE_MAX (VHOST_USER_HEADER_SIZE + VHOST_USER_PAYLOAD_MAX)

#define VHOST_USER_CONFIG_SIZE 8 /* struct virtio_vsock_config: the guest's CID */

/* What the owner does about a request, before the reply is sent. */
enum vhost_user_action {
	VHOST_USER_DO_NOTHING,
	VHOST_USER_DO_RESET,    /* forget memory, queues and the guest's connections */
	VHOST_USER_DO_MAP,      /* map .regions with the descriptors, one each, in order */
	VHOST_USER_DO_SET_KICK, /* queue .index: take the descriptor */
	VHOST_USER_DO_SET_CALL, /* likewise; without descriptor there are no notifications */
	VHOST_USER_DO_SET_ERR,  /* likewise */
	VHOST_USER_DO_STOP,     /* queue .index: stop; vhost_user_reply_base() makes the reply */
	VHOST_USER_DO_UPDATE,   /* queue .index: size, address, base or enabling changed */
};

struct vhost_user_queue {
	bool has_size;
	bool has_addr;
	bool kicked; /* between SET_VRING_KICK and GET_VRING_BASE */
	bool enabled;
	uint16_t size;
	uint16_t base; /* where to begin in the available ring */
	uint64_t desc; /* addresses in the VMM's address space, unchecked */
	uint64_t avail;
	uint64_t used;
};

struct vhost_user {
	uint64_t guest_cid;
	uint64_t features; /* negotiated */
	uint64_t protocol_features;
	struct vhost_user_queue queue[VHOST_USER_QUEUES];
};

struct vhost_user_outcome {
	enum vhost_user_action action;
	size_t index; /* of a queue, below VHOST_USER_QUEUES */
	size_t n_regions;
	struct guest_region regions[GUEST_MEMORY_REGIONS_MAX];
	size_t reply_len; /* 0: no reply */
	unsigned char reply[VHOST_USER_MESSAGE_MAX];
};

/* A device for the guest @guest_cid, before any request. */
void vhost_user_init(struct vhost_user *vu, uint64_t guest_cid);

/*
 * Yields the payload size that a header announces. -EPROTO (and @e) if it is beyond
 * VHOST_USER_PAYLOAD_MAX or the flags are not those of a request.
 */
int vhost_user_payload_size(const unsigned char header[VHOST_USER_HEADER_SIZE], size_t *ret,
			    struct err *e);

/*
 * Handles one whole request of @len bytes, header included, that came with @n_fds descriptors. They
 * stay the caller's; if this succeeds their number is what the action needs (one per region; none
 * or one for kick, call and err). -EPROTO fills @e and leaves the session unusable.
 */
int vhost_user_handle(struct vhost_user *vu, const unsigned char *message, size_t len, size_t n_fds,
		      struct vhost_user_outcome *ret, struct err *e);

/* The reply to GET_VRING_BASE: queue @index stopped before available index @base. */
void vhost_user_reply_base(size_t index, uint16_t base, struct vhost_user_outcome *ret);

/* True if queue @index is to be served: complete, kicked and enabled. */
bool vhost_user_queue_runs(const struct vhost_user *vu, size_t index);

#endif
