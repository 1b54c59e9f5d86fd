/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod is made with, and who asks it for something; for all that it consists of. */
#ifndef GUEST_AGENT_POD_POD_CONFIG_H
#define GUEST_AGENT_POD_POD_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "guest-agent/app/cgroup.h"
#include "guest-agent/app/rootfs.h"

/* Whom to answer: a connection (by serial number, since it may be gone by then) and a request. */
struct pod_caller {
	uint64_t conn;
	int64_t id;
};

struct pod_config {
	struct rootfs_config rootfs;  /* strings borrowed for the life of the pod */
	struct cgroup_dir cgroup_dir; /* what a machine has there is mounted by pod_prepare() */
	/*
	 * True: PID 1 of a machine, whose clock is the pod's. False: PID 1 of a PID namespace, with
	 * a mount, UTS, IPC and network namespace of its own.
	 */
	bool is_init;
};

#endif
