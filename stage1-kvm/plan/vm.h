/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine as a value: everything that decides what a VMM is asked for, and nothing else.
 *
 * Pure. What the machine opens is named by what it is (struct vmm_sources of stage1-kvm/vmm/vmm.h
 * has the opened objects); no path and no string of the pod gets near a command line.
 */
#ifndef STAGE1_KVM_PLAN_VM_H
#define STAGE1_KVM_PLAN_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/wire/agent.h"

#define VM_DISKS_MAX  (AGENT_APPS_MAX + 1) /* a root per app, and the scratch disk */
#define VM_CPUS_MAX   64
#define VM_MEMORY_MIN 64            /* MiB; a small kernel, the agent and one app */
#define VM_MEMORY_MAX (1024 * 1024) /* MiB */
#define VM_APPEND_MAX 1023          /* bytes of kernel command line; x86 takes 2047 */
#define VM_CID_MIN    UINT32_C(3)   /* 0 to 2 are reserved (virtio 1.2, 5.10.4) */
#define VM_CID_MAX    UINT32_C(0xfffffffe)

enum vm_accel {
	VM_ACCEL_TCG,
	VM_ACCEL_KVM,
};

enum vm_machine {
	VM_MACHINE_MICROVM,
	VM_MACHINE_Q35,
};

enum vm_vsock {
	VM_VSOCK_USER,   /* a vhost-user device, which tells the guest its CID */
	VM_VSOCK_KERNEL, /* vhost-vsock of the host's kernel */
};

/* A SCSI disk. A read-only one gets an O_RDONLY descriptor, a writable one O_RDWR. */
struct vm_disk {
	int lun; /* 0 to AGENT_LUN_MAX, unique */
	bool read_only;
	bool discard;    /* the guest may punch holes */
	bool disposable; /* means nothing after a crash of the host: flushes are not waited for */
};

struct vm {
	enum vm_accel accel;
	enum vm_machine machine;
	enum vm_vsock vsock;
	uint32_t guest_cid; /* VM_VSOCK_KERNEL only */
	unsigned memory_mib;
	unsigned cpus;
	char append[VM_APPEND_MAX + 1]; /* kernel command line */
	struct vm_disk disks[VM_DISKS_MAX];
	size_t n_disks;
};

/*
 * 0 if @vm is within every limit above: numbers in range, LUNs unique, a kernel command line of
 * printable ASCII. Else -EINVAL, @e naming what is wrong.
 */
int vm_check(const struct vm *vm, struct err *e);

/* "tcg", "kvm"; "microvm", "q35"; "user", "kernel". NULL for a value that is none of these. */
const char *vm_accel_name(enum vm_accel accel);
const char *vm_machine_name(enum vm_machine machine);
const char *vm_vsock_name(enum vm_vsock vsock);

#endif
