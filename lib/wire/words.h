/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a program can be given: the limits of Linux (execve(2)) and of the agent protocol
 * (lib/wire/agent.h), so that who asks for more hears of it before anything is started.
 */
#ifndef LIB_WIRE_WORDS_H
#define LIB_WIRE_WORDS_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/*
 * Checks the arguments and the environment of one program: each of them, and what all of them have
 * together. 0, or -E2BIG and @e.
 */
int words_check(const struct strv *exec, const struct strv *env, struct err *e);

/*
 * Checks what the @n lists of one message have together, as they are written there. 0, or -E2BIG
 * and @e.
 */
int words_check_message(const struct strv *const *lists, size_t n, struct err *e);

#endif
