/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/machine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/net/configure.h"
#include "lib/os/clock.h"
#include "lib/os/loopback.h"

int machine_set_hostname(const char *name)
{
	return sethostname(name, strlen(name)) < 0 ? -errno : 0;
}

int machine_set_clock(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / NS_PER_SEC, .tv_nsec = (long)(ns % NS_PER_SEC) };
	return clock_settime(CLOCK_REALTIME, &ts) < 0 ? -errno : 0;
}

int machine_loopback_up(void)
{
	return loopback_up();
}

int machine_open_low_ports(void)
{
	return low_ports_open();
}

int machine_configure_net(const struct net *net, struct err *e)
{
	int r = net_configure(net, e);
	if (r == 0)
		net_allow_ping();
	return r;
}

int machine_signal(pid_t pid, int sig)
{
	return kill(pid, sig) < 0 ? -errno : 0;
}

void machine_kill_all(void)
{
	if (getpid() == 1) /* else it would be every process of the host */
		kill(-1, SIGKILL);
}

int machine_reap(pid_t *ret_pid, int *ret_status)
{
	pid_t pid = waitpid(-1, ret_status, WNOHANG);
	if (pid <= 0)
		return pid == 0 ? -EAGAIN : -errno;
	*ret_pid = pid;
	return 0;
}
