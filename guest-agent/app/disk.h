/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the disks of the pod by their number.
 *
 * In a VM they are LUNs of a SCSI target and appear, maybe a moment after the host plugged them, in
 * sysfs. Without a VM they are entries of a directory: DIR/NUMBER is a block device or a directory.
 */
#ifndef GUEST_AGENT_APP_DISK_H
#define GUEST_AGENT_APP_DISK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/fault.h"

#define DISK_WAIT_MS     10000 /* how long a disk may take to appear */
#define DISK_ENTRIES_MAX 1024  /* SCSI devices looked at: LUNs of one target and some of others */

/* Where SCSI devices are listed: names "H:C:T:L", each with block/NAME in it. */
#define DISK_SYSFS "/sys/bus/scsi/devices"

/* Where SCSI hosts are listed: names "hostN", each with a file "scan" in it. */
#define DISK_SCSI_HOSTS "/sys/class/scsi_host"

/* Who looks for disks: "manual" while the kernel starts, "sync" when it may, too. */
#define DISK_SCSI_SCAN_TYPE "/sys/module/scsi_mod/parameters/scan"

/*
 * Looks for the LUNs of target 0 of every SCSI host in @hosts, a directory like DISK_SCSI_HOSTS;
 * the kernel, which is told not to, would look for 255 targets more. Then lets the kernel, in the
 * file @scan_type, so that it takes what is plugged. Waits until the disks have answered: only for
 * processes that may. 0, also without SCSI, or -errno of the last that could not be asked.
 */
int disk_scan(const char *hosts, const char *scan_type);

/* Whether the kernel knows @lun of @sysfs, even if it has no block device yet. */
bool disk_is_known(const char *sysfs, int64_t lun);

/*
 * Looks @lun up in @sysfs, a directory like DISK_SYSFS, and yields "/dev/NAME" in @ret of @size
 * bytes. 0, -ENOENT if it is not there (yet), or -errno.
 */
int disk_lookup(const char *sysfs, int64_t lun, char *ret, size_t size);

/*
 * Takes @lun out of the kernel's list of @sysfs, so that the next disk there is seen as a new one.
 * 0, also if it is not there, or -errno.
 */
int disk_forget(const char *sysfs, int64_t lun);

/*
 * Waits up to DISK_WAIT_MS for disk @lun and yields its path: below @dir, or if that is NULL as a
 * SCSI device. Sleeps: only for processes that may. 0 or FAULT_SET.
 */
int disk_wait(const char *dir, int64_t lun, char ret[PATH_MAX], struct fault *f);

#endif
