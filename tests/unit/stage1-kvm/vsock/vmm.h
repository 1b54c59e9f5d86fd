/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A VMM for the tests of the vsock device: starts the real husk-vsock and speaks vhost-user with it
 * as QEMU 7.2 does.
 */
#ifndef TESTS_UNIT_STAGE1_KVM_VSOCK_VMM_H
#define TESTS_UNIT_STAGE1_KVM_VSOCK_VMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/unit/stage1-kvm/vsock/guest.h"

#define VMM_STDERR_MAX 4096

struct vmm {
	pid_t pid;
	int sock;                         /* vhost-user */
	int log;                          /* read end of the device's stderr */
	char path[108];                   /* of the socket for host programs */
	char stderr_text[VMM_STDERR_MAX]; /* after vmm_wait() */
};

/*
 * Starts @program in @dir and waits until it is ready; it inherits its end of the channel, or gets
 * a socket that listens, to which we connect (@connects). Asserts inside, as all of this module.
 */
void vmm_start(struct vmm *v, const char *program, const char *dir, bool connects);

/* Sends a request with an acknowledgement wanted, and checks that it is "0". */
void vmm_set(struct vmm *v, uint32_t request, const void *payload, size_t len, const int *fds,
	     size_t n_fds);

/* Sends a request and reads its reply of exactly @reply_len bytes of payload. */
void vmm_get(struct vmm *v, uint32_t request, const void *payload, size_t len, void *reply,
	     size_t reply_len);

/* Sends bytes as they are. */
void vmm_send_raw(struct vmm *v, const void *bytes, size_t len, const int *fds, size_t n_fds);

/* From the first message to running queues. @base: where the queues begin. */
void vmm_plug(struct vmm *v, struct guest *g);
void vmm_run_queues(struct vmm *v, struct guest *g, const uint16_t base[DEVICE_QUEUES]);

/* Stops both queues, yielding where. */
void vmm_stop_queues(struct vmm *v, uint16_t base[DEVICE_QUEUES]);

/* Connects as a host program and sends @line. */
int vmm_dial(struct vmm *v, const char *line);

/* Closes the vhost-user socket. */
void vmm_hang_up(struct vmm *v);

/* Waits for the device to end; its exit status, or 128 and the signal. */
int vmm_wait(struct vmm *v);

#endif
