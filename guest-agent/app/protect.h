/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of an app that whoever runs it wants protected, beside those that always are. */
#ifndef GUEST_AGENT_APP_PROTECT_H
#define GUEST_AGENT_APP_PROTECT_H

#include "guest-agent/app/appfs.h"
#include "guest-agent/fault.h"
#include "lib/base/str.h"

enum protect_which {
	PROTECT_ALL,
	PROTECT_APPFS, /* those that appfs_has(), before appfs_settle() */
	PROTECT_REST,  /* the others, after that */
};

/*
 * In the app's root, when all that it finds is mounted: makes the paths @read_only read-only, and
 * hides the paths @masked, files behind @null (O_PATH, /dev/null of the app), directories behind
 * one that is empty; of both those that @which says. What is mounted below a read-only path stays
 * as it is. What is not there is passed over, and what @plan has protected. 0 or FAULT_SET.
 */
int protect_paths(const struct appfs_plan *plan, enum protect_which which, int null,
		  const struct strv *read_only, const struct strv *masked, struct fault *f);

#endif
