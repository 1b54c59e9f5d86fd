/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/lock.h"

#include <errno.h>
#include <sys/file.h>

static int do_flock(int fd, int op)
{
	int r;
	do
		r = flock(fd, op);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return 0;
	return errno == EWOULDBLOCK ? LOCK_TAKEN : -errno;
}

int lock_exclusive(int fd)
{
	return do_flock(fd, LOCK_EX);
}

int lock_try_exclusive(int fd)
{
	return do_flock(fd, LOCK_EX | LOCK_NB);
}

int lock_shared(int fd)
{
	return do_flock(fd, LOCK_SH);
}

int lock_try_shared(int fd)
{
	return do_flock(fd, LOCK_SH | LOCK_NB);
}

int lock_probe(int fd)
{
	int r = lock_try_shared(fd);
	if (r == 0)
		lock_release(fd);
	return r;
}

int lock_release(int fd)
{
	return do_flock(fd, LOCK_UN);
}
