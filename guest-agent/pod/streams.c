/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/pod/streams.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/os/fd.h"

void streams_init(struct streams *io)
{
	io->devpts_fd = -EBADF;
	for (int i = 0; i < 3; i++)
		io->child_fds[i] = -EBADF;
	for (int i = 0; i < AGENT_STREAM_COUNT_; i++)
		stream_init(&io->streams[i]);
}

void streams_close_child_side(struct streams *io)
{
	for (int i = 0; i < 3; i++)
		fd_replace(&io->child_fds[i], -EBADF);
	fd_replace(&io->devpts_fd, -EBADF);
}

void streams_deinit(struct streams *io)
{
	streams_close_child_side(io);
	for (int i = 0; i < AGENT_STREAM_COUNT_; i++)
		stream_deinit(&io->streams[i]);
}

/* A pipe between stream @kind and descriptor @target of the process. 0 or -errno. */
static int open_pipe(struct streams *io, struct loop *loop, enum agent_stream kind, int target)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	bool to_app = kind == AGENT_STREAM_STDIN;
	int ours = fds[to_app ? 1 : 0];
	io->child_fds[target] = fds[to_app ? 0 : 1];
	fcntl(ours, F_SETPIPE_SZ, STREAM_PIPE_SIZE); /* the default size works, only slower */
	stream_open(&io->streams[kind], loop, kind, ours);
	return fd_set_nonblock(ours, true);
}

static int open_null(struct streams *io, int target)
{
	io->child_fds[target] = open("/dev/null", (target == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	return io->child_fds[target] < 0 ? -errno : 0;
}

static int open_pipes(struct streams *io, struct loop *loop, const struct agent_process *p)
{
	const bool wanted[] = { p->with_stdin, !p->null_stdout, !p->null_stderr };
	static const enum agent_stream kinds[] = { AGENT_STREAM_STDIN, AGENT_STREAM_STDOUT,
						   AGENT_STREAM_STDERR };
	int r = 0;
	for (int i = 0; r == 0 && i < 3; i++)
		r = wanted[i] ? open_pipe(io, loop, kinds[i], i) : open_null(io, i);
	return r;
}

void streams_watch_keys(struct streams *io, stream_key_fn fn, void *ctx)
{
	struct stream *tty = &io->streams[AGENT_STREAM_TTY];
	tty->on_key = fn;
	tty->key_ctx = ctx;
}

void streams_keep(struct streams *io)
{
	for (int i = 0; i < AGENT_STREAM_COUNT_; i++)
		io->streams[i].keep = true;
}

/* A devpts instance of the app's own, not mounted anywhere yet. The descriptor or -errno. */
static int new_devpts(void)
{
	static const char *const options[][2] = {
		{ "ptmxmode", "0666" },
		{ "mode", "0620" },
		{ "gid", "5" },
	};
	cleanup_fd int fs = fsopen("devpts", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (fsconfig(fs, FSCONFIG_SET_STRING, options[i][0], options[i][1], 0) < 0)
			return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

static int set_size(int fd, int64_t rows, int64_t cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols };
	return ioctl(fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

static int open_terminal(struct streams *io, struct loop *loop, const struct agent_process *p,
			 int pts_fd)
{
	if (pts_fd < 0)
		pts_fd = io->devpts_fd = new_devpts();
	if (pts_fd < 0)
		return pts_fd;
	int master = openat(pts_fd, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (master < 0)
		return -errno;
	stream_open(&io->streams[AGENT_STREAM_TTY], loop, AGENT_STREAM_TTY, master);
	int unlock = 0;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	io->child_fds[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (io->child_fds[0] < 0)
		return -errno;
	for (int i = 1; i < 3; i++) {
		io->child_fds[i] = fcntl(io->child_fds[0], F_DUPFD_CLOEXEC, 3);
		if (io->child_fds[i] < 0)
			return -errno;
	}
	return set_size(master, p->rows, p->cols);
}

int streams_open(struct streams *io, struct loop *loop, const struct agent_process *p, int pts_fd)
{
	return p->with_tty ? open_terminal(io, loop, p, pts_fd) : open_pipes(io, loop, p);
}

bool streams_any_sending(const struct streams *io)
{
	for (size_t i = 0; i < AGENT_STREAM_COUNT_; i++)
		if (stream_is_sending(&io->streams[i]))
			return true;
	return false;
}

int streams_attach_check(const struct streams *io, enum agent_stream kind, const char *whom,
			 struct fault *f)
{
	const struct stream *stream = &io->streams[kind];
	const char *why = "was attached before";
	switch (stream->state) {
	case STREAM_WAITING:
		return 0;
	case STREAM_NONE:
		return fault_set(f, AGENT_E_STATE, "%s has no %s", whom, agent_stream_name(kind));
	case STREAM_ATTACHED:
		why = stream->keep ? "is attached by somebody else" : why;
		break;
	case STREAM_SENT:
	case STREAM_DONE:
		why = stream->keep ? "has ended" : why;
		break;
	}
	return fault_set(f, AGENT_E_STATE, "%s: %s %s", whom, agent_stream_name(kind), why);
}

int streams_resize(const struct streams *io, int64_t rows, int64_t cols, const char *whom,
		   struct fault *f)
{
	const struct stream *tty = &io->streams[AGENT_STREAM_TTY];
	if (tty->state == STREAM_NONE || tty->app_fd < 0)
		return fault_set(f, AGENT_E_STATE, "%s has no terminal", whom);
	int r = set_size(tty->app_fd, rows, cols);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "%s: terminal", whom) : 0;
}
