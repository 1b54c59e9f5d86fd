/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/detach.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/pod/wait.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/wire/stage1.h"

#define LOG_MODE 0600

static int open_log(const struct pod *p, struct err *e)
{
	int fd = openat(p->fd, POD_FILE_LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
			LOG_MODE);
	return fd < 0 ? err_sys(e, -errno, "pod \"%s\": cannot write \"%s\"", p->uuid.text,
				POD_FILE_LOG)
		      : fd;
}

/* In the new process. Until the exec its errors can go nowhere but into the log. */
static int become_background(pid_t parent, int log_fd, struct err *e)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(log_fd, STDERR_FILENO) < 0)
		return err_sys(e, -errno, "cannot detach: standard streams");
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		return err_sys(e, -errno, "cannot detach");
	if (getppid() != parent) /* it ended before it could take us with it */
		return err_set(e, -EINTR, "interrupted");
	return 0;
}

void detach_last_line(const struct pod *p, char ret[DETACH_LOG_MAX])
{
	static const char warning[] = "stage1: warning: ";
	char text[DETACH_LOG_MAX];
	struct stat st;
	size_t len = 0;
	ret[0] = '\0';
	cleanup_fd int fd = openat(p->fd, POD_FILE_LOG, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	off_t from = MAX(st.st_size - (off_t)DETACH_LOG_MAX + 1, (off_t)0);
	if (lseek(fd, from, SEEK_SET) < 0 || fd_read_full(fd, text, DETACH_LOG_MAX - 1, &len) < 0)
		len = 0;
	text[len] = '\0';
	char *rest = text;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (*line && strncmp(line, warning, strlen(warning)) != 0)
			str_copy_text(ret, DETACH_LOG_MAX, line);
}

static int explain_end(const struct pod *p, int status, struct err *e)
{
	char line[DETACH_LOG_MAX];
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "pod \"%s\": its supervisor was killed by signal %d",
			       p->uuid.text, WTERMSIG(status));
	detach_last_line(p, line);
	if (line[0])
		return err_set(e, -EIO, "%s", line);
	return err_set(e, -EIO, "pod \"%s\" ended before it was ready, with exit status %d",
		       p->uuid.text, WEXITSTATUS(status));
}

static int wait_ready(const struct pod *p, pid_t pid, struct err *e)
{
	for (;;) {
		int status = 0;
		pid_t ended = waitpid(pid, &status, WNOHANG);
		int error = errno;
		if (pod_is_ready(
			    p)) /* asked after, so that a short life is seen to have been one */
			return DETACH_READY;
		if (ended == pid)
			return explain_end(p, status, e);
		if (ended < 0 && error != EINTR)
			return err_sys(e, -error, "pod \"%s\": supervisor", p->uuid.text);
		nanosleep(&(struct timespec){ .tv_nsec = DETACH_POLL_MS * NS_PER_MS }, NULL);
	}
}

int pod_detach(const struct pod *p, struct err *e)
{
	cleanup_fd int log_fd = open_log(p, e);
	if (log_fd < 0)
		return log_fd;
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, -errno, "cannot detach: cannot create a process");
	return pid == 0 ? become_background(parent, log_fd, e) : wait_ready(p, pid, e);
}
