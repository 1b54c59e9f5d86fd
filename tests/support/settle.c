/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/settle.h"

#include <stdbool.h>

#include "tests/support/cmocka.h"

#define ROUNDS 64 /* what one round does may be an event of the next */

static void done(void *ctx)
{
	*(bool *)ctx = true;
}

void loop_settle(struct loop *l)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct loop_timer t = { 0 };
		bool is_done = false;
		loop_timer_arm(l, &t, 0, done, &is_done);
		while (!is_done)
			assert_int_equal(loop_turn(l), 0);
	}
}
