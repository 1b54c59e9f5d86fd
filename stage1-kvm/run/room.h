/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room on the host for what apps write.
 *
 * Theory of operation. A write of the guest for which the host has no room fails in the guest, and
 * QEMU tells that one has failed. If there is no room then, POD_FILE_DISK_FULL is in the pod
 * directory, for "husk status" and "husk events", until a look at the file system, once a second,
 * finds ROOM_MIN bytes again. Apps that try again then go on; nothing was stopped.
 */
#ifndef STAGE1_KVM_RUN_ROOM_H
#define STAGE1_KVM_RUN_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/os/loop.h"

/* Bytes that must be free before the disk is no longer called full: less is used up at once. */
#define ROOM_MIN (UINT64_C(4) << 20)

#define ROOM_LOOK_MS INT64_C(1000) /* between two looks */

struct room {
	struct loop *loop;
	int pod_fd;   /* borrowed */
	uint64_t min; /* ROOM_MIN */
	struct loop_timer look;
	bool full;
};

/* @pod_fd, the pod directory, stays open until room_deinit(). */
void room_init(struct room *room, struct loop *loop, int pod_fd);

/* An access has failed: if that may be because room is short, notes it, and says so once. */
void room_note_error(struct room *room);

/* Stops looking; the note goes. Harmless on a zeroed one. */
void room_deinit(struct room *room);

#endif
