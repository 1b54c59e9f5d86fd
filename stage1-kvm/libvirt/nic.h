/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network devices of a domain that has not begun to run. libvirt cannot be given taps that are open
 * already; QEMU can, by commands that libvirt lets through
 * (https://libvirt.org/html/libvirt-libvirt-qemu.html).
 */
#ifndef STAGE1_KVM_LIBVIRT_NIC_H
#define STAGE1_KVM_LIBVIRT_NIC_H

#include <libvirt/libvirt.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "stage1-kvm/plan/vm.h"

/*
 * Adds the device @i of the VM to the paused domain @d, with the descriptors HELPER_FD_TAP() and
 * HELPER_FD_VHOST(). 0, or -errno and @e.
 */
int nic_add(virDomainPtr d, const struct vm_nic *nic, int i, struct err *e);

#endif
