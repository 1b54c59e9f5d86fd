/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command and kills one of its processes, or fails one of its system calls, at an exact
 * place.
 *
 *   inject [--log=FILE] [--at=PROCESS:CALL:N [--error=ERRNO]] [--wait] [--no-reading] [--plugins]
 *   [--only=PROGRAM] CALL[,CALL...] -- COMMAND [ARG...]
 *
 * Processes are numbered in the order in which they are made, the command being 0; N counts the
 * calls of that name in that process, in all of its threads, from 1. At the place the process gets
 * SIGKILL instead of the call, or with --error the call is not made and yields -ERRNO. strace(1)
 * can do that to a command, or to all of its processes at once, but not to one child of it.
 *
 * With --no-reading an openat(2) that neither writes nor creates does not count.
 *
 * FILE gets a line "PROCESS CALL" for each of the named calls, "REACHED" at the place, and "CRASHED
 * PROCESS SIGNAL" where one of them ends by a fault of its own. Programs that are not husk's (QEMU,
 * virtiofsd, e2fsprogs, plugins, apps) are let go when they are executed; with --plugins those of
 * CNI are not, but what they execute; with --only all but PROGRAM are. Ends as the command does;
 * with --wait not before the last process that came of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"

#define TASKS_MAX 512 /* processes and threads; husk makes about ten, its image tools dozens */
#define CALLS_MAX 512 /* numbers of system calls; x86-64 has about 460 */
#define OPTIONS                                                                                   \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC)

struct process {
	unsigned number;
	unsigned counts[CALLS_MAX];
};

/* A process's first thread or another one. */
struct task {
	pid_t pid;
	struct process *process;
	bool failing;           /* the call it is in was replaced */
	unsigned long argument; /* the first one, which was replaced with it */
};

struct place {
	bool wanted;
	unsigned process, n;
	int call;
	int error; /* 0: SIGKILL */
};

static struct task tasks[TASKS_MAX];
static unsigned n_tasks, n_processes;
static bool watched[CALLS_MAX];
static struct place place;
static FILE *log_file;
static bool wait_for_all, no_reading, with_plugins;
static const char *only; /* the name of a program's file; NULL: husk's */

static _Noreturn void die(const char *what, const char *detail)
{
	fprintf(stderr, "inject: %s%s%s\n", what, *detail ? ": " : "", detail);
	exit(125);
}

static int call_number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);
	return nr >= 0 && nr < CALLS_MAX ? nr
					 : -1; /* the kernel of another architecture has others */
}

static struct process *new_process(void)
{
	struct process *p = calloc(1, sizeof(*p));
	if (!p)
		die("out of memory", "");
	p->number = n_processes++;
	return p;
}

/* The first thread of the process that the task @pid is in, or @pid if that cannot be said. */
static pid_t leader_of(pid_t pid)
{
	char path[64], line[128];
	int leader = (int)pid;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		uint64_t n;
		line[strcspn(line, "\n")] = '\0';
		if (str_starts(line, "Tgid:\t") &&
		    num_parse_u64(line + strlen("Tgid:\t"), INT_MAX, &n) == 0)
			leader = (int)n;
	}
	if (f)
		fclose(f);
	return leader;
}

static struct task *find_known(pid_t pid)
{
	for (unsigned i = 0; i < n_tasks; i++)
		if (tasks[i].pid == pid)
			return &tasks[i];
	return NULL;
}

/* The task @pid, which is new if it is not known. */
static struct task *find(pid_t pid)
{
	struct task *t = find_known(pid);
	if (t)
		return t;
	if (n_tasks == TASKS_MAX)
		die("too many processes", "");
	const struct task *leader = find_known(leader_of(pid));
	t = &tasks[n_tasks++];
	*t = (struct task){ .pid = pid, .process = leader ? leader->process : new_process() };
	return t;
}

static void poke(pid_t pid, size_t offset, long value)
{
	if (ptrace(PTRACE_POKEUSER, pid, offset, value) < 0 && errno != ESRCH)
		die("cannot change a register", strerror(errno));
}

/* Whether the system calls of the task are filtered. */
static bool is_filtered(pid_t pid)
{
	char path[64], line[128];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strcmp(line, "Seccomp:\t2\n") == 0;
	if (f)
		fclose(f);
	return found;
}

