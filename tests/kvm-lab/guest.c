/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process 1 of the lab's first-level machine: kvm-lab-guest PORT. Reads from the port which command
 * to run, runs it, sends its output and exit code there (wire.h) and waits for the end of the
 * machine, which the host program brings about. If anything fails here the process ends, the kernel
 * panics, and the host shows the console, where the reason stands.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/err.h"
#include "lib/os/fd.h"
#include "lib/os/loop.h"
#include "tests/kvm-lab/wire.h"

#define CODE_LAB_FAILED     125
#define CODE_NOT_EXECUTABLE 126
#define CODE_NOT_FOUND      127

struct spec {
	char *strings; /* owned */
	char *dir;
	char *words[LAB_STRINGS_MAX + 1]; /* NULL-terminated, like the next */
	char *env[LAB_STRINGS_MAX + 1];
};

struct guest {
	int port;
	int signals;
	int out[2]; /* read ends of stdout and stderr */
	pid_t command;
	int exit_code;
	bool ended;
};

static int read_exactly(int fd, void *mem, size_t len)
{
	size_t got;
	int r = fd_read_full(fd, mem, len, &got);

	return r < 0 ? r : got == len ? 0 : -EPIPE;
}

static int split_strings(struct spec *s, const struct lab_spec *head)
{
	size_t n_words = 0, n_env = 0;

	for (char *p = s->strings; p < s->strings + head->n_bytes; p += strlen(p) + 1) {
		if (!s->dir)
			s->dir = p;
		else if (n_words < head->n_words)
			s->words[n_words++] = p;
		else if (n_env < LAB_STRINGS_MAX)
			s->env[n_env++] = p;
		else
			return -E2BIG;
	}
	return n_words > 0 && n_words == head->n_words ? 0 : -EPROTO;
}

static int read_spec(int port, struct spec *s)
{
	struct lab_spec head;
	int r = read_exactly(port, &head, sizeof(head));

	if (r < 0)
		return r;
	if (head.n_bytes == 0 || head.n_bytes > LAB_SPEC_MAX || head.n_words > LAB_STRINGS_MAX)
		return -EPROTO;
	s->strings = malloc(head.n_bytes);
	if (!s->strings)
		return -ENOMEM;
	if ((r = read_exactly(port, s->strings, head.n_bytes)) < 0)
		return r;
	if (s->strings[head.n_bytes - 1] != '\0')
		return -EPROTO;
	return split_strings(s, &head);
}

static int send_frame(int port, enum lab_kind kind, const void *data, size_t len)
{
	char mem[sizeof(struct lab_frame) + LAB_FRAME_MAX];
	struct lab_frame head = { .kind = (uint32_t)kind, .len = (uint32_t)len };

	memcpy(mem, &head, sizeof(head));
	if (len > 0)
		memcpy(mem + sizeof(head), data, len);
	return fd_write_all(port, mem, sizeof(head) + len);
}

/* In the child. Says on its stderr, as a shell would, why the command cannot run. */
_Noreturn static void exec_command(const struct spec *s, const int out[2])
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0 || null < 0 || dup2(null, 0) < 0 || dup2(out[0], 1) < 0 ||
	    dup2(out[1], 2) < 0)
		_exit(CODE_LAB_FAILED);
	if (chdir(s->dir) < 0) {
		fprintf(stderr, "kvm-lab: working directory %s: %s in the machine\n", s->dir,
			strerror(errno));
		_exit(CODE_LAB_FAILED);
	}
	clearenv();
	for (char *const *e = s->env; *e; e++)
		putenv(*e);
	execvp(s->words[0], s->words);
	fprintf(stderr, "kvm-lab: %s: %s\n", s->words[0], strerror(errno));
	_exit(errno == ENOENT ? CODE_NOT_FOUND : CODE_NOT_EXECUTABLE);
}

static int start_command(struct guest *g, const struct spec *s)
{
	int writing[2];
	int pipes[2][2];

	for (int i = 0; i < 2; i++) {
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			return -errno;
		g->out[i] = pipes[i][0];
		writing[i] = pipes[i][1];
	}
	g->command = fork();
	if (g->command < 0)
		return -errno;
	if (g->command == 0)
		exec_command(s, writing);
	for (int i = 0; i < 2; i++) {
		int r = fd_set_nonblock(g->out[i], true);
		if (r < 0)
			return r;
		fd_close(writing[i]);
	}
	return 0;
}

/* Sends what a pipe has, at most a frame. Yields the bytes, 0 if there are none now. Or -errno. */
static ssize_t forward(struct guest *g, int i)
{
	char mem[LAB_FRAME_MAX];
	ssize_t n;

	if (g->out[i] < 0)
		return 0;
	n = read(g->out[i], mem, sizeof(mem));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0) {
		fd_replace(&g->out[i], -EBADF);
		return 0;
	}
	int r = send_frame(g->port, i == 0 ? LAB_STDOUT : LAB_STDERR, mem, (size_t)n);
	return r < 0 ? r : n;
}

/* Reaps every child: as process 1 we inherit the orphans. */
static void reap(struct guest *g)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(g->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != g->command)
			continue;
		g->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		g->ended = true;
	}
}

static int serve(struct guest *g)
{
	char beats[64]; /* nothing but their interrupts matters */
	struct pollfd p[4] = {
		{ .fd = g->signals, .events = POLLIN },
		{ .fd = g->out[0], .events = POLLIN },
		{ .fd = g->out[1], .events = POLLIN },
		{ .fd = g->port, .events = POLLIN },
	};

	while (!g->ended) {
		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < 2; i++) {
			ssize_t n = p[1 + i].revents ? forward(g, i) : 0;
			if (n < 0)
				return (int)n;
			p[1 + i].fd = g->out[i];
		}
		if (p[0].revents)
			reap(g);
		if ((p[3].revents & POLLIN) && read(g->port, beats, sizeof(beats)) < 0)
			return -errno;
	}
	/* A background process may hold the pipes open for ever: what is in them now is all. */
	for (int i = 0; i < 2; i++) {
		ssize_t n;
		while ((n = forward(g, i)) > 0)
			;
		if (n < 0)
			return (int)n;
	}
	int32_t code = g->exit_code;
	return send_frame(g->port, LAB_EXIT, &code, sizeof(code));
}

static int run(const char *port, struct err *e)
{
	struct guest g = { .port = open(port, O_RDWR | O_CLOEXEC) };
	struct spec *s = calloc(1, sizeof(*s));
	sigset_t child;
	int r;

	if (g.port < 0)
		return err_sys(e, -errno, "%s", port);
	if (!s)
		return err_set(e, -ENOMEM, "out of memory");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	g.signals = loop_signal_fd(&child);
	if (g.signals < 0)
		return err_sys(e, g.signals, "signalfd");
	if ((r = read_spec(g.port, s)) < 0)
		return err_sys(e, r, "%s: reading the command", port);
	if ((r = send_frame(g.port, LAB_STARTED, NULL, 0)) < 0)
		return err_sys(e, r, "%s", port);
	if ((r = start_command(&g, s)) < 0)
		return err_sys(e, r, "starting the command");
	if ((r = serve(&g)) < 0)
		return err_sys(e, r, "%s: sending the command's output", port);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;

	if (argc != 2) {
		fprintf(stderr, "usage: kvm-lab-guest PORT\n");
		return 2;
	}
	run(argv[1], &e);
	fprintf(stderr, "kvm-lab-guest: %s\n", e.text);
	return 1;
}
