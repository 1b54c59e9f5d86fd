#include "guest-agent/app.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"

static void app_init(struct app *app)
{
	app->state = APP_WAITING;
	agent_app_add_init(&app->spec);
	app->process = LAUNCHED_INIT;
	app->hear_watch = LOOP_WATCH_INIT;
	app->devpts_fd = -EBADF;
	for (int i = 0; i < 3; i++)
		app->child_fds[i] = -EBADF;
	for (int i = 0; i < AGENT_STREAM_COUNT_; i++)
		stream_init(&app->streams[i]);
}

static void close_child_side(struct app *app)
{
	for (int i = 0; i < 3; i++)
		fd_replace(&app->child_fds[i], -EBADF);
	fd_replace(&app->devpts_fd, -EBADF);
}

void app_free(struct app *app)
{
	if (!app)
		return;
	close_child_side(app);
	loop_watch_remove(&app->hear_watch);
	launched_deinit(&app->process);
	for (int i = 0; i < AGENT_STREAM_COUNT_; i++)
		stream_deinit(&app->streams[i]);
	agent_app_add_deinit(&app->spec);
	free(app);
}

/* A pipe between stream @kind and descriptor @target of the app. 0 or -errno. */
static int open_pipe(struct app *app, struct loop *loop, enum agent_stream kind, int target)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	bool to_app = kind == AGENT_STREAM_STDIN;
	int ours = fds[to_app ? 1 : 0];
	app->child_fds[target] = fds[to_app ? 0 : 1];
	fcntl(ours, F_SETPIPE_SZ, STREAM_PIPE_SIZE); /* the default size works, only slower */
	stream_open(&app->streams[kind], loop, kind, ours);
	return fd_set_nonblock(ours, true);
}

static int open_pipes(struct app *app, struct loop *loop)
{
	int r = 0;
	if (app->spec.with_stdin) {
		r = open_pipe(app, loop, AGENT_STREAM_STDIN, 0);
	} else {
		app->child_fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		r = app->child_fds[0] < 0 ? -errno : 0;
	}
	if (r == 0)
		r = open_pipe(app, loop, AGENT_STREAM_STDOUT, 1);
	return r < 0 ? r : open_pipe(app, loop, AGENT_STREAM_STDERR, 2);
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

static int open_terminal(struct app *app, struct loop *loop)
{
	app->devpts_fd = new_devpts();
	if (app->devpts_fd < 0)
		return app->devpts_fd;
	int master = openat(app->devpts_fd, "ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (master < 0)
		return -errno;
	stream_open(&app->streams[AGENT_STREAM_TTY], loop, AGENT_STREAM_TTY, master);
	int unlock = 0;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	app->child_fds[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (app->child_fds[0] < 0)
		return -errno;
	for (int i = 1; i < 3; i++) {
		app->child_fds[i] = fcntl(app->child_fds[0], F_DUPFD_CLOEXEC, 3);
		if (app->child_fds[i] < 0)
			return -errno;
	}
	return set_size(master, app->spec.rows, app->spec.cols);
}

int app_new(struct loop *loop, struct agent_app_add *spec, struct app **ret, struct fault *f)
{
	struct app *app = calloc(1, sizeof(*app));
	if (!app)
		return fault_set(f, AGENT_E_INTERNAL, "out of memory");
	app_init(app);
	app->spec = *spec;
	int r = spec->with_tty ? open_terminal(app, loop) : open_pipes(app, loop);
	agent_app_add_init(r < 0 ? &app->spec : spec); /* one of the two owns the lists */
	if (r < 0) {
		app_free(app);
		return fault_sys(f, AGENT_E_INTERNAL, r, "cannot open the streams of \"%s\"",
				 spec->app);
	}
	*ret = app;
	return 0;
}

int app_launch(struct app *app, struct loop *loop, const struct rootfs_config *rootfs,
	       const char *hostname, loop_watch_fn fn, void *ctx, struct fault *f)
{
	struct launch l = {
		.rootfs = rootfs,
		.hostname = hostname,
		.spec = &app->spec,
		.stdio = { app->child_fds[0], app->child_fds[1], app->child_fds[2] },
		.devpts_fd = app->devpts_fd,
	};
	int r = launch(&l, &app->process, f);
	if (r != 0)
		return r;
	close_child_side(app);
	agent_app_add_deinit(&app->spec);
	r = loop_watch_add(loop, &app->hear_watch, app->process.hear_fd, EPOLLIN, fn, ctx);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\"", app->spec.app);
	app->state = APP_ADDING;
	return 0;
}

int app_hear(struct app *app, struct fault *ret)
{
	int r = launch_hear(&app->process, ret);
	if (r == -EAGAIN)
		return r;
	if (r < 0)
		fault_set(ret, AGENT_E_INTERNAL, "interrupted");
	else if (ret->code == 0)
		app->state = APP_ADDED;
	loop_watch_remove(&app->hear_watch);
	return 0;
}

int app_release(struct app *app, struct fault *f)
{
	int r = app->process.pid == 0 ? -ESRCH : launch_release(&app->process);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "the process of app \"%s\"",
				 app->spec.app);
	return 0;
}

void app_reaped(struct app *app, int status)
{
	struct fault why = { 0 };
	app->process.pid = 0;
	if (app->state != APP_RUNNING)
		return;
	app->state = APP_EXITED;
	str_copy(app->exit.app, sizeof(app->exit.app), app->spec.app);
	app->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	app->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
	if (app->exit.code == LAUNCH_EXIT_CODE && launch_hear(&app->process, &why) == 0)
		str_copy(app->exit.message, sizeof(app->exit.message), why.text);
	launched_deinit(&app->process);
}

int app_resize(const struct app *app, int64_t rows, int64_t cols, struct fault *f)
{
	const struct stream *tty = &app->streams[AGENT_STREAM_TTY];
	if (!app->spec.with_tty || tty->app_fd < 0)
		return fault_set(f, AGENT_E_STATE, "app \"%s\" has no terminal", app->spec.app);
	int r = set_size(tty->app_fd, rows, cols);
	if (r < 0)
		return fault_sys(f, AGENT_E_INTERNAL, r, "app \"%s\": terminal", app->spec.app);
	return 0;
}
