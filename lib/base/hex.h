/* SPDX-License-Identifier: Apache-2.0 */
/* Lower-case hexadecimal. */
#ifndef LIB_BASE_HEX_H
#define LIB_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Writes 2 * @len digits and a NUL into @out, which has room for them. */
void hex_encode(const unsigned char *bytes, size_t len, char *out);

/* True if @s is exactly @digits lower-case hexadecimal digits. */
bool hex_is_valid(const char *s, size_t digits);

/*
 * Reads exactly 2 * @len lower-case digits from @s, which must end there, into @out. -EINVAL
 * otherwise.
 */
int hex_decode(const char *s, unsigned char *out, size_t len);

#endif
