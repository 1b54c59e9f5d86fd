/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error output of a helper process: the first lines are kept, because the
 * first complaint usually is the cause.
 */
#ifndef STAGE1_POD_LOGTAIL_H
#define STAGE1_POD_LOGTAIL_H

#include <stddef.h>

#include "lib/os/loop.h"

#define LOGTAIL_MAX ((size_t)512) /* bytes kept; the rest is read and dropped */

struct logtail {
	struct loop *loop; /* NULL while closed */
	int fd;            /* reading end of the pipe, owned */
	struct loop_watch watch;
	size_t len;
	char text[LOGTAIL_MAX + 1];
};

/*
 * Makes a pipe, watches its reading end and yields the writing end in *ret_write_fd, which the
 * caller hands to the child and closes. 0 or -errno.
 */
int logtail_open(struct logtail *t, struct loop *loop, int *ret_write_fd);

/* Reads what is left without waiting, then yields the first line; "" if there was none. */
const char *logtail_first_line(struct logtail *t);

/* Harmless on a zeroed or closed one. */
void logtail_close(struct logtail *t);

#endif
