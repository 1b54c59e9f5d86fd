/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: husk forks a guardian, which forks the worker. The worker calls the function
 * and reports a head and the result through a pipe; one that ends early means that it died.
 *
 * The guardian blocks all signals and takes two: SIGCHLD, after which the worker may have ended,
 * and SIGTERM, which the kernel sends when husk ends, after which it kills the worker. As the
 * subreaper of everything below it the guardian inherits gpg, which GPGME lets go, and whatever gpg
 * might have started. GPGME returns when gpg has closed its descriptors, so what is there at the
 * end of the worker has nothing left to do. Then the guardian tidies up and ends, which is what
 * husk waits for; its exit status is that of the worker, or SIGNAL_STATUS and the signal.
 */
#include "images/appc/trust/worker.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"

#define SIGNAL_STATUS 128 /* exit status for signal 0, as a shell has it */

/*
 * Longest list of children that is read at a time; a process ID has at most 7 digits and a blank.
 */
#define CHILDREN_TEXT_MAX ((size_t)4096)

/* What the child sends first. */
struct head {
	int code; /* the function's */
	struct err err;
};

const char *worker_search_path(void)
{
	const char *path = getenv("PATH");
	return path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
}

static int set_environment(const char *home)
{
	cleanup_free char *path = strdup(worker_search_path());
	if (!path || clearenv() != 0 || setenv("PATH", path, 1) < 0 ||
	    setenv("HOME", home, 1) < 0 || setenv("LC_ALL", "C", 1) < 0)
		return -ENOMEM;
	return 0;
}

static int keep_descriptors(const struct worker_plan *plan, int report)
{
	int keep[WORKER_FDS_MAX + 1];
	for (size_t i = 0; i < plan->n_fds; i++)
		keep[i] = plan->fds[i];
	keep[plan->n_fds] = report;
	return fd_keep_only(keep, plan->n_fds + 1);
}

/* Back to the defaults, and all blocked. */
static void reset_signals(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL); /* fails for the few that cannot be changed: fine */
	signal(SIGPIPE, SIG_IGN);     /* gpg may end before it has read everything */
}

/* Lowers a limit of this process and those it starts, as far as it is not lower already. */
static int worker_limit(__rlimit_resource_t resource, uint64_t value)
{
	struct rlimit l;
	if (getrlimit(resource, &l) < 0)
		return -errno;
	l.rlim_cur = MIN(l.rlim_max, (rlim_t)value);
	return setrlimit(resource, &l) < 0 ? -errno : 0;
}

int worker_limit_time(uint64_t seconds)
{
	return worker_limit(RLIMIT_CPU, seconds);
}

static int limit_resources(void)
{
	int r = worker_limit(RLIMIT_CORE, 0);
	if (r == 0 && WORKER_MEMORY_MAX > 0)
		r = worker_limit(RLIMIT_DATA, WORKER_MEMORY_MAX);
	return r == 0 ? worker_limit(RLIMIT_FSIZE, WORKER_FILE_MAX) : r;
}

/* Everything in the guardian before it forks; the worker inherits all but the signal mask. */
static int worker_prepare(const struct worker_plan *plan, int report, pid_t parent)
{
	int r = keep_descriptors(plan, report);
	if (r == 0)
		r = set_environment(plan->home);
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		r = -errno;
	if (r == 0)
		r = limit_resources();
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		r = -errno;
	return r == 0 && getppid() != parent ? -ESRCH : r;
}

/* Kills the children that the kernel lists and waits for them. False if it lists none. */
static bool kill_children(void)
{
	char text[CHILDREN_TEXT_MAX + 1];
	size_t len = 0;
	bool any = false;
	cleanup_fd int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, CHILDREN_TEXT_MAX, &len) < 0)
		return false;
	text[len] = '\0';
	for (char *at = text, *blank; (blank = strchr(at, ' ')); at = blank + 1) {
		uint64_t pid;
		*blank = '\0';
		if (num_parse_u64(at, INT_MAX, &pid) < 0 || pid == 0)
			continue;
		int status;
		kill((pid_t)pid, SIGKILL);
		any = spawn_wait((pid_t)pid, &status) == 0 || any;
	}
	return any;
}

