/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts as appc and Kubernetes write them ("Quantity"): a decimal number with at most three
 * digits behind the point and a suffix, m, k, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of
 * 1024). It is the one grammar of all sizes: options, configuration, manifests.
 */
#ifndef LIB_BASE_QUANTITY_H
#define LIB_BASE_QUANTITY_H

#include <stdint.h>

#define QUANTITY_UNIT INT64_C(1000) /* quantities are counted in thousandths */

/* Parses @text, in thousandths. 0, -EINVAL, or -ERANGE if it does not fit. */
int quantity_parse(const char *text, int64_t *ret);

/*
 * Parses a size in bytes from @min to @max; a part of one counts as one. 0, -EINVAL, or -ERANGE;
 * *ret is written only on success.
 */
int size_parse(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

#endif
