/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/job.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest-agent/log.h"
#include "lib/os/fd.h"

/* What comes through the pipe; of data only what the job has. */
struct result {
	struct fault fault;
	unsigned char data[JOB_DATA_MAX];
};

_Static_assert(sizeof(struct result) <= PIPE_BUF, "a job result is one atomic write");

static size_t result_size(size_t data_size)
{
	return offsetof(struct result, data) + data_size;
}

/* Work without a result of its own, seen as work with one. */
struct plain_job {
	job_fn fn;
	const void *arg;
};

static void run_plain(const void *arg, void *data, struct fault *ret)
{
	const struct plain_job *plain = arg;
	(void)data;
	plain->fn(plain->arg, ret);
}

static _Noreturn void job_child(int result_fd, job_data_fn fn, const void *arg, size_t size)
{
	struct result result;
	memset(&result, 0, sizeof(result));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	const int keep[] = { result_fd, log_fd() };
	if (fd_close_others(keep, ARRAY_SIZE(keep)) == 0)
		fn(arg, result.data, &result.fault);
	else
		fault_set(&result.fault, AGENT_E_INTERNAL, "cannot close descriptors");
	_exit(fd_write_all(result_fd, &result, result_size(size)) == 0 ? 0 : 1);
}

int job_start_data(struct job *job, job_data_fn fn, const void *arg, size_t size, struct fault *f)
{
	int fds[2];
	if (size > JOB_DATA_MAX)
		return fault_set(f, AGENT_E_INTERNAL, "a job has %zu bytes of result", size);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create a pipe");
	cleanup_fd int read_end = fds[0], write_end = fds[1];
	pid_t pid = fork();
	if (pid < 0)
		return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot create a process");
	if (pid == 0)
		job_child(write_end, fn, arg, size);
	*job = (struct job){ .pid = pid, .result_fd = TAKE_FD(read_end) };
	return 0;
}

int job_start(struct job *job, job_fn fn, const void *arg, struct fault *f)
{
	const struct plain_job plain = { fn, arg };
	return job_start_data(job, run_plain, &plain, 0, f);
}

void job_finish_data(struct job *job, void *data, size_t size, struct fault *ret)
{
	struct result result;
	size_t len;
	int r = fd_read_full(job->result_fd, &result, result_size(size), &len);
	job_deinit(job);
	if (r < 0 || len != result_size(size)) {
		fault_set(ret, AGENT_E_INTERNAL, "interrupted");
		return;
	}
	*ret = result.fault;
	if (ret->code == 0 && size > 0)
		memcpy(data, result.data, size);
}

void job_finish(struct job *job, struct fault *ret)
{
	job_finish_data(job, NULL, 0, ret);
}

void job_deinit(struct job *job)
{
	fd_close(job->result_fd);
	*job = JOB_INIT;
}
