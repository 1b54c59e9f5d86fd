/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"

/* What a child writes into the pipe before its end. */
struct report {
	int result;
	struct err e;
	char text[JOB_TEXT_MAX + 1];
};

struct job {
	pid_t pid;
	int pidfd;
	int report; /* the pipe's end for reading */
	bool executes;
	struct loop_watch watch;
	job_done done;
	void *ctx;
};

/* ---- in the child ---- */

static int become_job(pid_t parent, bool bound)
{
	sigset_t none;
	sigemptyset(&none);
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	if (bound && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != parent)
		return -ECANCELED;
	return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? -errno : 0;
}

static _Noreturn void run_job(pid_t parent, bool bound, job_fn fn, void *ctx, int out)
{
	struct report report = { .e = ERR_INIT };
	report.result = become_job(parent, bound);
	if (report.result < 0)
		err_sys(&report.e, report.result, "cannot begin");
	else
		report.result = fn(ctx, report.text, &report.e);
	int r = fd_write_all(out, &report, sizeof(report));
	_exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- in the shim ---- */

/* What the job has reported. False if it became another program, or was killed. */
static bool read_report(const struct job *j, struct report *ret)
{
	size_t n = 0;
	int r = fd_read_full(j->report, ret, sizeof(*ret), &n);
	return r == 0 && n == sizeof(*ret);
}

static void release(struct job *j)
{
	loop_watch_remove(&j->watch);
	fd_close(j->pidfd);
	fd_close(j->report);
	free(j);
}

static void on_end(void *ctx, uint32_t events)
{
	struct job *j = ctx;
	struct report report = { .result = -EIO, .e = ERR_INIT };
	struct job_end end = { .text = report.text, .e = &report.e };
	int status = 0;
	(void)events;
	while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
		;
	bool reported = read_report(j, &report);
	int exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (!reported && j->executes) {
		report.result = 0;
		end.exit_code = exit_code;
	} else if (!reported) {
		report.result = err_set(&report.e, -EIO,
					"a helper of the shim ended without a result (status %d)",
					exit_code);
	}
	end.result = report.result;
	job_done done = j->done;
	void *done_ctx = j->ctx;
	release(j);
	done(done_ctx, &end);
}

int job_start(struct loop *loop, job_fn fn, void *fn_ctx, unsigned int flags, job_done done,
	      void *ctx, struct job **ret)
{
	int ends[2];
	struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	*j = (struct job){ .pidfd = -EBADF, .report = -EBADF, .watch = LOOP_WATCH_INIT };
	j->executes = flags & JOB_EXECUTES;
	j->done = done;
	j->ctx = ctx;
	int r = pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
	if (r < 0) {
		free(j);
		return r;
	}
	j->report = ends[0];
	pid_t parent = getpid();
	j->pid = fork();
	if (j->pid == 0)
		run_job(parent, flags & JOB_BOUND, fn, fn_ctx, ends[1]);
	r = j->pid < 0 ? -errno : 0;
	fd_close(ends[1]);
	if (r == 0) {
		j->pidfd = (int)syscall(SYS_pidfd_open, j->pid, 0);
		r = j->pidfd < 0 ? -errno
				 : loop_watch_add(loop, &j->watch, j->pidfd, EPOLLIN, on_end, j);
		if (r < 0) {
			kill(j->pid, SIGKILL);
			waitpid(j->pid, NULL, 0);
		}
	}
	if (r < 0) {
		release(j);
		return r;
	}
	if (ret)
		*ret = j;
	return 0;
}

pid_t job_pid(const struct job *j)
{
	return j->pid;
}

void job_kill(const struct job *j, int number)
{
	syscall(SYS_pidfd_send_signal, j->pidfd, number, NULL, 0);
}

void job_free(struct job *j)
{
	if (!j)
		return;
	job_kill(j, SIGKILL);
	while (waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		;
	release(j);
}
