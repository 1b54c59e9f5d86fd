/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lab's supervisor on the host: kvm-lab-host OPTIONS -- QEMU ARGUMENTS... -- COMMAND...
 * (tests/kvm-lab/run makes that line). Starts QEMU, tells the machine which command to run
 * (wire.h), passes on what comes back and ends with the command's exit code.
 *
 * Everything that must not outlive this process is tied to it by the kernel: QEMU dies with it, it
 * dies with its caller, and there are no files. The console is kept in memory, its end shown if the
 * machine dies; --keep-console writes it to a file, bounded.
 *
 * The machine needs a heartbeat. QEMU 7.2 can lose an interrupt that comes while the processor
 * enters or leaves a guest: target/i386/tcg changes interrupt_request there without the lock under
 * which the other threads set bits in it. The interrupt controller still knows of it and tells the
 * processor with the next one; but if the lost one was the timer's and nothing else happens, there
 * is no next one, and the machine sleeps for ever. Seen once in some hundred pods; a byte sent to
 * the port woke it after a quarter of an hour. So a byte is sent all the time.
 *
 * States: the machine boots until LAB_STARTED, then the command runs until LAB_EXIT. How long
 * either takes depends on the host and on what else runs there, so there is no limit on that, but
 * one on how long nothing comes: console while it boots, output from then on. While stdout or
 * stderr cannot take a frame's bytes, the port is not read, so a slow reader slows the command down
 * as a pipe would.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/loop.h"
#include "lib/os/spawn.h"
#include "tests/kvm-lab/wire.h"

#define CODE_LIMIT      124
#define CODE_LAB_FAILED 125

#define PORT_FD          3          /* QEMU's end of the port */
#define CONSOLE_FILE_MAX (4L << 20) /* a day of kernel messages; a loop of them ends here */
#define CONSOLE_TAIL     4096       /* bytes shown when the machine dies: two screenfuls */
#define SECONDS_MAX      604800     /* of a time limit: a week */

/* What one write(2) to a pipe takes whole once poll(2) says that it is writable. */
#define WRITE_MAX PIPE_BUF

struct lab {
	char *const *qemu; /* words, NULL-terminated */
	char *const *command;
	char *const *env; /* n_env words NAME=VALUE */
	size_t n_env;
	int64_t boot_limit_s, limit_s; /* of silence */
	const char *console_path;      /* NULL: not kept */

	int port, console, console_file, signals, process;
	pid_t pid;
	int64_t deadline_ns; /* moves with each sign of progress */
	int64_t beat_ns;     /* when the next heartbeat is due */
	bool started;
	struct buf in;      /* bytes of the port: head and rest of the current frame */
	struct buf out;     /* strings for the machine */
	size_t pending;     /* bytes at the front of @in that go to @pending_fd */
	int pending_fd;     /* 1, 2 */
	struct buf tail;    /* end of the console */
	long console_bytes; /* in the file */
	int code;           /* exit code, -1 while the machine runs */
};

static void end(struct lab *l, int code)
{
	if (l->code < 0)
		l->code = code;
}

/* One line about the lab, not the command. */
static void complain(struct lab *l, int code, const char *text)
{
	fprintf(stderr, "kvm-lab: %s\n", text);
	end(l, code);
}

/* Something has come, in the state the machine is in: it may be silent again for as long. */
static void note_progress(struct lab *l)
{
	l->deadline_ns =
		clock_monotonic_ns() + (l->started ? l->limit_s : l->boot_limit_s) * NS_PER_SEC;
}

static void show_console(const struct lab *l)
{
	const char *s = buf_data(&l->tail), *stop = s + buf_len(&l->tail);

	while (s && s < stop) {
		const char *eol = memchr(s, '\n', (size_t)(stop - s));
		int len = (int)((eol ? eol : stop) - s);
		fputs("kvm-lab: console: ", stderr);
		for (int i = 0; i < len; i++)
			if ((unsigned char)s[i] >= ' ' && s[i] != 0x7f)
				fputc(s[i], stderr);
		fputc('\n', stderr);
		s += len + 1;
	}
}

