/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/run/holder.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/wire/stage1.h"

#define PID_TEXT_MAX 16 /* ten digits and a newline */
#define POLL_NS      INT64_C(5000000)

/* A supervisor writes its number as the first thing it does. */
#define PID_WAIT_NS (10 * NS_PER_SEC)

/* True if somebody holds the pod's lock, -errno. */
static int is_locked(int pod_fd)
{
	int r = lock_try_shared(pod_fd);
	if (r == 0)
		lock_release(pod_fd);
	return r < 0 ? r : r == LOCK_TAKEN;
}

static int read_pid(int pod_fd, pid_t *ret)
{
	cleanup_free char *text = NULL;
	uint64_t n;
	int r = file_read_at(pod_fd, POD_FILE_PID, PID_TEXT_MAX, &text, NULL);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	if (num_parse_u64(text, INT_MAX, &n) < 0 || n < 2)
		return -EBADMSG;
	*ret = (pid_t)n;
	return 0;
}

int holder_open(int pod_fd, pid_t *ret_pid)
{
	pid_t pid = 0;
	int64_t deadline = clock_monotonic_ns() + PID_WAIT_NS;
	int r;
	while ((r = read_pid(pod_fd, &pid)) == -ENOENT && is_locked(pod_fd) == 1 &&
	       clock_monotonic_ns() < deadline)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	if (r < 0)
		return r == -ENOENT && is_locked(pod_fd) == 0 ? -ESRCH : r;
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -errno;
	r = is_locked(pod_fd);
	if (r <= 0)
		return r < 0 ? r : -ESRCH;
	*ret_pid = pid;
	return TAKE_FD(pidfd);
}
