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
#include "lib/wire/net.h"

/* A root per app, the scratch disk, volumes. */
#define VM_DISKS_MAX (AGENT_APPS_MAX + 1 + AGENT_VOLUME_SLOTS)
#define VM_CPUS_MAX  64

/* Devices of a microvm with one interrupt controller (QEMU's docs/system/i386/microvm.rst). */
#define VM_MICROVM_SLOTS 8

#define VM_QUEUES_MAX 4  /* of a network device, each with two rings; more processors share them */
#define VM_MEMORY_MIN 64 /* MiB; a small kernel, the agent and one app */
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

enum vm_format {
	VM_FORMAT_RAW,
	VM_FORMAT_QCOW2,
};

/* A SCSI disk. A read-only one gets an O_RDONLY descriptor, a writable one O_RDWR. */
struct vm_disk {
	int lun; /* 0 to AGENT_LUN_MAX, unique */
	bool read_only;
	bool discard;    /* the guest may punch holes */
	bool disposable; /* means nothing after a crash of the host: flushes are not waited for */
	enum vm_format format;
	bool is_device;    /* what is opened is a block device */
	uint64_t may_grow; /* bytes that the file may get to; 0: it has its size */
};

/*
 * A network device. Its queues are taps of the host; @vhost: its kernel moves the packets. Or one
 * queue is a stream socket (@stream).
 */
struct vm_nic {
	unsigned char mac[NET_MAC_LEN];
	uint32_t mtu;
	size_t n_queues; /* 1 to VM_QUEUES_MAX */
	bool vhost, stream;
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
	bool shares; /* a virtiofs device (AGENT_HOST_TAG) has volumes of the host */
	struct vm_nic nics[NET_INTERFACES_MAX];
	size_t n_nics;
};

/*
 * 0 if @vm is within every limit above: numbers in range, LUNs unique, a kernel command line of
 * printable ASCII. Else -EINVAL, @e naming what is wrong.
 */
int vm_check(const struct vm *vm, struct err *e);

/* Virtio devices of the machine, but for what it can do without. */
size_t vm_count_devices(const struct vm *vm);

/* Whether the machine has room for all of them. 0, or -E2BIG and @e. */
int vm_check_devices(const struct vm *vm, struct err *e);

/* Whether one of the disks is that of a volume. */
bool vm_has_volume_disks(const struct vm *vm);

/* "tcg", "kvm"; "microvm", "q35"; "user", "kernel". NULL for a value that is none of these. */
const char *vm_accel_name(enum vm_accel accel);
const char *vm_machine_name(enum vm_machine machine);
const char *vm_vsock_name(enum vm_vsock vsock);

#endif
