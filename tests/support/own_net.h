/* SPDX-License-Identifier: Apache-2.0 */
/* A network namespace of the test's own. Needs root: else the test is skipped. */
#ifndef TESTS_SUPPORT_OWN_NET_H
#define TESTS_SUPPORT_OWN_NET_H

/* Calls @fn in a process and a namespace of its own, with lo up; a failure there is one here. */
void own_net_call(void (*fn)(void));

/* "ip @args", which has to succeed. */
void own_net_ip(const char *args);

#endif
