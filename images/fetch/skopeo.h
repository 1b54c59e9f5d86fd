/* SPDX-License-Identifier: Apache-2.0 */
/* Runs skopeo(1), or in tests something else, as a bounded child. */
#ifndef IMAGES_FETCH_SKOPEO_H
#define IMAGES_FETCH_SKOPEO_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Most bytes of standard error output that are kept, the last ones: one message that quotes a
 * server.
 */
#define SKOPEO_LOG_MAX ((size_t)64 * 1024)

/* SKOPEO_E_FAILED: it ended with a failure, @log says which. SKOPEO_E_STALLED: see @stall_ms. */
enum {
	SKOPEO_E_FAILED = 1,
	SKOPEO_E_STALLED,
};

/* One run. Everything is borrowed. */
struct skopeo_run {
	const struct strv *args; /* the first is the program's name, found in PATH */
	int dir_fd;              /* working directory; -EBADF: ours */
	const struct buf *auth;  /* what SKOPEO_AUTH_FD yields; NULL: nothing */
	uint64_t file_max;       /* no file that it writes gets larger, in bytes; 0: no limit */
	int64_t stall_ms;        /* end it when nothing has happened for so long; 0: wait */
	/*
	 * Called some five times a second and once at the end. Yields a number that grows while
	 * there is progress; a failure, with @e, ends the program. May be NULL.
	 */
	int (*tick)(void *ctx, uint64_t *ret_progress, struct err *e);
	void *ctx;
};

/*
 * Runs it to its end: with its own session, without new privileges, dying with the calling thread,
 * with the variables of skopeo_env() alone, without our descriptors. @out gets its standard output,
 * whose maximum it must keep to; @log (initialised with SKOPEO_LOG_MAX) the end of its standard
 * error output. Nothing of it is left running when this returns. 0 if it exited with 0,
 * SKOPEO_E_FAILED, SKOPEO_E_STALLED, or -errno with @e: it is not installed, it could not start, a
 * signal killed it, it printed too much (-EFBIG), @tick's failure.
 */
int skopeo_run(const struct skopeo_run *run, struct buf *out, struct buf *log, struct err *e);

#endif
