/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine as a libvirt domain (https://libvirt.org/formatdomain.html).
 *
 * Pure. What libvirt cannot express of a machine as the QEMU driver makes it, and what it adds:
 * docs/decisions/0010-libvirt.md.
 */
#ifndef STAGE1_KVM_VMM_LIBVIRT_DOMAIN_XML_H
#define STAGE1_KVM_VMM_LIBVIRT_DOMAIN_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "stage1-kvm/plan/vm.h"

/*
 * The PCI port that is there for network device @i of the VM: libvirt cannot be given taps that are
 * open already, so QEMU is, before the VM runs (stage1-kvm/libvirt/nic.h).
 */
#define DOMAIN_NIC_PORT "nicport%d"

/* 33 disks of some 600 bytes, paths of up to 4096 bytes, all of it escaped, and the rest. */
#define DOMAIN_XML_MAX ((size_t)65536)

/* Files of the directory of the domain, which QEMU opens. */
#define DOMAIN_FILE_KERNEL  "vmlinux"
#define DOMAIN_FILE_INITRD  "initramfs"
#define DOMAIN_FILE_SECRET  "secret"
#define DOMAIN_FILE_CONSOLE "console.sock" /* QEMU connects to these two */
#define DOMAIN_FILE_VSOCK   "vsock.sock"
#define DOMAIN_FILE_DISK    "disk%d" /* of the LUN */

/* What the description of a machine does not say. */
struct domain_names {
	const char *uuid;
	const char *pod;      /* the name that people gave the pod; NULL: none */
	const char *dir;      /* absolute path of the directory with the files above */
	const char *emulator; /* absolute path of QEMU */
	bool labels;          /* libvirt changes the owners of files; shared ones must stay */
};

/*
 * Appends the domain: named as the pod, or husk-UUID. 0; -EINVAL if @vm is out of its limits, no
 * q35, or a text has what XML cannot have (control characters, bad UTF-8), with @e; -EFBIG,
 * -ENOMEM.
 */
int domain_xml(const struct vm *vm, const struct domain_names *names, struct buf *out,
	       struct err *e);

/* Appends one disk of it, as it is attached and detached. 0 or -errno with @e. */
int domain_disk_xml(const struct vm_disk *disk, const struct domain_names *names, struct buf *out,
		    struct err *e);

#endif
