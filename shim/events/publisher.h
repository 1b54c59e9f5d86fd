/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells containerd of events, in their order: each is sent until containerd has taken it, again
 * while it cannot be reached, as it may be started anew at any time, and given up after half a
 * minute: whoever comes later asks what a container is doing.
 */
#ifndef SHIM_EVENTS_PUBLISHER_H
#define SHIM_EVENTS_PUBLISHER_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "lib/os/loop.h"

/* Events that wait; what comes beyond is lost. A task has about six in its life. */
#define PUBLISHER_QUEUE_MAX 4096

/* How long containerd may take for one, and how often it is tried: for half a minute. */
#define PUBLISHER_REPLY_MS 5000
#define PUBLISHER_TRIES    10
#define PUBLISHER_AGAIN_MS 3000

struct publisher;

/*
 * For the unix socket @path (borrowed; "" or NULL: nobody wants to know), and the namespace @ns of
 * containerd (borrowed). 0 or -ENOMEM.
 */
int publisher_new(struct loop *loop, const char *path, const char *ns, struct publisher **ret);

/*
 * Tells of an event: @topic ("/tasks/exit") and @type ("containerd.events.TaskExit") are constants,
 * @message is packed at once. What there is no memory for is lost.
 */
void publisher_publish(struct publisher *p, const char *topic, const char *type,
		       const ProtobufCMessage *message);

/* True if nothing is left to be told. */
bool publisher_is_idle(const struct publisher *p);

/* Forgets what was not told. Accepts NULL. */
void publisher_free(struct publisher *p);

#endif
