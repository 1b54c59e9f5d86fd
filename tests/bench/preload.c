/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into what `tools/bench cost` has callgrind(1) count. It stands between a program and
 * some of its calls. Those that valgrind does not know become others: openat2(2) openat(2); a pidfd
 * the process's directory in /proc, with kill(2) for the last one. And a program that is about to
 * become another one, by execv(3), leaves that to a child and takes over its status, as callgrind
 * forgets what it has counted of a process that executes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS 6 /* of a system call */

static pid_t program; /* the process that main() runs in, not one that it has forked */
static pid_t last;    /* that somebody wanted a pidfd of */

__attribute__((constructor)) static void note_program(void)
{
	program = getpid();
}

static long call(long number, const long *v)
{
	long r;
	register long v3 __asm__("r10") = v[3];
	register long v4 __asm__("r8") = v[4];
	register long v5 __asm__("r9") = v[5];
	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(number), "D"(v[0]), "S"(v[1]), "d"(v[2]), "r"(v3), "r"(v4), "r"(v5)
			 : "rcx", "r11", "memory");
	if (r < 0 && r > -4096) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

/* In the parent: ends as @child does. */
static void end_as(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int open_process(pid_t pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	last = pid;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

long syscall(long sysno, ...)
{
	va_list words;
	long v[WORDS];
	va_start(words, sysno);
	for (int i = 0; i < WORDS; i++)
		v[i] = va_arg(words, long);
	va_end(words);
	if (sysno == SYS_openat2) {
		const struct open_how *how = (const struct open_how *)v[2];
		return openat((int)v[0], (const char *)v[1], (int)how->flags, (mode_t)how->mode);
	}
	if (sysno == SYS_pidfd_open)
		return open_process((pid_t)v[0]);
	return sysno == SYS_pidfd_send_signal ? kill(last, (int)v[1]) : call(sysno, v);
}

int execv(const char *path, char *const argv[])
{
	pid_t child = getpid() == program ? fork() : 0;
	if (child > 0)
		end_as(child);
	return child < 0 ? -1 : execve(path, argv, environ);
}
