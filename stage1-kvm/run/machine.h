/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running VM: QEMU and husk-vsock, their channels, QMP, the console. Knows nothing of pods,
 * apps or the agent.
 */
#ifndef STAGE1_KVM_RUN_MACHINE_H
#define STAGE1_KVM_RUN_MACHINE_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1-kvm/plan/qmp.h"
#include "stage1-kvm/plan/vm.h"
#include "stage1-kvm/run/console.h"
#include "stage1-kvm/run/dial.h"
#include "stage1-kvm/run/facts.h"
#include "stage1-kvm/run/hotplug.h"
#include "stage1-kvm/run/process.h"

#define MACHINE_HOW_MAX 640 /* bytes of a phrase about how a process ended */

struct machine_ops {
	void (*console)(void *ctx);    /* at least one more console line is complete */
	void (*qmp_up)(void *ctx);     /* QEMU accepts commands */
	void (*disk_error)(void *ctx); /* a disk access of the guest failed on the host */
	/* QEMU has ended; only machine_deinit() is left. @how: "exit code 1: ...". */
	void (*qemu_ended)(void *ctx, const char *how);
	void (*vsock_ended)(void *ctx, const char *how); /* husk-vsock has ended */
};

struct machine {
	struct loop *loop; /* NULL while not started */
	struct process qemu, vsock;
	struct console console;
	int console_fd, qmp_fd;
	struct loop_watch console_watch, qmp_watch;
	struct qmp qmp;
	struct buf qmp_out;
	bool qmp_up;
	struct hotplug hotplug;
	const struct machine_ops *ops;
	void *ctx;
};

struct machine_input {
	const struct vm *vm;
	const struct facts *facts;
	const char *vsock_program; /* path of husk-vsock */
	const char *secret;        /* what the guest reads as the pod secret */
	int pod_fd;                /* pod directory, which is the working directory, too */
	const int *disk_fds;       /* one for each disk of @vm, borrowed */
	bool unprivileged_ids;     /* run QEMU and husk-vsock under @uid and its group */
	uid_t uid;
};

/*
 * Starts QEMU and, unless the host's kernel carries the guest's vsock, husk-vsock. Makes the socket
 * POD_FILE_VSOCK, or the file POD_FILE_CID, and the console log in the pod directory. 0, or -errno with @e set; then nothing runs and @m is as after machine_deinit().
 */
int machine_start(struct machine *m, struct loop *loop, const struct machine_input *in,
		  const struct machine_ops *ops, void *ctx, struct err *e);

/* How to reach the guest's vsock, from the pod directory. */
struct dial_target machine_dial_target(const struct vm *vm);

/*
 * Plugs the read-only image @fd, taken over, as disk @lun, or unplugs disk @lun. @done is called
 * later, unless the machine ends before. 0; -ENOTCONN if QEMU takes no commands yet, -E2BIG.
 */
int machine_plug(struct machine *m, int lun, int fd, hotplug_done_fn done, void *ctx);
int machine_unplug(struct machine *m, int lun, hotplug_done_fn done, void *ctx);

/* Kills QEMU; qemu_ended follows. */
void machine_kill(struct machine *m);

/*
 * Kills all processes of a machine whose guest is down, and of whose streams nothing is waited for; qemu_ended follows.
 * All at once, since each has mapped the guest's memory and freeing it is most of what they would still do: what
 * the guest was told is written is in the files of its disks.
 */
void machine_drop(struct machine *m);

/* Kills and reaps what still runs, closes everything. Harmless on a zeroed machine. */
void machine_deinit(struct machine *m);

#endif
