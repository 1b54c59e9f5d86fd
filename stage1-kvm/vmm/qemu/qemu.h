/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU as a VMM: a child process, driven through QMP. */
#ifndef STAGE1_KVM_VMM_QEMU_QEMU_H
#define STAGE1_KVM_VMM_QEMU_QEMU_H

#include "stage1-kvm/vmm/vmm.h"

extern const struct vmm_driver qemu_driver;

#endif
