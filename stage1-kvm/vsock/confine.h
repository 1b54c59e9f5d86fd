/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the device process may still do once its descriptors are in place: see confine.c for the
 * list of system calls and the reason of each.
 */
#ifndef STAGE1_KVM_VSOCK_CONFINE_H
#define STAGE1_KVM_VSOCK_CONFINE_H

#include "lib/base/err.h"

/*
 * A build with sanitizers is for finding mistakes, not for running guests: their run-time library
 * needs files, ptrace and system calls of its own, so confine_process() does nothing there.
 */
#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_WORKS 0
#elif defined(__has_feature)
#define CONFINE_WORKS (!__has_feature(address_sanitizer))
#else
#define CONFINE_WORKS 1
#endif

/*
 * Gives up capabilities, file access and all system calls but those of the device's work. Final.
 * 0 or -errno, and @e; the process must exit then.
 */
int confine_process(struct err *e);

/*
 * SIGBUS: the VMM truncated a memory file under us. Prints one line and ends the process with
 * status 1. To be called before confine_process(). 0 or -errno.
 */
int confine_catch_bus_error(void);

#endif
