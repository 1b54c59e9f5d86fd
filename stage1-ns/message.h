/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the backend and husk-ns, its helper process, tell each other: one struct for each message,
 * over a socket pair that keeps messages apart (SOCK_SEQPACKET). Both come from the same build, and
 * neither lets the pod talk to it.
 *
 * When the helper has read the end of the socket it ends the pod: its supervisor is gone, or has
 * asked for that by shutdown(2).
 */
#ifndef STAGE1_NS_MESSAGE_H
#define STAGE1_NS_MESSAGE_H

#include <stdint.h>

/*
 * Descriptors of the helper at its start: the socket; what the agent listens on; the pod's secret;
 * the file whose lock tells that the pod lives; where the agent's errors go; what apps write, a
 * directory; the network namespace to join, or the socket over which the pod's is sent to be
 * connected (stage1/net/message.h); and the image of each declared app, in the order of their
 * slots.
 */
#define HELPER_FD_SOCKET  3
#define HELPER_FD_LISTEN  4
#define HELPER_FD_SECRET  5
#define HELPER_FD_LOCK    6
#define HELPER_FD_CONSOLE 7
#define HELPER_FD_SCRATCH 8
#define HELPER_FD_NETNS   9
#define HELPER_FD_IMAGE0  10

/* Where the agent finds its disks: images by their slots, and AGENT_SCRATCH_LUN. */
#define NS_DISK_DIR "/disks"

/* Where it finds volumes of the host, by their slots. */
#define NS_VOLUME_DIR "/host"

/*
 * What apps write, below the pod directory: APP/upper. The pod has this directory, and its root may
 * give it any mode: files of the pod's users, which have the set-user-ID bit if they want it, are
 * for nobody else on the host because the one above, which the pod does not have, is closed.
 */
#define NS_DIR_APPS POD_FILE_SCRATCH "/apps" /* that is in stage1/pod/podfiles.h */

#define MESSAGE_TEXT_MAX 1023 /* bytes of a line for people: struct err has as many */

enum message_kind {
	/* To the helper. */
	MESSAGE_PLUG,   /* the image for @slot comes with it, as a descriptor */
	MESSAGE_UNPLUG, /* the image in @slot */

	/* To the backend. */
	MESSAGE_UP,   /* the agent runs; a pidfd of it comes with this */
	MESSAGE_DONE, /* what was asked of @slot is done, or failed: @text */
};

struct message {
	uint32_t kind;
	int32_t slot;
	char text[MESSAGE_TEXT_MAX + 1]; /* "": nothing to say */
};

#endif
