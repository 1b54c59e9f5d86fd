/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAGE1_KVM_VMM_LIBVIRT_LIBVIRT_H
#define STAGE1_KVM_VMM_LIBVIRT_LIBVIRT_H

#include "stage1-kvm/vmm/vmm.h"

/* Domains of libvirt, through the process husk-libvirt, which is linked with it. */
extern const struct vmm_driver libvirt_driver;

#endif
