/* SPDX-License-Identifier: Apache-2.0 */
/* The pod as a virtual machine. */
#ifndef STAGE1_KVM_BACKEND_BACKEND_H
#define STAGE1_KVM_BACKEND_BACKEND_H

#include "stage1/backend.h"

extern const struct backend kvm_backend;

#endif
