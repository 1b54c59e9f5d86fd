/*
 * peak FILE COMMAND [ARG...]: runs COMMAND, writes the peak of its resident memory (VmHWM, KiB; of the program that it was
 * at its end) to FILE, and exits as it did. What wait4(2) tells has the peaks of the programs before execve(2) in it, so the
 * process is stopped at its end by ptrace(2), and /proc read.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILURE 125 /* exit status if the command cannot be run or watched */

static long peak_of(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

static void note(const char *path, long kib)
{
	FILE *f = fopen(path, "we");
	if (!f || fprintf(f, "%ld\n", kib) < 0 || fclose(f) != 0)
		perror(path);
}

/* Lets the process go on after a stop; signals reach it as if nobody watched. */
static void go_on(pid_t pid, int status, const char *file)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	if (event == PTRACE_EVENT_EXIT)
		note(file, peak_of(pid));
	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	else
		ptrace(PTRACE_CONT, pid, 0, event == 0 ? (uintptr_t)sig : 0);
}

static int watch(pid_t pid, const char *file)
{
	int status;
	for (;;) {
		if (waitpid(pid, &status, 0) < 0 && errno != EINTR)
			return FAILURE;
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		go_on(pid, status, file);
	}
}

int main(int argc, char **argv)
{
	int gate[2];
	char c;
	if (argc < 3 || pipe(gate) < 0)
		return FAILURE;
	pid_t pid = fork();
	if (pid == 0) {
		close(gate[1]);
		if (read(gate[0], &c, 1) == 0) /* until it is watched */
			_exit(FAILURE);
		close(gate[0]);
		execvp(argv[2], argv + 2);
		_exit(FAILURE);
	}
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT) < 0 ||
	    write(gate[1], "", 1) != 1)
		return FAILURE;
	close(gate[0]);
	close(gate[1]);
	return watch(pid, argv[1]);
}