/* Ends all processes below this one; what a killed one leaves comes to us and is next. */
static void end_children(void)
{
	while (kill_children())
		;
}

/* Ends this process, not by _exit(3): in a sanitized build that looks for leaks. */
static void worker_end(int status)
{
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

static void send_report(int report, const struct head *head, const void *result, size_t size)
{
	bool sent = fd_write_all(report, head, sizeof(*head)) == 0 &&
		    (head->code != 0 || fd_write_all(report, result, size) == 0);
	worker_end(sent ? 0 : 1);
}

static void run_worker(const struct worker_plan *plan, int report, pid_t guardian, void *result,
		       size_t size)
{
	struct head head = { 0 };
	sigset_t none;
	sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != guardian ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		worker_end(1);
	head.code = plan->fn(plan->ctx, result, &head.err);
	send_report(report, &head, result, size);
}

/*
 * Waits for the end of the worker, which the end of husk brings about. What else ends is waited for
 * as well: a gpg that was killed leaves a lock, and the next one waits for it as long as its
 * process ID is taken.
 */
static int guard(pid_t worker)
{
	sigset_t wanted;
	int status = 0;
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGTERM);
	for (pid_t ended = 0; ended != worker;) {
		ended = waitpid(-1, &status, WNOHANG);
		if (ended < 0)
			return 1;
		if (ended == 0 && sigwaitinfo(&wanted, NULL) == SIGTERM)
			kill(worker, SIGKILL);
	}
	return WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
}

static void run_guardian(const struct worker_plan *plan, int report, pid_t parent, void *result,
			 size_t size)
{
	struct head head = { 0 };
	pid_t worker = -1, self = getpid();
	reset_signals();
	head.code = worker_prepare(plan, report, parent);
	if (head.code == 0) {
		worker = fork();
		head.code = worker < 0 ? -errno : 0;
	}
	if (worker == 0)
		run_worker(plan, report, self, result, size);
	int status = 0;
	if (head.code == 0) {
		fd_close(report); /* only the worker's end counts */
		status = guard(worker);
	}
	end_children();
	if (plan->last)
		plan->last(plan->ctx);
	if (head.code == 0)
		worker_end(status);
	err_sys(&head.err, head.code, "cannot prepare a process for gpg");
	send_report(report, &head, result, size);
}

static int worker_died(int status, struct err *e)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - SIGNAL_STATUS;
	if (number <= 0)
		return err_set(e, -EIO, "the process that uses gpg failed (try again)");
	return err_set(e, -EIO, "the process that uses gpg died of signal %d, %s (try again)",
		       number, strsignal(number));
}

int worker_run(const struct worker_plan *plan, void *result, size_t size, struct err *e)
{
	int ends[2], status = 0;
	struct head head;
	char space[WORKER_RESULT_MAX] = { 0 };
	assert(plan->n_fds <= WORKER_FDS_MAX && size <= sizeof(space));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "cannot create a pipe");
	cleanup_fd int read_end = ends[0];
	cleanup_fd int write_end = ends[1];
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, -errno, "cannot create a process");
	if (pid == 0)
		run_guardian(plan, write_end, parent, space, size);
	fd_replace(&write_end, -EBADF);
	int reported = fd_read_exactly(read_end, &head, sizeof(head));
	if (reported == 0 && head.code == 0)
		reported = fd_read_exactly(read_end, space, size);
	int r = spawn_wait(pid, &status);
	/* Whoever started husk may have made it ignore SIGCHLD; the report is what counts then. */
	if (r < 0 && r != -ECHILD)
		return err_sys(e, r, "cannot wait for the process that uses gpg");
	if (reported < 0 || status != 0)
		return worker_died(status, e);
	if (head.code != 0 && e)
		*e = head.err;
	else if (head.code == 0)
		memcpy(result, space, size);
	return head.code;
}
