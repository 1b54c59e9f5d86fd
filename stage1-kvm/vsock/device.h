/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device: two virtqueues, the streams, and the relay that moves packets between them.
 *
 * The loop's callbacks only note what happened (a kick, a readable socket, an accepted connection);
 * device_pump(), called after each turn, does the work in bounded portions: packets of the guest
 * from the tx queue to sockets and state machines, then packets for the guest into the rx queue
 * (RSTs for unknown connections, then the ready streams in turn). Used entries are published, and
 * the guest notified, once per portion. Kicks are asked for only when a queue ran empty: the tx
 * queue always, the rx queue when packets are waiting for buffers.
 *
 * Guest not up: connections wait in the table (STREAMS_WAITING_MAX) until the rx queue runs.
 *
 * Pause and reset: a VMM stops the queues in both cases. The streams are kept; when a queue starts
 * again somewhere else than it was stopped, the guest's driver was reset meanwhile and the streams
 * that the guest knew are ended. device_reset(), for a new vhost-user session, ends them as well.
 * Streams that wait for a guest go on waiting in either case.
 *
 * A guest that breaks a queue (virtq.h), or puts it where no queue can be, cannot be told so by a
 * vhost-user device. It loses the device: all streams are closed, new ones refused, the error
 * descriptor of the queue is signalled, the owner gets one report (at most DEVICE_REPORTS_MAX in a
 * device's life), and nothing is read from either queue until the driver is reset. The process
 * stays until the VMM goes.
 */
#ifndef STAGE1_KVM_VSOCK_DEVICE_H
#define STAGE1_KVM_VSOCK_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1-kvm/vsock/memory.h"

/* Virtqueues: virtio 1.2, 5.10.2. The third one, for events, stays in the VMM. */
#define DEVICE_RX     0
#define DEVICE_TX     1
#define DEVICE_QUEUES 2

/* Reports about broken queues: a guest must not fill the log. */
#define DEVICE_REPORTS_MAX 8

struct device;

/* @text is one line without its end. */
typedef void (*device_report_fn)(const char *text);

struct device_config {
	int listen_fd; /* listening, non-blocking, not consumed: host programs; -EBADF for none */
	uint64_t guest_cid;
	size_t max_streams; /* 1 to STREAMS_MAX */
	device_report_fn report;
};

/* A device without memory and queues. 0 or -errno. */
int device_new(struct loop *loop, const struct device_config *config, struct device **ret);

/* Accepts NULL. */
void device_free(struct device *d);

/*
 * Forgets queues, memory and the streams that the guest knows. Descriptors of the queues are
 * closed.
 */
void device_reset(struct device *d);

/*
 * Replaces the guest's memory, which the device takes over (@m is empty afterwards). Running queues
 * go on at the same addresses; one that is not in the new memory is broken.
 */
void device_set_memory(struct device *d, struct guest_memory *m);

/* Where a queue lies and where it begins; addresses are the VMM's. */
struct device_queue_plan {
	uint16_t size;
	uint16_t base;
	uint64_t desc;
	uint64_t avail;
	uint64_t used;
	uint64_t features;
};

/*
 * Starts queue @index, or moves it if it runs (size and base are then left alone). One that is not
 * inside of memory, not aligned or of a wrong size is broken: the guest chose its place and size.
 */
void device_start_queue(struct device *d, size_t index, const struct device_queue_plan *plan);

/* Stops queue @index. The available index at which it stopped, or was never started: 0. */
uint16_t device_stop_queue(struct device *d, size_t index);

/*
 * Descriptors of queue @index, taken over: the VMM's kicks, our notifications, our errors. -EBADF
 * for none. 0 or -errno.
 */
int device_set_kick(struct device *d, size_t index, int fd);
int device_set_call(struct device *d, size_t index, int fd);
int device_set_err(struct device *d, size_t index, int fd);

/* Takes over a connected, non-blocking host socket as if it had been accepted. 0 or -errno. */
int device_add_host(struct device *d, int fd);

/* Works off one portion; arms the loop for the rest. -errno if the memory is gone or short. */
int device_pump(struct device *d);

#endif
