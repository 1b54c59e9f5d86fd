/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log format of container runtimes (Kubernetes CRI, "CRI logging"): for each line of an app
 *
 *   2016-10-06T00:17:09.669794202Z stdout F the line
 *
 * time (RFC 3339, UTC, nanoseconds), stream, F for a line that its newline ends or P for a piece
 * that the next record of the stream goes on with, and the bytes. Sans-IO, both directions. rkt
 * wrote the same without F and P, "plain", a piece being as good as a line.
 */
#ifndef LIB_WIRE_CRILOG_H
#define LIB_WIRE_CRILOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

#define CRILOG_CONTENT_MAX ((size_t)16384) /* of one record; what other runtimes have by default */
#define CRILOG_PREFIX_LEN  ((size_t)40)    /* time, stream, tag and blanks */
#define CRILOG_HEAD_MAX    ((size_t)64)    /* the same, and some room for a formatter */
#define CRILOG_RECORD_MAX  (CRILOG_HEAD_MAX + CRILOG_CONTENT_MAX + 1)

enum crilog_stream {
	CRILOG_STDOUT,
	CRILOG_STDERR,
	CRILOG_STREAM_COUNT_,
};

/* One stream on its way to records. */
struct crilog {
	enum crilog_stream stream;
	bool plain;      /* as rkt wrote it; set before the first byte comes */
	struct buf line; /* what came of a line that has not ended */
	/* What records of one moment begin with: many lines come together. Empty: none yet. */
	char head[CRILOG_HEAD_MAX];
	int64_t head_ns;
};

struct crilog_record {
	int64_t time_ns; /* CLOCK_REALTIME */
	enum crilog_stream stream;
	bool partial;
	const char *content; /* borrowed from the line; without newline, may have any other bytes */
	size_t len;
};

/* Takes a whole record with its newline. 0, or -errno, which ends the feeding. */
typedef int (*crilog_emit_fn)(void *ctx, const char *record, size_t len);

/* An empty line of @stream. Allocates nothing. */
void crilog_init(struct crilog *c, enum crilog_stream stream);

/* Frees what waits. */
void crilog_deinit(struct crilog *c);

/*
 * Takes bytes of the app that came at @now_ns: records of what is complete go to @emit. 0, -ENOMEM,
 * or what @emit returned.
 */
int crilog_feed(struct crilog *c, int64_t now_ns, const char *data, size_t len, crilog_emit_fn emit,
		void *ctx);

/* The stream has ended: what waits for a newline becomes a partial record. As above. */
int crilog_end(struct crilog *c, int64_t now_ns, crilog_emit_fn emit, void *ctx);

/* Reads the record in @len bytes of @line, without its newline. 0 or -EBADMSG. */
int crilog_parse(const char *line, size_t len, struct crilog_record *ret);

/* "stdout", "stderr". */
const char *crilog_stream_name(enum crilog_stream stream);

#endif
