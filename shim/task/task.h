/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service containerd.task.v2.Task of one pod: containers are its apps.
 *
 * Theory of operation. What a request asks for is done by jobs (shim/job), one after the other for
 * each container; it is answered when the last has ended. What happens to apps nobody is asked: the
 * pod's directory is watched, as `husk events` does. An app's end is told when its output is out,
 * too: whoever hears of the end may stop reading.
 */
#ifndef SHIM_TASK_TASK_H
#define SHIM_TASK_TASK_H

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "shim/events/publisher.h"

struct shim;

/* What a shim is started with. All is borrowed. */
struct shim_setup {
	struct loop *loop;
	int listen_fd; /* taken over */
	struct publisher *publisher;
	const char *ns; /* containerd's namespace */
};

/* 0 or -errno and @e. */
int shim_new(const struct shim_setup *setup, struct shim **ret, struct err *e);

/* Waits for what happens next, and does what is to be done then. 0 or -errno. */
int shim_turn(struct shim *s);

/* True if it was asked to end, and all its answers and events are out. */
bool shim_is_over(const struct shim *s);

/* Ends nothing but the shim itself. Accepts NULL. */
void shim_free(struct shim *s);

#endif
