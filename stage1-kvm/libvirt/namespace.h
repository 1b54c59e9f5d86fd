/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where libvirt without a daemon (qemu:///embed) lives: in namespaces of its own.
 *
 * Theory of operation. libvirt leaves QEMU alive when it ends itself, and its state on disk. In a
 * PID namespace QEMU cannot outlive it: the kernel kills what is left when the first process of the
 * namespace ends, which does nothing but wait for the others. In a mount namespace its root
 * directory is a tmpfs that nobody has to remove, and whose short path fits in addresses of
 * sockets; and /dev has what a VM needs and nothing else, without a /dev/kvm that is of no use:
 * libvirt would probe QEMU again and again because of it.
 */
#ifndef STAGE1_KVM_LIBVIRT_NAMESPACE_H
#define STAGE1_KVM_LIBVIRT_NAMESPACE_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "stage1-kvm/vmm/libvirt/domain_dir.h"

/* libvirt's root directory there; the name of the directory of the domain is that of outside. */
#define NAMESPACE_LIBVIRT_ROOT DOMAIN_DIR_ROOT "/libvirt"

struct namespace_input {
	const char *dir;       /* directory of the domain */
	const char *cache_dir; /* for what libvirt knows about QEMU; NULL: find out each time */
	uid_t uid;             /* who QEMU runs as, with the group of the same number */
	bool kvm;              /* it uses /dev/kvm */
};

/*
 * Returns 0 in a process of the new namespaces, with everything there; the one that called stays
 * behind, waits for it and exits as it does. -errno with @e if that cannot be.
 */
int namespace_enter(const struct namespace_input *in, struct err *e);

#endif
