/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pod does to its machine, or its PID namespace, as a whole. Thin on purpose: tests of the
 * modules above put something else here.
 */
#ifndef GUEST_AGENT_POD_MACHINE_H
#define GUEST_AGENT_POD_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/wire/net.h"

/* Sets the host name. 0 or -errno. */
int machine_set_hostname(const char *name);

/* Sets CLOCK_REALTIME, in nanoseconds since the epoch. 0 or -errno. */
int machine_set_clock(int64_t ns);

/* Brings the loopback interface up. 0 or -errno. */
int machine_loopback_up(void);

/* Lets every user bind ports below 1024 in a network that is the machine's own. 0 or -errno. */
int machine_open_low_ports(void);

/* Configures interfaces, and who may ping (lib/net/configure.h). 0 or -errno and @e. */
int machine_configure_net(const struct net *net, struct err *e);

/* Sets kernel parameters (lib/wire/sysctls.h) in the order of @list. 0 or -errno and @e. */
int machine_set_sysctls(const struct strv *list, struct err *e);

/* Sends a signal to a child that was not reaped yet. 0 or -errno. */
int machine_signal(pid_t pid, int sig);

/* Whether process @pid leaves @sig to its default: no handler, not ignored, not blocked. */
bool machine_has_default(pid_t pid, int sig);

/* Kills every process in the PID namespace but its first, which the caller must be. */
void machine_kill_all(void);

/*
 * Reaps one ended child. 0 and its number and status as from waitpid(2), -EAGAIN if all children
 * run, -ECHILD if there are none.
 */
int machine_reap(pid_t *ret_pid, int *ret_status);

#endif
