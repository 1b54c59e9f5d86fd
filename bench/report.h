/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as texts: pure, from data to bytes. Texts in them may come from images, programs and the
 * command line: each report escapes them as its format wants.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/results.h"
#include "lib/base/buf.h"

/* 48 rows of 7 columns with 100 values of 20 bytes each, and the drawings. */
#define REPORT_MAX ((size_t)4 << 20)

/* Each appends its report to @out. 0 or -errno as buf_append(). */
int report_json(const struct results *r, struct buf *out);
int report_csv(const struct results *r, struct buf *out);

/*
 * @plots has a drawing for each row, SVG that is taken as it is, or NULL; @plots itself is NULL if
 * none could be made.
 */
int report_html(const struct results *r, char *const *plots, struct buf *out);

/* A number for people, with three digits that count, in @out of @size bytes. */
void report_number(double value, char *out, size_t size);

#endif
