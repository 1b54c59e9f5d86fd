/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/room.h"

#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"

static void on_look(void *ctx);

static void look_again(struct room *room)
{
	loop_timer_arm(room->loop, &room->look, clock_monotonic_ns() + ROOM_LOOK_MS * NS_PER_MS,
		       on_look, room);
}

static void forget(struct room *room)
{
	room->full = false;
	unlinkat(room->pod_fd, POD_FILE_DISK_FULL, 0);
}

static bool is_full(const struct room *room)
{
	struct statvfs fs;
	return fstatvfs(room->pod_fd, &fs) < 0 || (uint64_t)fs.f_bavail * fs.f_frsize < room->min;
}

static void on_look(void *ctx)
{
	struct room *room = ctx;
	if (is_full(room))
		look_again(room);
	else
		forget(room);
}

void room_init(struct room *room, struct loop *loop, int pod_fd)
{
	*room = (struct room){ .loop = loop, .pod_fd = pod_fd, .min = ROOM_MIN };
}

void room_note_error(struct room *room)
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

void room_deinit(struct room *room)
{
	if (!room->loop)
		return;
	loop_timer_disarm(&room->look);
	if (room->full)
		forget(room);
	room->loop = NULL;
}
