/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the run entrypoint; see docs/protocol-stage1.md. */
#ifndef STAGE1_SUPERVISE_OPTIONS_H
#define STAGE1_SUPERVISE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "stage1/backend.h"
#include "stage1/pod/cgroup_mounts.h"
#include "stage1/supervise/names.h"
#include "stage1/supervise/network.h"

#define OPTIONS_BOOT_TIMEOUT_DEFAULT 60    /* seconds until the apps must have been started */
#define OPTIONS_BOOT_TIMEOUT_MAX     86400 /* a day: slow emulation, not for ever */

#define OPTIONS_OF_BACKEND_MAX 32 /* options of a flavor: a VM has eight */

struct options {
	bool debug;
	bool interactive;
	bool detach;
	bool disable_capabilities; /* apps have all capabilities */
	bool disable_paths;        /* nothing of /proc and /sys is hidden or read-only */
	bool disable_seccomp;  /* apps have no filter but what keeps the agent's port from them */
	const char *hostname;  /* NULL: husk-UUID */
	const char *cache_dir; /* NULL: nothing is kept on disk */
	uint64_t boot_timeout; /* seconds */
	uint64_t start_ns;     /* when husk started; 0: unknown */
	const char *uuid;      /* NULL: none was given */
	char cgroup_parent[CGROUP_PATH_MAX]; /* as from cgroup_parent_expand() */
	struct network_options network;
	struct names_options names;
	bool host_volumes, block_volumes; /* of the check entrypoint: the pod is to have such */
};

/* An options_parse() that has not happened; its lists are empty. */
void options_init(struct options *o);
void options_deinit(struct options *o);

/*
 * Reads the command line into @o (options_init()); @pod of @backend takes its own part of it. 0, or
 * -EINVAL, -E2BIG, -ENOMEM with @e naming the option. Strings are borrowed, those of lists copied.
 */
int options_parse(int argc, char **argv, const struct backend *backend, struct backend_pod *pod,
		  struct options *o, struct err *e);

#endif
