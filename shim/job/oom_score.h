/* SPDX-License-Identifier: Apache-2.0 */
/* How likely the calling process, and those that it starts, are to be killed for lack of memory. */
#ifndef SHIM_JOB_OOM_SCORE_H
#define SHIM_JOB_OOM_SCORE_H

/* proc(5), /proc/PID/oom_score_adj: -1000, never, to 1000. 0 or -errno. */
int oom_score_set(int score);

/* Sets it @more above what it is, or to 1000. 0 or -errno. */
int oom_score_raise(int more);

#endif
