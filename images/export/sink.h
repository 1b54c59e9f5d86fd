/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an archive's bytes go: counted and hashed, compressed if asked for, counted and hashed
 * again, and written into a file from some place on.
 */
#ifndef IMAGES_EXPORT_SINK_H
#define IMAGES_EXPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "images/spec/digest.h"
#include "lib/base/err.h"
#include "lib/base/macros.h"

struct sink;

/* What went through. */
struct sink_sums {
	struct digest plain;
	struct digest stored; /* the same, if not compressed */
	uint64_t plain_size;
	uint64_t stored_size;
};

/*
 * Starts writing into the file @fd (borrowed) at @offset; with @gzip in the format of RFC 1952,
 * without name and time, so that equal bytes give equal bytes. 0 or -errno with @e.
 */
int sink_new(int fd, uint64_t offset, bool gzip, struct sink **ret, struct err *e);

/* Accepts NULL; what was not finished is lost. */
void sink_free(struct sink *s);
DEFINE_FREEP(sink);

/* Takes @len bytes. 0 or -errno with @e. */
int sink_write(struct sink *s, const void *data, size_t len, struct err *e);

/* Ends the compressed stream. Nothing can be written afterwards. 0 or -errno with @e. */
int sink_finish(struct sink *s, struct sink_sums *ret, struct err *e);

/* Writes all @len bytes to @fd at @offset. 0 or -errno with @e. */
int sink_write_at(int fd, uint64_t offset, const void *data, size_t len, struct err *e);

#endif
