/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that come and go while the machine runs.
 *
 * One at a time (disk_jobs.h). Each takes the steps that stage1-kvm/vmm/qemu/qmp_disk.h describes;
 * a step that QEMU refuses undoes those before it. Knows of QEMU only the QMP connection that its
 * owner keeps: commands go into the owner's buffer, messages come from hotplug_take().
 */
#ifndef STAGE1_KVM_VMM_QEMU_HOTPLUG_H
#define STAGE1_KVM_VMM_QEMU_HOTPLUG_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "stage1-kvm/vmm/disk_jobs.h"
#include "stage1-kvm/vmm/qemu/qmp.h"

/* From the first command about a disk to its end; QEMU answers within milliseconds. */
#define HOTPLUG_LIMIT_MS INT64_C(30000)

/* Sends what is in the QMP buffer, with descriptor @fd unless it is negative. 0 or -errno. */
typedef int (*hotplug_send_fn)(void *ctx, int fd);

struct hotplug {
	struct disk_jobs jobs; /* the first has its descriptor until QEMU has it */
	struct qmp *qmp;
	struct buf *out;
	hotplug_send_fn send;
	void *send_ctx;
	int step;       /* of the first; what it waits for */
	int64_t id;     /* of the command that was sent */
	bool deleted;   /* QEMU has said that the device is gone */
	struct err why; /* the failure that is being undone */
	bool left;      /* it could not be undone */
};

/* Nothing is under way. @qmp, @out and @ctx of @send are borrowed for the life of @h. */
void hotplug_init(struct hotplug *h, struct loop *loop, struct qmp *qmp, struct buf *out,
		  hotplug_send_fn send, void *ctx);

/* Forgets all without calling anybody. */
void hotplug_deinit(struct hotplug *h);

/*
 * Plugs the read-only image @fd, taken over, as disk @lun. 0: @done will be called; -E2BIG if too
 * many wait.
 */
int hotplug_add(struct hotplug *h, int lun, int fd, backend_done_fn done, void *ctx);

/* Unplugs disk @lun, which the guest must not use any more. As above. */
int hotplug_remove(struct hotplug *h, int lun, backend_done_fn done, void *ctx);

/* Takes a message of QEMU: a reply or an event; what does not concern it has no effect. */
void hotplug_take(struct hotplug *h, const struct qmp_msg *msg);

#endif
