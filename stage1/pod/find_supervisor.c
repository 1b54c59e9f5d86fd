/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/find_supervisor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

#define PID_TEXT_MAX  16   /* ten digits and a newline */
#define FDINFO_MAX    4095 /* what is there for a directory has some 150 bytes */
#define PROC_PATH_MAX 64
#define POLL_NS       INT64_C(5000000)

/* How long a process that seems not to be the supervisor may take to have ended. */
#define EXIT_WAIT_MS 1000

/* A supervisor writes its number as the first thing it does. */
#define PID_WAIT_NS (10 * NS_PER_SEC)

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

/* True if the descriptor, of which @info is its file in fdinfo, holds an exclusive flock(2). */
static bool has_lock(const char *info)
{
	char text[FDINFO_MAX + 1];
	size_t len = 0;
	cleanup_fd int fd = open(info, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, FDINFO_MAX, &len) < 0)
		return false;
	text[len] = '\0';
	const char *lock = strstr(text, "\nlock:");
	return lock && strstr(lock, "FLOCK") && strstr(lock, "WRITE");
}

/*
 * Whether the process @pid holds the pod's lock: one of its descriptors is of the directory, and
 * the kernel says that the lock is held through it. /proc/locks would name the process that took
 * it, which of a detached pod is not the supervisor. 1, 0 or -errno.
 */
static int holds_lock(pid_t pid, int pod_fd)
{
	char path[PROC_PATH_MAX];
	struct stat dir, st;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	cleanup_dir DIR *fds = opendir(path);
	if (!fds || fstat(pod_fd, &dir) < 0)
		return -errno;
	for (const struct dirent *de; (de = readdir(fds));) {
		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.16s", (int)pid, de->d_name);
		if (de->d_name[0] != '.' && fstatat(dirfd(fds), de->d_name, &st, 0) == 0 &&
		    st.st_dev == dir.st_dev && st.st_ino == dir.st_ino && has_lock(path))
			return 1;
	}
	return 0;
}

/* Reads the number, which may not be there yet. 0, -ESRCH if the pod has ended, or -errno. */
static int await_pid(int pod_fd, pid_t *ret)
{
	int64_t deadline = clock_monotonic_ns() + PID_WAIT_NS;
	int r;
	while ((r = read_pid(pod_fd, ret)) == -ENOENT && lock_probe(pod_fd) == LOCK_TAKEN &&
	       clock_monotonic_ns() < deadline)
		nanosleep(&(struct timespec){ .tv_nsec = POLL_NS }, NULL);
	return r == -ENOENT && lock_probe(pod_fd) == 0 ? -ESRCH : r;
}

int find_supervisor(int pod_fd, pid_t *ret_pid, struct err *e)
{
	pid_t pid = 0;
	int r = await_pid(pod_fd, &pid);
	if (r == -ESRCH)
		return err_set(e, r, "the pod has ended");
	if (r < 0)
		return err_sys(e, r, "supervisor of the pod (file \"%s\")", POD_FILE_PID);
	/*
	 * Before it is looked at: who ends and leaves the number to another is not who gets a
	 * signal.
	 */
	cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int holds = pidfd < 0 ? -errno : holds_lock(pid, pod_fd);
	/* Who ends loses sight of its descriptors first, and the lock a moment later. */
	if (holds == 0 && lock_probe(pod_fd) == LOCK_TAKEN)
		poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, EXIT_WAIT_MS);
	if (holds <= 0 && lock_probe(pod_fd) == 0)
		return err_set(e, -ESRCH, "the pod has ended");
	if (holds < 0)
		return err_sys(e, holds, "supervisor of the pod, process %d", (int)pid);
	if (holds == 0)
		return err_set(e, -EPERM,
			       "process %d does not hold the lock of the pod, so it is not its "
			       "supervisor (is that in another PID namespace?)",
			       (int)pid);
	*ret_pid = pid;
	return TAKE_FD(pidfd);
}
