/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as people and images write them: "SIGTERM", "term", "15", "SIGRTMIN+3". */
#ifndef LIB_BASE_SIGNAME_H
#define LIB_BASE_SIGNAME_H

#define SIGNAME_MAX 15 /* bytes of a name: "SIGRTMIN+30" has 11 */

/*
 * The number, 1 to 64, of a signal of Linux. SIGRTMIN is 34, as the C library and other container
 * runtimes have it. Without "SIG" as well, in any case. -EINVAL if there is none of that name.
 */
int signame_parse(const char *text);

/* Writes the name of signal @number, 1 to 64, with "SIG", to @ret, and returns that. */
const char *signame_format(int number, char ret[SIGNAME_MAX + 1]);

#endif
