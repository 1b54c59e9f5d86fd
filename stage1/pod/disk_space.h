/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room on the host for what apps write.
 *
 * Theory of operation. A write of an app for which the host has no room fails in the pod, and the
 * backend tells that one has failed. If there is no room then, POD_FILE_DISK_FULL is in the pod
 * directory, for "husk status" and "husk events", until a look at the file system, once a second,
 * finds DISK_SPACE_MIN bytes again. Apps that try again then go on; nothing was stopped.
 */
#ifndef STAGE1_POD_DISK_SPACE_H
#define STAGE1_POD_DISK_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/os/loop.h"

/* Bytes that must be free before the disk is no longer called full: less is used up at once. */
#define DISK_SPACE_MIN (UINT64_C(4) << 20)

#define DISK_SPACE_LOOK_MS INT64_C(1000) /* between two looks */

struct disk_space {
	struct loop *loop;
	int pod_fd;   /* borrowed */
	uint64_t min; /* DISK_SPACE_MIN */
	struct loop_timer look;
	bool full;
};

/* @pod_fd, the pod directory, stays open until disk_space_deinit(). */
void disk_space_init(struct disk_space *room, struct loop *loop, int pod_fd);

/* An access has failed: if that may be because room is short, notes it, and says so once. */
void disk_space_note_error(struct disk_space *room);

/* Stops looking; the note goes. Harmless on a zeroed one. */
void disk_space_deinit(struct disk_space *room);

#endif
