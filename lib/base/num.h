/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text: the whole string or nothing, no sign, no leading blanks, no overflow. */
#ifndef LIB_BASE_NUM_H
#define LIB_BASE_NUM_H

#include <stdint.h>

/*
 * Parses a decimal number of at most @max. -EINVAL if @s is empty or holds anything else than
 * digits, -ERANGE beyond @max; *ret is written only on success.
 */
int num_parse_u64(const char *s, uint64_t max, uint64_t *ret);

#endif