/*
 * Makes the call do nothing: there is none of number -1. A filter, which is asked after us, does
 * not know that either; behind one the call gets a descriptor that there is not.
 */
static void replace(struct task *t)
{
	t->failing = true;
	t->argument = (unsigned long)ptrace(PTRACE_PEEKUSER, t->pid,
					    offsetof(struct user, regs.rdi), NULL);
	if (is_filtered(t->pid))
		poke(t->pid, offsetof(struct user, regs.rdi), -1);
	else
		poke(t->pid, offsetof(struct user, regs.orig_rax), -1);
}

static void reach(struct task *t)
{
	if (log_file)
		fputs("REACHED\n", log_file);
	if (place.error == 0) {
		kill(t->pid, SIGKILL);
		return;
	}
	replace(t);
}

/* True for an openat(2) that leaves everything as it is. */
static bool is_reading(uint64_t nr, const uint64_t *args)
{
	const uint64_t changing = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
	return (int)nr == SCMP_SYS(openat) && (args[2] & changing) == 0;
}

static void on_entry(struct task *t, uint64_t nr, const uint64_t *args)
{
	if (nr >= CALLS_MAX || !watched[nr] || (no_reading && is_reading(nr, args)))
		return;
	unsigned n = ++t->process->counts[nr], process = t->process->number;
	if (log_file) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr);
		fprintf(log_file, "%u %s\n", process, name ? name : "?");
		free(name);
	}
	if (place.wanted && process == place.process && (int)nr == place.call && n == place.n)
		reach(t);
}

static void on_call(struct task *t)
{
	struct ptrace_syscall_info info;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, t->pid, sizeof(info), &info) < 0)
		return; /* it was killed meanwhile */
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		on_entry(t, info.entry.nr, (const uint64_t *)info.entry.args);
	} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && t->failing) {
		t->failing = false;
		poke(t->pid, offsetof(struct user, regs.rdi), (long)t->argument);
		poke(t->pid, offsetof(struct user, regs.rax), -place.error);
	}
}

/* True if the program that was just executed is one of husk's. */
static bool is_ours(pid_t pid)
{
	char link[64], path[4096];
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return true;
	path[n] = '\0';
	const char *name = basename(path);
	if (only)
		return strcmp(name, only) == 0;
	return !str_starts(name, "qemu") && !str_starts(name, "mke2fs") &&
	       !str_starts(name, "mkfs") && !str_starts(name, "busybox") &&
	       !strstr(name, "tables") && (with_plugins || !strstr(path, "/cni/")) &&
	       !str_starts(name, "virtiofsd");
}

static void go_on(pid_t pid, enum __ptrace_request how, int sig)
{
	if (ptrace(how, pid, NULL, (void *)(intptr_t)sig) < 0 && errno != ESRCH)
		die("cannot go on", strerror(errno));
}

static void on_event(struct task *t, int event, int sig)
{
	unsigned long child = 0;
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &child) == 0)
			find((pid_t)child); /* it gets its number in the order of its making */
		break;
	case PTRACE_EVENT_EXEC:
		if (!is_ours(t->pid)) {
			go_on(t->pid, PTRACE_DETACH, 0);
			return;
		}
		break;
	case PTRACE_EVENT_STOP:
		if (sig != SIGTRAP) { /* stopped as a whole: it stays so */
			go_on(t->pid, PTRACE_LISTEN, 0);
			return;
		}
		break;
	default:
		break;
	}
	go_on(t->pid, PTRACE_SYSCALL, 0);
}

static void on_stop(struct task *t, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	if (event != 0) {
		on_event(t, event, sig);
	} else if (sig == (SIGTRAP | 0x80)) {
		on_call(t);
		go_on(t->pid, PTRACE_SYSCALL, 0);
	} else {
		go_on(t->pid, PTRACE_SYSCALL, sig);
	}
}

/* By a signal that nobody sends to a process, which ended as @status says. */
static void on_end(pid_t pid, int status)
{
	static const int faults[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP };
	const struct task *t = find_known(pid);
	for (size_t i = 0; t && log_file && WIFSIGNALED(status) && i < ARRAY_SIZE(faults); i++)
		if (WTERMSIG(status) == faults[i])
			fprintf(log_file, "CRASHED %u %d\n", t->process->number, faults[i]);
}

