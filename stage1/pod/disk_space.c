/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/disk_space.h"

#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"

static void on_look(void *ctx);

static void look_again(struct disk_space *room)
{
	loop_timer_arm(room->loop, &room->look,
		       clock_monotonic_ns() + DISK_SPACE_LOOK_MS * NS_PER_MS, on_look, room);
}

static void disk_space_forget(struct disk_space *room)
{
	room->full = false;
	unlinkat(room->pod_fd, POD_FILE_DISK_FULL, 0);
}

static bool is_full(const struct disk_space *room)
{
	struct statvfs fs;
	return fstatvfs(room->pod_fd, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize < room->min;
}

static void on_look(void *ctx)
{
	struct disk_space *room = ctx;
	if (is_full(room))
		look_again(room);
	else
		disk_space_forget(room);
}

void disk_space_init(struct disk_space *room, struct loop *loop, int pod_fd)
{
	*room = (struct disk_space){ .loop = loop, .pod_fd = pod_fd, .min = DISK_SPACE_MIN };
}

void disk_space_note_error(struct disk_space *room)
{
	if (room->full || !is_full(room))
		return;
	room->full = true;
	/* An empty file seldom needs room; if this one does, the line below is all there is. */
	file_touch_at(room->pod_fd, POD_FILE_DISK_FULL, 0640);
	dprintf(STDERR_FILENO, "stage1: the file system of the pod's directory is full: apps "
			       "that write get errors until there is room (remove something)\n");
	look_again(room);
}

void disk_space_deinit(struct disk_space *room)
{
	if (!room->loop)
		return;
	loop_timer_disarm(&room->look);
	if (room->full)
		disk_space_forget(room);
	room->loop = NULL;
}
