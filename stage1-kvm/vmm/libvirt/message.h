/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver and husk-libvirt, its helper process, tell each other: one struct for each
 * message, over a socket pair that keeps messages apart (SOCK_SEQPACKET). Both come from the same
 * build. The helper talks to QEMU where libvirt has no daemon, so the driver believes it no more
 * than it would QEMU.
 *
 * Descriptors of the helper at its start: the socket, the domain's XML, kernel, initramfs, secret,
 * one for each disk, in the order of the --disk options, and those of network devices, in the order
 * of the --nic options: queues, and as many of vhost.
 */
#ifndef STAGE1_KVM_VMM_LIBVIRT_MESSAGE_H
#define STAGE1_KVM_VMM_LIBVIRT_MESSAGE_H

#include <stdint.h>

#include "stage1-kvm/plan/vm.h"

#define HELPER_FD_SOCKET 3
#define HELPER_FD_XML    4
#define HELPER_FD_KERNEL 5
#define HELPER_FD_INITRD 6
#define HELPER_FD_SECRET 7
#define HELPER_FD_DISK0  8

#define HELPER_FD_TAP(nic, queue) \
	(HELPER_FD_DISK0 + VM_DISKS_MAX + (nic)*2 * VM_QUEUES_MAX + (queue))
#define HELPER_FD_VHOST(nic, queue) (HELPER_FD_TAP(nic, queue) + VM_QUEUES_MAX)

#define MESSAGE_TEXT_MAX 4095 /* bytes of a path, or of a line for people, which is cut */

enum message_kind {
	/* To the helper. */
	MESSAGE_PLUG,   /* the image of @lun comes with it, as a descriptor; its path is @text */
	MESSAGE_UNPLUG, /* the disk of @lun */

	/* To the driver. */
	MESSAGE_UP,         /* the domain runs */
	MESSAGE_DONE,       /* what was asked of @lun is done, or failed: @text, @left */
	MESSAGE_DISK_ERROR, /* of a disk of the domain */
	MESSAGE_SUSPENDED,  /* somebody has suspended the domain ... */
	MESSAGE_RESUMED,    /* ... and resumed it */
	MESSAGE_ENDED,      /* the last message: @text says how */
};

struct message {
	uint32_t kind;
	int32_t lun;
	uint32_t left; /* of MESSAGE_DONE: a part of the disk may still be there */
	char text[MESSAGE_TEXT_MAX + 1]; /* "": nothing to say */
};

#endif