/*
 * Traces until the command has ended, whose children then go on alone, or until all have. Yields
 * the status of the command.
 */
static int trace(pid_t command)
{
	int result = 0;
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 && errno == ECHILD && wait_for_all)
			return result;
		if (pid < 0)
			die("waitpid", strerror(errno));
		if (WIFSTOPPED(status))
			on_stop(find(pid), status);
		else
			on_end(pid, status);
		if (pid == command && !WIFSTOPPED(status))
			result = status;
		if (pid == command && !WIFSTOPPED(status) && !wait_for_all)
			return result;
	}
}

static pid_t start(char *const *argv)
{
	int go[2];
	char byte;
	if (pipe2(go, O_CLOEXEC) < 0)
		die("pipe", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		die("fork", strerror(errno));
	if (pid == 0) {
		close(go[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (read(go[0], &byte, 1) != 1)
			_exit(125);
		execvp(argv[0], argv);
		_exit(126);
	}
	find(pid);
	if (ptrace(PTRACE_SEIZE, pid, NULL, OPTIONS) < 0)
		die("cannot trace", strerror(errno));
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		die("cannot trace", strerror(errno));
	if (write(go[1], "", 1) != 1)
		die("cannot start", "");
	close(go[0]);
	close(go[1]);
	close(STDOUT_FILENO); /* its end is the command's */
	return pid;
}

static void parse_place(char *text)
{
	uint64_t process, n;
	char *call = strchr(text, ':'), *count = call ? strchr(call + 1, ':') : NULL;
	if (!count)
		die("--at is not PROCESS:CALL:N", text);
	*call++ = '\0';
	*count++ = '\0';
	if (num_parse_u64(text, TASKS_MAX - 1, &process) < 0 ||
	    num_parse_u64(count, UINT32_MAX, &n) < 0 || call_number(call) < 0)
		die("--at: no such place", call);
	place.wanted = true;
	place.process = (unsigned)process;
	place.n = (unsigned)n;
	place.call = call_number(call);
}

static void parse_calls(char *list)
{
	for (char *save = NULL, *name = strtok_r(list, ",", &save); name;
	     name = strtok_r(NULL, ",", &save))
		if (call_number(name) >= 0)
			watched[call_number(name)] = true;
}

static void parse_option(char *arg)
{
	uint64_t error;
	if (str_starts(arg, "--log=")) {
		log_file = fopen(arg + strlen("--log="), "we");
		if (!log_file)
			die("cannot write the log", strerror(errno));
	} else if (str_starts(arg, "--at=")) {
		parse_place(arg + strlen("--at="));
	} else if (str_starts(arg, "--error=") &&
		   num_parse_u64(arg + strlen("--error="), 4095, &error) == 0) {
		place.error = (int)error;
	} else if (strcmp(arg, "--no-reading") == 0) {
		no_reading = true;
	} else if (strcmp(arg, "--plugins") == 0) {
		with_plugins = true;
	} else if (str_starts(arg, "--only=")) {
		only = arg + strlen("--only=");
	} else if (strcmp(arg, "--wait") == 0) {
		wait_for_all = true;
		prctl(PR_SET_CHILD_SUBREAPER, 1); /* what outlives its parent comes to us */
	} else {
		die("unknown option", arg);
	}
}

int main(int argc, char **argv)
{
	int i = 1;
	for (; i < argc && str_starts(argv[i], "--"); i++)
		parse_option(argv[i]);
	if (argc - i < 3 || strcmp(argv[i + 1], "--") != 0)
		die("usage: inject [--log=FILE] [--at=PROCESS:CALL:N [--error=ERRNO]] [--wait] [--no-reading] "
		    "[--plugins] [--only=PROGRAM] CALL[,CALL...] -- COMMAND [ARG...]",
		    "");
	parse_calls(argv[i]);
	int status = trace(start(argv + i + 2));
	if (log_file)
		fclose(log_file);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	signal(WTERMSIG(status), SIG_DFL);
	kill(getpid(), WTERMSIG(status));
	return 128 + WTERMSIG(status);
}
