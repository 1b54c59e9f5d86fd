/* SPDX-License-Identifier: Apache-2.0 */
/* One command for one network: its plugins in their order, or for DEL against it. */
#ifndef STAGE1_NET_CNI_CALL_H
#define STAGE1_NET_CNI_CALL_H

#include "lib/base/err.h"
#include "stage1/net/cni/attachment.h"
#include "stage1/net/cni/result.h"

/* What is the same for all plugins. All is borrowed. */
struct cni_call {
	const char *container, *netns;
	const struct strv *dirs;
	int64_t timeout_ms;  /* of a plugin; not for DEL */
	int64_t deadline_ns; /* DEL: when all of them have to be done (clock_monotonic_ns()) */
	int cancel_fd;
};

/*
 * Each of these returns 0, or -errno and @e, "network \"N\": plugin \"P\": ...".
 *
 * ADD: @a->result is what the last plugin that succeeded said, *ret, the caller's, what that means.
 */
int cni_call_add(const struct cni_call *call, struct cni_attachment *a, struct cni_result *ret,
		 struct err *e);

/*
 * DEL: goes on after a failure, but for -ECANCELED, and returns the first. A plugin that is not
 * where it was is searched in the directories, and gets half of the time that is left.
 */
int cni_call_delete(const struct cni_call *call, const struct cni_attachment *a, struct err *e);

/* CHECK, which the version must have. */
int cni_call_check(const struct cni_call *call, const struct cni_attachment *a, struct err *e);

#endif
