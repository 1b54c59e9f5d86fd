#include "guest-agent/job.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "lib/os/fd.h"

_Static_assert(sizeof(struct fault) <= PIPE_BUF, "a job result is one atomic write");

static _Noreturn void child(int result_fd, job_fn fn, const void *arg)
{
	struct fault result = { 0 };
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	const int keep[] = { result_fd, log_fd() };
	if (fd_close_others(keep, ARRAY_SIZE(keep)) == 0)
		fn(arg, &result);
	else
		fault_set(&result, AGENT_E_INTERNAL, "cannot close descriptors");
	_exit(fd_write_all(result_fd, &result, sizeof(result)) == 0 ? 0 : 1);
}

int job_start(struct job *job, job_fn fn, const void *arg, struct fault *f)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create a pipe");
	cleanup_fd int read_end = fds[0], write_end = fds[1];
	pid_t pid = fork();
	if (pid < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create a process");
	if (pid == 0)
		child(write_end, fn, arg);
	*job = (struct job){ .pid = pid, .result_fd = TAKE_FD(read_end) };
	return 0;
}

void job_finish(struct job *job, struct fault *ret)
{
	size_t len;
	if (fd_read_full(job->result_fd, ret, sizeof(*ret), &len) < 0 || len != sizeof(*ret)) {
		fault_set(ret, AGENT_E_INTERNAL, "interrupted");
	}
	job_deinit(job);
}

void job_deinit(struct job *job)
{
	fd_close(job->result_fd);
	*job = JOB_INIT;
}
