/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of a SCSI disk that comes and goes while the machine runs. Node and device are both
 * named "disk<lun>", as those of a cold-plugged disk are (argv.h).
 *
 * Adding: "add-fd" with the descriptor in the same message puts it into a set; its reply says
 * which. Then the node, then the device. Removing: the device; when the event DEVICE_DELETED has
 * named it, the node. A command that is refused leaves the earlier steps for the caller to undo.
 */
#ifndef STAGE1_KVM_VMM_QEMU_QMP_DISK_H
#define STAGE1_KVM_VMM_QEMU_QMP_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "stage1-kvm/vmm/qemu/qmp.h"

#define QMP_FDSET_MAX INT64_C(0x7fffffff) /* ours; QEMU takes any 64-bit integer */

/* All of them: -EINVAL for a LUN or set out of range; otherwise as qmp_command(). */

/* "add-fd": QEMU takes the descriptor that travels with these bytes into set @set. */
int qmp_disk_fd_add(struct qmp *q, struct buf *out, int64_t set, int64_t *ret_id);

/* "remove-fd": closes the descriptors of @set that no node uses. */
int qmp_disk_fd_remove(struct qmp *q, struct buf *out, int64_t set, int64_t *ret_id);

/* "blockdev-add" of a raw image in descriptor set @set; a writable one lets the guest discard. */
int qmp_disk_node_add(struct qmp *q, struct buf *out, int64_t set, int lun, bool read_only,
		      int64_t *ret_id);

/* "blockdev-del", "device_add", "device_del". */
int qmp_disk_node_del(struct qmp *q, struct buf *out, int lun, int64_t *ret_id);
int qmp_disk_device_add(struct qmp *q, struct buf *out, int lun, int64_t *ret_id);
int qmp_disk_device_del(struct qmp *q, struct buf *out, int lun, int64_t *ret_id);

#endif
