/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers that it wants before it. */
#ifndef TESTS_SUPPORT_CMOCKA_H
#define TESTS_SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
