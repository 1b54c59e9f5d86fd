/*
 * The stop entrypoint of stage1-kvm: tells the supervisor of the pod in the working directory to end
 * (docs/protocol-stage1.md).
 *
 * The supervisor is who wrote the file pid, and it holds the pod's lock for its life. So a process
 * with that number is the supervisor if the lock is still held after we got hold of the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/err.h"
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

/* The supervisor's pidfd, -ESRCH if it has ended, or -errno. */
static int open_supervisor(int pod_fd)
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
	return TAKE_FD(pidfd);
}

static int stop(bool force, struct err *e)
{
	cleanup_fd int pod_fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pod_fd < 0)
		return err_sys(e, -errno, "pod directory");
	cleanup_fd int pidfd = open_supervisor(pod_fd);
	if (pidfd == -ESRCH)
		return 0;
	if (pidfd < 0)
		return err_sys(e, pidfd, "supervisor of the pod (file \"%s\")", POD_FILE_PID);
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
	if (stop(force, &e) == 0)
		return 0;
	fprintf(stderr, "stage1: stop: %s\n", e.text);
	return EXIT_HUSK_FAILURE;
}
