/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of the job under way, each named after the reply or event that it waits for:
 *
 *   add:     FD -> NODE -> DEVICE -> done
 *   remove:  UNPLUG -> GONE (the event; it may come before the reply) -> NODE_DEL -> FD_DEL -> done
 *
 * A failure at NODE goes on with FD_DEL, one at DEVICE with NODE_DEL, and ends as a failure. What
 * fails while it undoes something, or when nobody answers, is not tried again: whoever asked is
 * told that the LUN may stay taken in QEMU.
 */
#include "stage1-kvm/vmm/qemu/hotplug.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "stage1-kvm/vmm/qemu/qmp_disk.h"

enum step {
	STEP_START,
	STEP_FD,
	STEP_NODE,
	STEP_DEVICE,
	STEP_UNPLUG,
	STEP_GONE,
	STEP_NODE_DEL,
	STEP_FD_DEL,
};

static void hotplug_finish(struct hotplug *h)
{
	h->step = STEP_START;
	disk_jobs_finish(&h->jobs, h->why.code < 0 ? &h->why : NULL, h->left);
}

static void hotplug_fail(struct hotplug *h, int code, bool left, const char *what)
{
	h->left = left;
	if (h->why.code == 0)
		err_set(&h->why, code, "QEMU: disk %d: %s", h->jobs.queue[0].lun, what);
}

static void on_limit(void *ctx)
{
	struct hotplug *h = ctx;
	hotplug_fail(h, -ETIMEDOUT, true, "it does not answer");
	hotplug_finish(h);
}

/* Sends the command of @step. */
static int send_step(struct hotplug *h, enum step step)
{
	const struct disk_job *job = &h->jobs.queue[0];
	int lun = job->lun;
	int r = 0;
	h->step = step;
	switch (step) {
	case STEP_FD:
		r = qmp_disk_fd_add(h->qmp, h->out, lun, &h->id);
		break;
	case STEP_NODE:
		r = qmp_disk_node_add(h->qmp, h->out, lun, lun, true, &h->id);
		break;
	case STEP_DEVICE:
		r = qmp_disk_device_add(h->qmp, h->out, lun, &h->id);
		break;
	case STEP_UNPLUG:
		r = qmp_disk_device_del(h->qmp, h->out, lun, &h->id);
		break;
	case STEP_NODE_DEL:
		r = qmp_disk_node_del(h->qmp, h->out, lun, &h->id);
		break;
	case STEP_FD_DEL:
		r = qmp_disk_fd_remove(h->qmp, h->out, lun, &h->id);
		break;
	case STEP_START:
	case STEP_GONE:
		return 0;
	}
	return r < 0 ? r : h->send(h->send_ctx, step == STEP_FD ? job->fd : -EBADF);
}

static void go(struct hotplug *h, enum step step)
{
	int r = send_step(h, step);
	if (r == 0)
		return;
	hotplug_fail(h, r, true, "cannot send a command");
	hotplug_finish(h);
}

static void begin_next(void *ctx)
{
	struct hotplug *h = ctx;
	h->why = ERR_INIT;
	h->deleted = h->left = false;
	go(h, h->jobs.queue[0].remove ? STEP_UNPLUG : STEP_FD);
}

static const struct disk_jobs_ops ops = { begin_next, on_limit, HOTPLUG_LIMIT_MS };

void hotplug_init(struct hotplug *h, struct loop *loop, struct qmp *qmp, struct buf *out,
		  hotplug_send_fn send, void *ctx)
{
	*h = (struct hotplug){ .qmp = qmp, .out = out, .send = send, .send_ctx = ctx };
	disk_jobs_init(&h->jobs, loop, &ops, h);
}

void hotplug_deinit(struct hotplug *h)
{
	disk_jobs_deinit(&h->jobs);
}

int hotplug_add(struct hotplug *h, int lun, int fd, backend_done_fn done, void *ctx)
{
	const struct disk_job job = { .lun = lun, .fd = fd, .done = done, .ctx = ctx };
	return disk_jobs_add(&h->jobs, &job);
}

int hotplug_remove(struct hotplug *h, int lun, backend_done_fn done, void *ctx)
{
	const struct disk_job job = {
		.remove = true, .lun = lun, .fd = -EBADF, .done = done, .ctx = ctx
	};
	return disk_jobs_add(&h->jobs, &job);
}

/* The command of the present step was carried out. */
static void succeeded(struct hotplug *h)
{
	switch ((enum step)h->step) {
	case STEP_FD:
		fd_replace(&h->jobs.queue[0].fd, -EBADF); /* QEMU has it */
		go(h, STEP_NODE);
		return;
	case STEP_NODE:
		go(h, STEP_DEVICE);
		return;
	case STEP_UNPLUG:
		if (h->deleted)
			go(h, STEP_NODE_DEL);
		else
			h->step = STEP_GONE;
		return;
	case STEP_NODE_DEL:
		go(h, STEP_FD_DEL);
		return;
	case STEP_DEVICE:
	case STEP_FD_DEL:
		hotplug_finish(h);
		return;
	case STEP_START:
	case STEP_GONE:
		return;
	}
}

static void refused(struct hotplug *h, const char *text)
{
	bool undoing = h->why.code != 0 || h->jobs.queue[0].remove;
	hotplug_fail(h, -EIO, undoing, text);
	if (h->step == STEP_NODE)
		go(h, STEP_FD_DEL);
	else if (h->step == STEP_DEVICE)
		go(h, STEP_NODE_DEL);
	else
		hotplug_finish(h);
}

static void take_event(struct hotplug *h, const struct qmp_msg *msg)
{
	char name[32];
	const char *device;
	if (strcmp(msg->name, "DEVICE_DELETED") != 0 || !h->jobs.queue[0].remove)
		return;
	snprintf(name, sizeof(name), "disk%d", h->jobs.queue[0].lun);
	if (json_get_str(msg->body, "device", sizeof(name), &device) < 0 ||
	    strcmp(device, name) != 0)
		return;
	h->deleted = true;
	if (h->step == STEP_GONE)
		go(h, STEP_NODE_DEL);
}

void hotplug_take(struct hotplug *h, const struct qmp_msg *msg)
{
	if (h->jobs.n == 0 || h->step == STEP_START)
		return;
	if (msg->kind == QMP_EVENT)
		take_event(h, msg);
	else if (msg->id != h->id || h->step == STEP_GONE)
		return;
	else if (msg->kind == QMP_RETURN)
		succeeded(h);
	else if (msg->kind == QMP_ERROR)
		refused(h, msg->text);
}
