/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peak [--tree] FILE COMMAND [ARG...]: runs COMMAND, writes the peak of its resident memory (VmHWM,
 * KiB; of the program that it was at its end) to FILE, and exits as it did. With --tree all
 * processes that it starts count, too: the sum of their peaks, which is at least what they had
 * together at any time. What wait4(2) tells has the peaks of the programs before execve(2) in it,
 * so each process is stopped at its end by ptrace(2), and /proc read.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILURE      125 /* exit status if the command cannot be run or watched */
#define TREE_OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

struct watch {
	pid_t child;    /* the command */
	long total_kib; /* of all processes that ended */
};

/*
 * The peak of the process whose main thread @pid is; 0 for other threads, which have the same
 * memory.
 */
static long peak_of(pid_t pid)
{
	char path[64], line[256];
	long kib = 0, tgid = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Tgid:", 5) == 0)
			tgid = strtol(line + 5, NULL, 10);
		else if (strncmp(line, "VmHWM:", 6) == 0)
			kib = strtol(line + 6, NULL, 10);
	}
	if (f)
		fclose(f);
	return tgid == pid ? kib : 0;
}

static void note(const char *path, long kib)
{
	FILE *f = fopen(path, "we");
	if (!f || fprintf(f, "%ld\n", kib) < 0 || fclose(f) != 0)
		perror(path);
}

/* Lets the process go on after a stop; signals reach it as if nobody watched. */
static void go_on(struct watch *w, pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	if (event == PTRACE_EVENT_EXIT)
		w->total_kib += peak_of(pid);
	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	else
		ptrace(PTRACE_CONT, pid, 0, event == 0 ? (uintptr_t)sig : 0);
}

/* Until the last traced process has ended: the exit status of the command. */
static int watch(struct watch *w)
{
	int status, ret = FAILURE;
	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return ret;
		if (WIFSTOPPED(status))
			go_on(w, pid, status);
		else if (pid == w->child)
			ret = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

int main(int argc, char **argv)
{
	int gate[2];
	char c;
	bool tree = argc > 1 && strcmp(argv[1], "--tree") == 0;
	argc -= tree;
	argv += tree;
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
	unsigned long options = PTRACE_O_TRACEEXIT | (tree ? TREE_OPTIONS : 0);
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, options) < 0 || write(gate[1], "", 1) != 1)
		return FAILURE;
	close(gate[0]);
	close(gate[1]);
	struct watch w = { .child = pid };
	int ret = watch(&w);
	note(argv[1], w.total_kib);
	return ret;
}
