/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of the host for a VM: virtiofsd, found and started. */
#ifndef STAGE1_KVM_BACKEND_SHARES_H
#define STAGE1_KVM_BACKEND_SHARES_H

#include <limits.h>

#include "lib/base/err.h"
#include "lib/os/loop.h"
#include "lib/wire/pod_manifest.h"
#include "stage1/pod/process.h"

/* Milliseconds that virtiofsd gets to end by itself when the VM has; then it is killed. */
#define SHARES_END_MS 2000

/*
 * Finds virtiofsd: @given, or where packages put it. 0 and its path, or -ENOENT and @e.
 */
int shares_find(const char *given, char ret[PATH_MAX], struct err *e);

struct shares_input {
	const char *virtiofsd; /* its path */
	const struct pod_manifest *manifest;
	uint32_t base;  /* if root calls: where its ids begin on the host, 0: they are the host's */
	unsigned files; /* that virtiofsd can have open */
};

/*
 * Starts it, for the volumes of the host that the manifest uses, and yields the VMM's connection to
 * it, which is the caller's. @on_end is called when it has ended. 0, or -errno and @e.
 */
int shares_start(struct process *p, struct loop *loop, const struct shares_input *in, int *ret,
		 process_end_fn on_end, void *ctx, struct err *e);

#endif
