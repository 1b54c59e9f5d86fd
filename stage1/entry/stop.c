/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stop entrypoint of a stage1: tells the supervisor of the pod in the working directory to end
 * (docs/protocol-stage1.md).
 *
 * With --force it is killed, and what serves the pod dies with it, a moment later: until then a
 * volume of the pod is in use, and a port. So that moment is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/base/macros.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/pod/find_supervisor.h"
#include "stage1/pod/helpers.h"

#define HELPERS_WAIT_NS (10 * NS_PER_SEC) /* for all of them, from SIGKILL to their end */

static int send_signal(int pidfd, int sig, struct err *e)
{
	if (syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 && errno != ESRCH)
		return err_sys(e, -errno, "cannot signal the supervisor");
	return 0;
}

/*
 * Waits for the end of the @n processes, of which those without a pidfd have ended. The pod is
 * killed also if one takes longer, as what keeps its network may: CNI plugins have a minute.
 */
static void await_helpers(const struct pollfd *pidfds, size_t n)
{
	int64_t deadline = clock_monotonic_ns() + HELPERS_WAIT_NS;
	for (size_t i = 0; i < n; i++) {
		struct pollfd p = pidfds[i];
		int64_t left = MAX(deadline - clock_monotonic_ns(), 0);
		if (p.fd >= 0)
			poll(&p, 1, (int)(left / NS_PER_MS));
	}
}

static int kill_supervisor(int pidfd, pid_t pid, struct err *e)
{
	pid_t pids[POD_HELPERS_MAX];
	struct pollfd pidfds[POD_HELPERS_MAX];
	size_t n = pod_helpers("/proc", pid, pids);
	for (size_t i = 0; i < n; i++)
		pidfds[i] = (struct pollfd){ .fd = (int)syscall(SYS_pidfd_open, pids[i], 0),
					     .events = POLLIN };
	int r = send_signal(pidfd, SIGKILL, e);
	if (r == 0)
		await_helpers(pidfds, n);
	for (size_t i = 0; i < n; i++)
		fd_close(pidfds[i].fd);
	return r;
}

static int stop_supervisor(bool force, struct err *e)
{
	cleanup_fd int pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	pid_t pid = 0;
	cleanup_fd int pidfd = find_supervisor(pod_fd, &pid, e);
	if (pidfd < 0)
		return pidfd == -ESRCH ? 0 : pidfd;
	return force ? kill_supervisor(pidfd, pid, e) : send_signal(pidfd, SIGTERM, e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	bool force = false;
	int i = 1;
	for (; i < argc - 1; i++) {
		if (strcmp(argv[i], "--force") == 0)
			force = true;
		else if (strcmp(argv[i], "--debug") != 0)
			break;
	}
	if (i != argc - 1) {
		fprintf(stderr, "stage1: stop: usage: stop [--debug] [--force] UUID\n");
		return EXIT_HUSK_FAILURE;
	}
	if (stop_supervisor(force, &e) == 0)
		return 0;
	fprintf(stderr, "stage1: stop: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
