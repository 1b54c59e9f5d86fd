/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the run entrypoint; see docs/protocol-stage1.md. */
#ifndef STAGE1_KVM_RUN_OPTIONS_H
#define STAGE1_KVM_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

#define OPTIONS_BOOT_TIMEOUT_DEFAULT 60    /* seconds until the apps must have been started */
#define OPTIONS_BOOT_TIMEOUT_MAX     86400 /* a day: slow emulation, not for ever */

struct options {
	bool debug;
	bool interactive;
	bool detach;
	bool disable_capabilities; /* apps have all capabilities */
	bool disable_paths;        /* nothing of /proc and /sys is hidden or read-only */
	bool disable_seccomp;      /* apps have no filter but the one that keeps vsock from them */
	const char *hostname;      /* NULL: husk-UUID */
	const char *accel;         /* as given; NULL: auto */
	const char *machine;
	const char *vsock;
	const char *kernel;
	const char *qemu;
	const char *cache_dir;
	uint64_t
		memory; /* bytes, in the bounds of stage1-kvm/plan/vm.h, as are the next; 0: not given */
	uint64_t cpus;
	uint64_t boot_timeout; /* seconds */
	uint64_t scratch_size; /* bytes, in the bounds of scratch.h, whole MiB */
	uint64_t start_ns;     /* when husk started; 0: unknown */
	const char *uuid;
};

/* Reads the command line. 0 or -EINVAL with @e naming the option. Strings are borrowed. */
int options_parse(int argc, char **argv, struct options *ret, struct err *e);

#endif
