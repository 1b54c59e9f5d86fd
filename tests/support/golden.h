/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan becomes, compared with what was seen to be right: files below tests/golden. */
#ifndef TESTS_SUPPORT_GOLDEN_H
#define TESTS_SUPPORT_GOLDEN_H

#include <stddef.h>

/*
 * Fails the test unless tests/golden/@name has exactly the @len bytes at @text. With
 * HUSK_GOLDEN_UPDATE in the environment the file is written first: read the diff.
 */
void golden_check(const char *name, const char *text, size_t len);

#endif
