/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/interrupt.h"

#include <errno.h>
#include <sys/signalfd.h>

#include "lib/os/fd.h"

int interrupt_hold(struct interrupt *i)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (sigprocmask(SIG_BLOCK, &set, &i->old) < 0) {
		int r = -errno;
		fd_close(fd);
		return r;
	}
	i->fd = fd;
	return 0;
}

void interrupt_release(struct interrupt *i)
{
	if (i->fd < 0)
		return;
	fd_replace(&i->fd, -EBADF);
	sigprocmask(SIG_SETMASK, &i->old, NULL);
}
