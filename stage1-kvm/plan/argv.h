/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct vm -> command line of qemu-system-x86_64 (QEMU 7.2 or later).
 */
#ifndef STAGE1_KVM_PLAN_ARGV_H
#define STAGE1_KVM_PLAN_ARGV_H

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "stage1-kvm/plan/vm.h"

/* 6 arguments per disk (-add-fd, -blockdev, -device and their values) and some 50 others. */
#define ARGV_MAX (64 + 6 * VM_DISKS_MAX)

/* Names QEMU knows our objects by; QMP commands use them. */
#define ARGV_ID_SCSI  "scsi0" /* the virtio-scsi controller; its bus is ARGV_ID_SCSI ".0" */
#define ARGV_ID_VSOCK "vsock0"

/*
 * What QEMU must have for argv_build(): models of "-device" for each machine type and vsock mode;
 * ends with NULL. The second list is for VM_VSOCK_KERNEL alone.
 */
extern const char *const argv_devices[];
extern const char *const argv_devices_kernel_vsock[];

/*
 * Appends argv, program name included, to @argv (initialise it with ARGV_MAX). -EINVAL with @e
 * naming what is wrong with @vm: a limit of vm.h, a LUN or descriptor used twice, a character in
 * the kernel command line that is not printable ASCII. -E2BIG, -ENOMEM.
 */
int argv_build(const struct vm *vm, struct strv *argv, struct err *e);

#endif
