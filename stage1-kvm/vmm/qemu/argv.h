/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct vm -> command line of qemu-system-x86_64 (QEMU 7.2 or later).
 */
#ifndef STAGE1_KVM_VMM_QEMU_ARGV_H
#define STAGE1_KVM_VMM_QEMU_ARGV_H

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "stage1-kvm/plan/vm.h"

/*
 * 8 arguments per disk (-add-fd, -blockdev twice, -device and their values), 4 per network device,
 * others.
 */
#define ARGV_MAX (64 + 8 * VM_DISKS_MAX + 4 * NET_INTERFACES_MAX)

/*
 * Numbers of descriptors in the QEMU process: the sources of struct vmm_sources, and the QMP
 * socket. 0 to 2 are its stdio: /dev/null, /dev/null, its log. Disk i of struct vm is ARGV_FD_DISK0
 * + i. Queue q of network device i is ARGV_FD_TAP(i, q), its vhost ARGV_FD_VHOST(i, q).
 */
enum {
	ARGV_FD_KERNEL = 3,
	ARGV_FD_INITRD = 4,
	ARGV_FD_SECRET = 5,
	ARGV_FD_CONSOLE = 6,
	ARGV_FD_QMP = 7,
	ARGV_FD_VSOCK = 8,
	ARGV_FD_SHARES = 9,
	ARGV_FD_DISK0 = 16,
	ARGV_FD_NIC0 = ARGV_FD_DISK0 + VM_DISKS_MAX,
};
#define ARGV_FD_TAP(nic, queue)   (ARGV_FD_NIC0 + (nic)*2 * VM_QUEUES_MAX + (queue))
#define ARGV_FD_VHOST(nic, queue) (ARGV_FD_TAP(nic, queue) + VM_QUEUES_MAX)

/* Names QEMU knows our objects by; QMP commands use them. */
#define ARGV_ID_SCSI  "scsi0" /* the virtio-scsi controller; its bus is ARGV_ID_SCSI ".0" */
#define ARGV_ID_VSOCK "vsock0"

#define ARGV_SHARES_QUEUE 1024 /* requests that can be under way; as much as virtiofsd takes */

/*
 * What QEMU must have for argv_build(): models of "-device" for each machine type and vsock mode;
 * ends with NULL. The second list is for VM_VSOCK_KERNEL alone.
 */
extern const char *const argv_devices[];
extern const char *const argv_devices_kernel_vsock[];

/*
 * Appends argv, program name included, to @argv (initialise it with ARGV_MAX). -EINVAL with @e
 * naming what is wrong with @vm: a limit of vm.h, a LUN used twice, a character in the kernel
 * command line that is not printable ASCII. -E2BIG, -ENOMEM.
 */
int argv_build(const struct vm *vm, struct strv *argv, struct err *e);

#endif