static int keep_console(struct lab *l, const char *mem, size_t len)
{
	static const char cut[] = "\n[cut here: the console is longer than this file may be]\n";
	int r;

	if (l->console_file < 0)
		return 0;
	if (l->console_bytes + (long)len > CONSOLE_FILE_MAX) {
		r = fd_write_all(l->console_file, cut, sizeof(cut) - 1);
		fd_replace(&l->console_file, -EBADF);
		return r;
	}
	l->console_bytes += (long)len;
	return fd_write_all(l->console_file, mem, len);
}

/* Yields false once the console has nothing more. */
static bool read_console(struct lab *l)
{
	char mem[CONSOLE_TAIL];
	ssize_t n = read(l->console, mem, sizeof(mem));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	if (!l->started)
		note_progress(l);
	if (buf_room(&l->tail) < (size_t)n)
		buf_consume(&l->tail, (size_t)n - buf_room(&l->tail));
	if (buf_append(&l->tail, mem, (size_t)n) < 0 || keep_console(l, mem, (size_t)n) < 0)
		complain(l, CODE_LAB_FAILED, "console: cannot keep it: is the file system full?");
	return true;
}

static void machine_died(struct lab *l)
{
	struct pollfd p = { .fd = l->console, .events = POLLIN };

	while (poll(&p, 1, 0) > 0 && read_console(l))
		;
	complain(l, CODE_LAB_FAILED,
		 l->started ? "the machine died before the command ended; its console ends with:"
			    : "the machine died while it booted; its console ends with:");
	show_console(l);
}

/* A frame without output; its bytes are at the front of l->in. */
static void handle_event(struct lab *l, const struct lab_frame *f)
{
	int32_t code;

	if (f->kind == LAB_STARTED && f->len == 0) {
		l->started = true;
		note_progress(l);
	} else if (f->kind == LAB_EXIT && f->len == sizeof(code)) {
		memcpy(&code, buf_data(&l->in), sizeof(code));
		end(l, code & 0xff);
	} else {
		complain(l, CODE_LAB_FAILED,
			 "the machine sent nonsense: rebuild the lab's programs");
	}
	buf_consume(&l->in, f->len);
}

/* Looks at the bytes that have come until a frame is incomplete or must be written out. */
static void handle_input(struct lab *l)
{
	struct lab_frame f;

	while (l->code < 0 && l->pending == 0 && buf_len(&l->in) >= sizeof(f)) {
		memcpy(&f, buf_data(&l->in), sizeof(f));
		if (f.len > LAB_FRAME_MAX) {
			complain(l, CODE_LAB_FAILED, "the machine sent a frame beyond the limit");
			return;
		}
		if (buf_len(&l->in) < sizeof(f) + f.len)
			return;
		buf_consume(&l->in, sizeof(f));
		if (f.kind == LAB_STDOUT || f.kind == LAB_STDERR) {
			l->pending_fd = f.kind == LAB_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
			l->pending = f.len;
		} else {
			handle_event(l, &f);
		}
	}
}

static void read_port(struct lab *l)
{
	char mem[sizeof(struct lab_frame) + LAB_FRAME_MAX];
	size_t room = MIN(sizeof(mem), buf_room(&l->in));
	ssize_t n = read(l->port, mem, room);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		machine_died(l);
		return;
	}
	if (buf_append(&l->in, mem, (size_t)n) < 0)
		complain(l, CODE_LAB_FAILED, "out of memory");
	handle_input(l);
}

/* Writes a piece that cannot block. A reader that has gone away ends the machine. */
static void write_pending(struct lab *l)
{
	ssize_t n = write(l->pending_fd, buf_data(&l->in), MIN(l->pending, (size_t)WRITE_MAX));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		if (errno == EPIPE)
			end(l, 128 + SIGPIPE);
		else
			complain(l, CODE_LAB_FAILED, "cannot write the command's output");
		return;
	}
	buf_consume(&l->in, (size_t)n);
	l->pending -= (size_t)n;
	note_progress(l);
	handle_input(l);
}

