/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/app/handler.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/confine.h"
#include "guest-agent/app/execute.h"
#include "guest-agent/app/ids.h"
#include "lib/os/fd.h"

static int sys_failed(const struct handler *h, const char *what, struct fault *f)
{
	return fault_sys(f, AGENT_E_INTERNAL, errno, "event handler \"%s\": cannot %s", h->name,
			 what);
}

static _Noreturn void become_handler(const struct handler *h, int say_fd)
{
	static const struct ids root = { 0 };
	struct agent_process p = *h->process; /* borrows its lists */
	struct execution x;
	struct fault f = { 0 };
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	p.exec = *h->exec;
	cleanup_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = null < 0 || dup2(null, STDIN_FILENO) < 0 ? sys_failed(h, "open /dev/null", &f) : 0;
	if (r == 0)
		r = execute_prepare(h->app, &p, &root, h->cwd, &x, &f);
	if (r == 0)
		r = confine(h->confinement, &root, &f);
	if (r == 0)
		execute(&x, &f);
	fd_write_all(say_fd, &f, sizeof(f));
	_exit(EXECUTE_EXIT_CODE);
}

/* What the process has said before its end @status, or else how it ended. */
static int handler_explain(const struct handler *h, int status, int hear_fd, struct fault *f)
{
	struct fault said;
	if (status == 0)
		return 0;
	if (read(hear_fd, &said, sizeof(said)) == sizeof(said))
		return fault_set(f, AGENT_E_INTERNAL, "event handler \"%s\": %s", h->name,
				 said.text);
	bool killed = WIFSIGNALED(status);
	return fault_set(f, AGENT_E_INTERNAL, "event handler \"%s\" ended with %s %d", h->name,
			 killed ? "signal" : "exit code",
			 killed ? WTERMSIG(status) : WEXITSTATUS(status));
}

int handler_run(const struct handler *h, struct fault *f)
{
	int say[2], status;
	if (h->exec->n == 0)
		return 0;
	if (pipe2(say, O_CLOEXEC | O_NONBLOCK) < 0)
		return sys_failed(h, "create a pipe", f);
	cleanup_fd int hear_fd = say[0], say_fd = say[1];
	pid_t pid = fork();
	if (pid < 0)
		return sys_failed(h, "create a process", f);
	if (pid == 0)
		become_handler(h, say_fd);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return sys_failed(h, "wait for its end", f);
	return handler_explain(h, status, hear_fd, f);
}

/*
 * Waits for the end of @pid, with all signals blocked. Those that come from outside of the PID
 * namespace, where the sender has no number, are the agent's; an app that signals this process gets
 * nothing for it.
 */
static int attend(pid_t pid)
{
	siginfo_t info;
	sigset_t all;
	int status;
	sigfillset(&all);
	while (waitpid(pid, &status, WNOHANG) != pid)
		if (sigwaitinfo(&all, &info) > 0 && info.si_code == SI_USER && info.si_pid == 0)
			kill(pid, info.si_signo);
	return status;
}

static _Noreturn void end_as(int status)
{
	sigset_t none;
	sigemptyset(&none);
	if (WIFSIGNALED(status)) {
		raise(WTERMSIG(status));
		sigprocmask(SIG_SETMASK, &none, NULL);
	}
	_exit(WEXITSTATUS(status));
}

int handler_stay_behind(const struct handler *h, int say_fd, struct fault *f)
{
	sigset_t all, before;
	struct fault why = { 0 };
	if (h->exec->n == 0)
		return 0;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid < 0)
		return sys_failed(h, "create a process", f);
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		return 0;
	}
	fd_close(say_fd);
	/* The app alone reads its input: when it closes it, nobody has it any more. */
	cleanup_fd int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	dup2(null, STDIN_FILENO);
	int status = attend(pid);
	if (handler_run(h, &why) != 0)
		dprintf(STDERR_FILENO, "husk-agent: %s\n", why.text);
	end_as(status);
}
