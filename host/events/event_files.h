/* SPDX-License-Identifier: Apache-2.0 */
/* One look at a pod's files, for `husk events`. */
#ifndef HOST_EVENTS_EVENT_FILES_H
#define HOST_EVENTS_EVENT_FILES_H

#include "host/events/event_state.h"

/*
 * Reads times and apps from the pod directory @pod_fd into @ret, whose phases, there and over the
 * caller fills, over before; a pod that is over tells all, also what is damaged. What cannot be
 * read is not there. 0; OBSERVE_APPS with as many apps as are told about, if there are more;
 * -errno.
 */
enum {
	OBSERVE_APPS = 1,
};
int pod_observe(int pod_fd, struct pod_seen *ret);

#endif
