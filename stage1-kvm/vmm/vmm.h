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
	int kernel; /* vmlinux, O_RDONLY; the VMM's user must be able to read the file */
	int initrd; /* initramfs, likewise */
	int secret; /* memfd with the pod secret, likewise */
	/*
	 * VM_VSOCK_USER: what vsock_ends() made for the VMM. VM_VSOCK_KERNEL: /dev/vhost-vsock with
	 * the guest's CID, unless the VMM opens that itself.
	 */
	int vsock;
	const int *disks; /* one for each disk of the VM: O_RDONLY or O_RDWR, as the disk is */
	const struct backend_tap *taps; /* one for each network device */
	int shares; /* of a VM with volumes of the host: connected to a virtiofsd; else -EBADF */
};

struct vmm_input {
	const struct vm *vm;
	struct vmm_sources sources;
	int pod_fd;            /* pod directory */
	const char *uuid;      /* of the pod */
	const char *name;      /* that people gave it; NULL: none */
	const char *cache_dir; /* what pods of the host can share; NULL: write no disk */
	const char *program;   /* path of QEMU */
	const char *uri;       /* of libvirt */
	const struct spawn_cgroups *cgroups; /* of a driver that @is_here: where it is to run */
	bool unprivileged_ids;               /* run it under @uid and the group of that number */
	uid_t uid;
	bool kvm_has_gid; /* who uses /dev/kvm has to be in the group @kvm_gid */
	gid_t kvm_gid;
	bool debug; /* say what could be better */
};

struct vmm_events {
	void (*up)(void *ctx); /* the VMM accepts commands */
	/* The guest's serial console, a stream socket, which is taken over. Once, before @ended. */
	void (*console)(void *ctx, int fd);
	void (*suspended)(void *ctx,
			  bool is);    /* somebody has stopped the guest, or lets it go on */
	void (*disk_error)(void *ctx); /* a disk access of the guest failed on the host */
	/*
	 * The VMM has ended; only free is left. @how: "exit code 1: ...", and @was_up if it was up
	 * before.
	 */
	void (*ended)(void *ctx, const char *how, bool was_up);
};

struct vmm_driver {
	const char *name; /* for people */
	bool opens_vhost; /* it opens /dev/vhost-vsock itself, and claims the CID of the VM */
	bool only_q35;    /* it has no other machine */
	bool is_here;     /* the VMM is a child process of the supervisor */
	bool has_volumes; /* it takes disks and the virtiofs device of volumes */

	/*
	 * Whether the host has what it takes to start machines at @uri. NULL: nothing to ask.
	 * @may_start: a daemon that is started when it is needed may be, to find out. 0, or -errno
	 * and @e with the remedy.
	 */
	int (*check)(const char *uri, bool may_start, struct err *e);

	/*
	 * Makes the channel of a vhost-user device, before start(): *ret_device is the device's
	 * end, a connected stream socket or one that listens for the VMM, *ret_vmm what start() is
	 * given, which may be -EBADF. 0, or -errno and @e.
	 */
	int (*vsock_ends)(const struct vmm_input *in, int *ret_device, int *ret_vmm, struct err *e);

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
