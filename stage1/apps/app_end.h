/* SPDX-License-Identifier: Apache-2.0 */
/* What is recorded in the pod directory, and told on stderr, of the end of an app. */
#ifndef STAGE1_APPS_APP_END_H
#define STAGE1_APPS_APP_END_H

#include <stdint.h>

struct agent_app_exited;

/*
 * How the end that @m tells of is recorded: exit code, or the signal as rkt has it. With
 * @stop_signal, not 0, the pod ends after a failure: what that signal, or SIGKILL for no lack of
 * memory, has ended says nothing of the app then, which is 0.
 */
int app_end_status(const struct agent_app_exited *m, int stop_signal);

/*
 * Records in the pod directory @pod_fd that the app of @m has ended, as it says, with @status, and
 * tells what people have to know: why it did not run, that it was killed because memory was short
 * (@memory_max: its limit in bytes, 0: none), and its status if that cannot be recorded. The pod
 * goes on in any case. A signal for which there is no room beside the status is 128 more in there.
 */
void app_end_note(int pod_fd, const struct agent_app_exited *m, int status, int64_t memory_max);

#endif
