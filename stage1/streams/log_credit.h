/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream that is also shown puts into its log: all of it, unless it comes faster than
 * anybody could read a log of that size.
 *
 * Theory of operation. A log keeps one or two files of APPLOG_FILE_MAX bytes, so an app that fills
 * one each second leaves nothing of use there, but writing it would take a third of the throughput
 * of what is shown. So a stream has a credit of one file, of which each byte of a record takes one,
 * and which grows by one file a second. Without credit, bytes are left out, but for the last ones,
 * which are kept: why a program ended stands at the end. They follow as soon as there is credit,
 * behind a line that says how many are missing.
 */
#ifndef STAGE1_STREAMS_LOG_CREDIT_H
#define STAGE1_STREAMS_LOG_CREDIT_H

#include "lib/base/buf.h"
#include "stage1/streams/applog.h"

#define LOG_CREDIT_CREDIT_MAX ((int64_t)APPLOG_FILE_MAX) /* bytes of records; also: in a second */
#define LOG_CREDIT_TAIL_MAX   ((size_t)16 * 1024)        /* some 200 lines */

struct log_credit {
	struct applog *log; /* borrowed */
	enum crilog_stream stream;
	int64_t credit, at_ns; /* CLOCK_MONOTONIC when it was reckoned */
	uint64_t left_out; /* bytes since the last that were logged, without those of the tail */
	struct buf tail;
};

/* A valve with full credit. Allocates nothing. */
void log_credit_init(struct log_credit *v, struct applog *log, enum crilog_stream stream,
		     int64_t now_ns);

/* Takes what the app has just written. */
void log_credit_feed(struct log_credit *v, int64_t now_ns, const char *data, size_t len);

/* True if bytes wait for credit: log_credit_catch_up() is to be called within a second or so. */
bool log_credit_is_behind(const struct log_credit *v);

/* Logs what waits if there is credit. */
void log_credit_catch_up(struct log_credit *v, int64_t now_ns);

/* The stream has ended: logs what waits in any case. */
void log_credit_end(struct log_credit *v);

/* Frees what waits. Accepts a zeroed one. */
void log_credit_deinit(struct log_credit *v);

#endif
