/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --insecure-options: which protections the user gives up, in the words of rkt.
 *
 * The value is a list with commas, in any case: none, image, tls, ondisk, http, pubkey,
 * capabilities, paths, seccomp; and all-fetch (image, tls, http, pubkey), all-run (capabilities,
 * paths, seccomp), all.
 */
#ifndef HOST_CLI_FLAGS_INSECURE_H
#define HOST_CLI_FLAGS_INSECURE_H

#include "lib/base/err.h"

/* Bits of the value. */
enum {
	INSECURE_IMAGE = 1 << 0,
	INSECURE_TLS = 1 << 1,
	INSECURE_ONDISK = 1 << 2,
	INSECURE_HTTP = 1 << 3,
	INSECURE_PUBKEY = 1 << 4,
	INSECURE_CAPABILITIES = 1 << 5, /* apps have all capabilities */
	INSECURE_PATHS = 1 << 6,        /* nothing of /proc and /sys is hidden or read-only */
	INSECURE_SECCOMP = 1 << 7,      /* apps have no system call filter */
	INSECURE_ALL_FETCH = INSECURE_IMAGE | INSECURE_TLS | INSECURE_HTTP | INSECURE_PUBKEY,
	INSECURE_ALL_RUN = INSECURE_CAPABILITIES | INSECURE_PATHS | INSECURE_SECCOMP,
	INSECURE_ALL = INSECURE_ALL_FETCH | INSECURE_ONDISK | INSECURE_ALL_RUN,
};

/*
 * The bits that @text names. 0; -EINVAL and @e: unknown option "X", duplicated option "X".
 */
int insecure_options(const char *text, unsigned *ret, struct err *e);

#endif
