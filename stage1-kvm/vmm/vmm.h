/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine monitor, as the backend drives it: it turns a struct vm and opened sources into
 * a running machine. One driver for each VMM.
 */
#ifndef STAGE1_KVM_VMM_VMM_H
#define STAGE1_KVM_VMM_VMM_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1-kvm/plan/vm.h"
#include "stage1/backend.h"

/* A running machine; each driver defines its own. */
struct vmm;

/* What the machine is made of, opened: borrowed descriptors. */
struct vmm_sources {
	int kernel;  /* vmlinux, O_RDONLY; the VMM's user must be able to read the file */
	int initrd;  /* initramfs, likewise */
	int secret;  /* memfd with the pod secret, likewise */
	int console; /* one end of a stream socket pair: the guest's serial console */
	int vsock;   /* VM_VSOCK_USER: likewise, vhost-user; VM_VSOCK_KERNEL: /dev/vhost-vsock */
	const int *disks; /* one for each disk of the VM: O_RDONLY or O_RDWR, as the disk is */
};

struct vmm_input {
	const struct vm *vm;
	struct vmm_sources sources;
	const char *program;   /* path of the VMM */
	bool unprivileged_ids; /* run it under @uid and the group of that number */
	uid_t uid;
	bool kvm_has_gid; /* who uses /dev/kvm has to be in the group @kvm_gid */
	gid_t kvm_gid;
};

struct vmm_events {
	void (*up)(void *ctx);         /* the VMM accepts commands */
	void (*disk_error)(void *ctx); /* a disk access of the guest failed on the host */
	/*
	 * The VMM has ended; only free is left. @how: "exit code 1: ...", and @was_up if it was up
	 * before.
	 */
	void (*ended)(void *ctx, const char *how, bool was_up);
};

struct vmm_driver {
	const char *name; /* for people */

	/* 0 (free), or -errno and @e; then nothing runs. */
	int (*start)(struct loop *loop, const struct vmm_input *in, const struct vmm_events *events,
		     void *ctx, struct vmm **ret, struct err *e);

	/* As of struct backend, with a LUN for the slot. */
	int (*plug)(struct vmm *m, int lun, int fd, backend_done_fn done, void *ctx);
	int (*unplug)(struct vmm *m, int lun, backend_done_fn done, void *ctx);

	/* Ends the machine at once; `ended` follows. */
	void (*kill)(struct vmm *m);

	/* Kills and reaps what still runs, frees everything. Accepts NULL. */
	void (*free)(struct vmm *m);
};

#endif
