/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/net/configure.h"
#include "lib/net/proc_sys.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/loopback.h"

#define MASK_DIGITS 16   /* of the 64 signals that there are */
#define STATUS_MAX  4096 /* bytes of a process's status in proc(5); some 1,500, the masks in front */

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

int machine_set_sysctls(const struct strv *list, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < list->n; i++)
		r = proc_sys_set(list->v[i], e);
	return r;
}

int machine_signal(pid_t pid, int sig)
{
	return kill(pid, sig) < 0 ? -errno : 0;
}

/* Bit @sig - 1 of the line "KEY:\t0000000000000000" of proc(5)'s status. */
static bool mask_has(const char *status, const char *key, int sig)
{
	static const char digits[] = "0123456789abcdef";
	const char *line = strstr(status, key);
	if (!line || strspn(line + strlen(key), digits) != MASK_DIGITS)
		return false;
	char digit = line[strlen(key) + MASK_DIGITS - 1 - (size_t)(sig - 1) / 4];
	return (strchr(digits, digit) - digits) >> (sig - 1) % 4 & 1;
}

bool machine_has_default(pid_t pid, int sig)
{
	char path[32], status[STATUS_MAX];
	size_t len = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, status, sizeof(status) - 1, &len) < 0)
		return false;
	status[len] = '\0';
	return strstr(status, "\nSigCgt:\t") && !mask_has(status, "\nSigCgt:\t", sig) &&
	       !mask_has(status, "\nSigIgn:\t", sig) && !mask_has(status, "\nSigBlk:\t", sig);
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
