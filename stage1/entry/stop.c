/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stop entrypoint of a stage1: tells the supervisor of the pod in the working directory to end
 * (docs/protocol-stage1.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/pod/find_supervisor.h"

static int stop_supervisor(bool force, struct err *e)
{
	cleanup_fd int pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	pid_t pid = 0;
	cleanup_fd int pidfd = find_supervisor(pod_fd, &pid, e);
	if (pidfd < 0)
		return pidfd == -ESRCH ? 0 : pidfd;
	if (syscall(SYS_pidfd_send_signal, pidfd, force ? SIGKILL : SIGTERM, NULL, 0) < 0 &&
	    errno != ESRCH)
		return err_sys(e, -errno, "cannot signal the supervisor");
	return 0;
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