static void write_spec(struct lab *l)
{
	ssize_t n = send(l->port, buf_data(&l->out), buf_len(&l->out), MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		buf_consume(&l->out, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR)
		machine_died(l);
}

/* A full socket is no matter: then an interrupt is on its way. */
static void send_beat(struct lab *l)
{
	int64_t now = clock_monotonic_ns();

	if (!l->started || buf_len(&l->out) > 0 || now < l->beat_ns)
		return;
	l->beat_ns = now + LAB_BEAT_MS * NS_PER_MS;
	(void)!send(l->port, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void handle_signal(struct lab *l)
{
	struct signalfd_siginfo info;

	if (read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		end(l, 128 + (int)info.ssi_signo);
}

static void time_is_up(struct lab *l)
{
	if (!l->started) {
		complain(l, CODE_LAB_FAILED,
			 "the machine did not come up in time; its console ends with:");
		show_console(l);
		return;
	}
	fprintf(stderr, "kvm-lab: ended after %jd s without output (--limit): %s\n",
		(intmax_t)l->limit_s, l->command[0]);
	end(l, CODE_LIMIT);
}

static int supervise(struct lab *l)
{
	while (l->code < 0) {
		short port_events = (short)((l->pending == 0 ? POLLIN : 0) |
					    (buf_len(&l->out) > 0 ? POLLOUT : 0));
		struct pollfd p[] = {
			{ .fd = l->port, .events = port_events },
			{ .fd = l->console, .events = POLLIN },
			{ .fd = l->signals, .events = POLLIN },
			{ .fd = l->process, .events = POLLIN },
			{ .fd = l->pending > 0 ? l->pending_fd : -1, .events = POLLOUT },
		};
		int64_t left_ms = (l->deadline_ns - clock_monotonic_ns()) / NS_PER_MS + 1;

		if (left_ms <= 0) {
			time_is_up(l);
			break;
		}
		send_beat(l);
		if (poll(p, ARRAY_SIZE(p), (int)MIN(left_ms, LAB_BEAT_MS)) < 0 && errno != EINTR)
			return -errno;
		if (p[1].revents && !read_console(l))
			fd_replace(&l->console, -EBADF);
		if (p[2].revents)
			handle_signal(l);
		if (p[4].revents)
			write_pending(l);
		if (l->code < 0 && (p[0].revents & POLLOUT))
			write_spec(l);
		if (l->code < 0 && l->pending == 0 && (p[0].revents & (POLLIN | POLLHUP | POLLERR)))
			read_port(l);
		else if (l->code < 0 && l->pending == 0 && p[3].revents)
			machine_died(l);
	}
	return 0;
}

static int add_string(struct lab *l, const char *s)
{
	return buf_append(&l->out, s, strlen(s) + 1);
}

/* Packs the command for the machine. -EMSGSIZE, -E2BIG if it is too long. */
static int make_spec(struct lab *l)
{
	struct lab_spec head = { 0 };
	char dir[PATH_MAX];
	int r;

	if (!getcwd(dir, sizeof(dir)))
		return -errno;
	while (l->command[head.n_words])
		head.n_words++;
	if (head.n_words > LAB_STRINGS_MAX || l->n_env > LAB_STRINGS_MAX)
		return -E2BIG;
	head.n_bytes = (uint32_t)strlen(dir) + 1;
	for (uint32_t i = 0; i < head.n_words; i++)
		head.n_bytes += (uint32_t)strlen(l->command[i]) + 1;
	for (size_t i = 0; i < l->n_env; i++)
		head.n_bytes += (uint32_t)strlen(l->env[i]) + 1;
	if ((r = buf_append(&l->out, &head, sizeof(head))) < 0 || (r = add_string(l, dir)) < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < head.n_words; i++)
		r = add_string(l, l->command[i]);
	for (size_t i = 0; r == 0 && i < l->n_env; i++)
		r = add_string(l, l->env[i]);
	return r;
}

static int start_machine(struct lab *l, struct err *e)
{
	int port[2], console[2];
	struct spawn_plan plan = { .program = l->qemu[0],
				   .argv = l->qemu,
				   .die_with_parent = true,
				   .new_session = true,
				   .no_new_privs = true };
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, port) < 0 ||
	    pipe2(console, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "pipes to QEMU");
	l->port = port[0];
	l->console = console[0];
	if ((r = spawn_plan_fd(&plan, console[1], 1)) < 0 ||
	    (r = spawn_plan_fd(&plan, console[1], 2)) < 0 ||
	    (r = spawn_plan_fd(&plan, port[1], PORT_FD)) < 0 ||
	    (r = fd_set_nonblock(l->port, true)) < 0)
		return err_sys(e, r, "pipes to QEMU");
	r = spawn(&plan, &l->pid, &l->process);
	fd_close(port[1]);
	fd_close(console[1]);
	if (r < 0)
		return err_sys(e, r, "%s", l->qemu[0]);
	note_progress(l);
	return 0;
}

static int prepare(struct lab *l, struct err *e)
{
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	l->signals = loop_signal_fd(&set);
	if (l->signals < 0)
		return err_sys(e, l->signals, "signalfd");
	signal(SIGPIPE, SIG_IGN);
	if (l->console_path) {
		l->console_file =
			open(l->console_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (l->console_file < 0)
			return err_sys(e, -errno, "--keep-console=%s", l->console_path);
	}
	buf_init(&l->in, (sizeof(struct lab_frame) + LAB_FRAME_MAX) * (size_t)2);
	buf_init(&l->out, sizeof(struct lab_spec) + LAB_SPEC_MAX);
	buf_init(&l->tail, CONSOLE_TAIL);
	if ((r = make_spec(l)) < 0)
		return err_sys(e, r, "command and environment of more than %u bytes or %d strings",
			       LAB_SPEC_MAX, LAB_STRINGS_MAX);
	return 0;
}

static int run(struct lab *l, struct err *e)
{
	int r = prepare(l, e);

	if (r < 0 || (r = start_machine(l, e)) < 0)
		return r;
	if ((r = supervise(l)) < 0)
		err_sys(e, r, "poll");
	kill(l->pid, SIGKILL);
	spawn_wait(l->pid, NULL);
	/* The console's last bytes go into the file. */
	while (l->console >= 0 && read_console(l))
		;
	return r;
}

/* Dies with its caller, which may have died already: then nobody waits for us. */
static void die_with(pid_t caller)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != caller)
		raise(SIGKILL);
}

static bool parse_number(const char *s, int64_t *ret)
{
	uint64_t value;

	if (num_parse_u64(s, SECONDS_MAX, &value) != 0 || value == 0)
		return false;
	*ret = (int64_t)value;
	return true;
}

static bool parse(struct lab *l, int argc, char **argv, int64_t *ret_caller)
{
	static const struct option options[] = {
		{ "boot-limit", required_argument, NULL, 'b' },
		{ "caller", required_argument, NULL, 'p' },
		{ "env", required_argument, NULL, 'e' },
		{ "keep-console", required_argument, NULL, 'c' },
		{ "limit", required_argument, NULL, 'l' },
		{ 0 },
	};
	char **env = calloc((size_t)argc, sizeof(*env));
	bool ok = env != NULL;

	for (int c; ok && (c = getopt_long(argc, argv, "+", options, NULL)) != -1;) {
		if (c == 'e')
			env[l->n_env++] = optarg;
		else if (c == 'c')
			l->console_path = optarg;
		else
			ok = c != '?' && parse_number(optarg, c == 'b'   ? &l->boot_limit_s
							      : c == 'l' ? &l->limit_s
									 : ret_caller);
	}
	l->env = env;
	l->qemu = argv + optind;
	for (int i = optind; ok && i < argc; i++) {
		if (strcmp(argv[i], "--") != 0)
			continue;
		argv[i] = NULL;
		l->command = argv + i + 1;
		break;
	}
	return ok && l->command && l->command[0] && l->qemu[0];
}

int main(int argc, char **argv)
{
	struct lab l = { .boot_limit_s = 120,
			 .limit_s = 600,
			 .port = -EBADF,
			 .console = -EBADF,
			 .console_file = -EBADF,
			 .code = -1 };
	struct err e = ERR_INIT;
	int64_t caller = getppid();

	if (!parse(&l, argc, argv, &caller)) {
		fprintf(stderr, "kvm-lab-host: called by tests/kvm-lab/run only\n");
		return CODE_LAB_FAILED;
	}
	die_with((pid_t)caller);
	if (run(&l, &e) < 0) {
		fprintf(stderr, "kvm-lab: %s\n", e.text);
		return CODE_LAB_FAILED;
	}
	return l.code;
}
