/* SPDX-License-Identifier: Apache-2.0 */
/* What PID 1 of the guest does before and after its service. Not used in a namespace pod. */
#ifndef GUEST_AGENT_BOOT_BOOT_H
#define GUEST_AGENT_BOOT_BOOT_H

#include "lib/base/err.h"
#include "lib/wire/agent.h"

/* Modules of a packaged kernel, in the initramfs: MODULES/NN-name.ko, loaded in lexical order. */
#define BOOT_MODULES_DIR "/modules"
#define BOOT_MODULES_MAX 128 /* a cloud kernel needs about 40 */

/*
 * Mounts /dev, loads the modules, and makes a tmpfs the root directory, with /dev, /proc and /sys
 * in it, so that pivot_root(2) works later (it refuses the initramfs). 0 or -errno with @e set.
 */
int boot_mount(struct err *e);

/* Reads the pod secret from fw_cfg. 0 or -errno with @e set. */
int boot_read_secret(char ret[AGENT_SECRET_LEN + 1], struct err *e);

/* A non-blocking socket that listens on vsock port AGENT_PORT, or -errno with @e set. */
int boot_listen(struct err *e);

/* Powers the machine off. Does not return. */
_Noreturn void boot_power_off(void);

#endif
