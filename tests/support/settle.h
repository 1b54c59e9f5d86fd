/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SUPPORT_SETTLE_H
#define TESTS_SUPPORT_SETTLE_H

#include "lib/os/loop.h"

/*
 * Runs the loop until it has nothing to do, also where a descriptor is watched edge-triggered and
 * must not be looked at from outside: a timer in the past comes after all events.
 */
void loop_settle(struct loop *l);

#endif
