/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a function in a forked child that has a process environment of its own, and tidying up
 * behind it whatever happens.
 *
 * GPGME starts gpg with whatever environment, descriptors and signal dispositions its process has,
 * and as a grandchild that nobody waits for. In the child all of that is as it must be, whatever
 * husk is doing at the time: the environment is PATH, HOME and a locale; descriptors but the listed
 * ones are closed; signals have their defaults, but SIGPIPE is ignored; memory and the size of
 * files are limited. When it has ended, or husk was killed, processes that are left are killed and
 * waited for.
 */
#ifndef IMAGES_APPC_TRUST_WORKER_H
#define IMAGES_APPC_TRUST_WORKER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Most descriptors that a child keeps: the signed file is the only one. */
#define WORKER_FDS_MAX ((size_t)4)
/* Largest result; that of a verification has some 4 KiB. */
#define WORKER_RESULT_MAX ((size_t)16 * 1024)

/*
 * What a compressed key or signature may make gpg take, whose parser is not ours. Private memory:
 * usually it has 5 MiB, and the largest keyring takes some 100.
 */
#define WORKER_MEMORY_MAX ((uint64_t)(HAS_ADDRESS_SANITIZER ? 0 : 512) * 1024 * 1024) /* 0: none */
/* Bytes of one file, that of imported keys: the largest keyring, several times over. */
#define WORKER_FILE_MAX ((uint64_t)128 * 1024 * 1024)

/* Runs in the child and fills @result. 0; a positive code or -errno, both with @e. */
typedef int (*worker_fn)(void *ctx, void *result, struct err *e);

struct worker_plan {
	worker_fn fn;
	void *ctx;
	const char *home; /* HOME of the child */
	const int *fds;   /* kept open, @n_fds, above 2 */
	size_t n_fds;
	/*
	 * Called with @ctx when all processes have ended, in yet another one, which a signal to the
	 * terminal or the end of husk does not reach; or NULL.
	 */
	void (*last)(void *ctx);
};

/*
 * Runs the plan and waits for its end. *result, @size bytes without pointers, is written on
 * success. What the function returned, with its message in @e, or -errno and @e if the child died.
 */
int worker_run(const struct worker_plan *plan, void *result, size_t size, struct err *e);

/*
 * For the function in the child: no process that it starts from now on may use more than @seconds
 * of processor time. The child itself counts from its beginning. 0 or -errno.
 */
int worker_limit_time(uint64_t seconds);

/* PATH, or what stands for it where it is not set. Borrowed from the environment. */
const char *worker_search_path(void);

#endif
