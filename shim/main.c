/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerd-shim-husk-v2. containerd runs `start` in the directory of a container's bundle: that
 * leaves a server in the background, says its address and ends. It runs `delete` when the server
 * has ended, whatever way.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/uuid.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "shim/args.h"
#include "shim/job/oom_score.h"
#include "shim/listener.h"
#include "shim/task/task.h"
#include "shim/task/task_int.h"

#define ADDRESS_FILE    "address"
#define LOG_FIFO        "log"
#define EVENTS_VARIABLE "TTRPC_ADDRESS"
#define CLEAR_WAIT_MS   2500 /* containerd waits five seconds for all of `delete` */

/* The directory of sockets, which containerd makes, too. */
static int make_socket_dir(struct err *e)
{
	static const char *const dirs[] = { "/run/containerd", LISTENER_DIR };
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdir(dirs[i], 0711) < 0 && errno != EEXIST)
			return err_sys(e, -errno, "%s", dirs[i]);
	return 0;
}

/* ---- the server ---- */

/*
 * Errors go to containerd's log from now on, without waiting for somebody to read it. If memory is
 * short the shim is killed before containerd.
 */
static int become_server(struct err *e)
{
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup_fd int log = open(LOG_FIFO, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	int err = log < 0 ? null : log;
	(void)oom_score_raise(1); /* if that may not be, it is as likely as containerd */
	if (null < 0 || setsid() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
	    dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(err, STDERR_FILENO) < 0)
		return err_sys(e, -errno, "cannot become a server");
	return 0;
}

static void on_signal(void *ctx, uint32_t events)
{
	bool *told_to_end = ctx;
	(void)events;
	*told_to_end = true;
}

static int serve(const struct shim_args *a, int listen_fd, struct err *e)
{
	struct loop loop;
	struct publisher *publisher = NULL;
	struct shim *s = NULL;
	struct loop_watch watch = LOOP_WATCH_INIT;
	bool told_to_end = false;
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	int r = loop_init(&loop);
	if (r < 0)
		return err_sys(e, r, "event loop");
	cleanup_fd int signal_fd = loop_signal_fd(&signals);
	r = signal_fd < 0
		    ? signal_fd
		    : loop_watch_add(&loop, &watch, signal_fd, EPOLLIN, on_signal, &told_to_end);
	if (r == 0)
		r = publisher_new(&loop, getenv(EVENTS_VARIABLE), a->ns, &publisher);
	const struct shim_setup setup = {
		.loop = &loop,
		.listen_fd = listen_fd,
		.publisher = publisher,
		.ns = a->ns,
	};
	r = r < 0 ? err_sys(e, r, "server") : shim_new(&setup, &s, e);
	while (r == 0 && !shim_is_over(s) && !told_to_end)
		r = shim_turn(s);
	shim_free(s);
	publisher_free(publisher);
	loop_watch_remove(&watch);
	loop_deinit(&loop);
	return r;
}

/* ---- actions ---- */

/* @ready: where to say, by a byte, that whoever connects is served. */
static int run_server(const struct shim_args *a, int listen_fd, const char *path, int ready)
{
	struct err e = ERR_INIT;
	int r = become_server(&e);
	if (r == 0) {
		r = listener_claim(listen_fd);
		if (r == 0)
			r = fd_write_all(ready, "", 1);
		r = r < 0 ? err_sys(&e, r, "server") : 0;
	}
	fd_close(ready);
	if (r == 0)
		r = serve(a, listen_fd, &e);
	unlink(path);
	if (r < 0)
		fprintf(stderr, "husk: %s\n", e.text);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* The server in the background. 0 when it listens. */
static int start_server(const struct shim_args *a, int listen_fd, const char *path, struct err *e)
{
	int ready[2];
	char byte;
	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		fd_close(ready[0]);
		_exit(run_server(a, listen_fd, path, ready[1]));
	}
	int r = pid < 0 ? err_sys(e, -errno, "cannot create a process") : 0;
	fd_close(ready[1]);
	if (r == 0 && read(ready[0], &byte, 1) != 1)
		r = err_set(e, -EIO, "the server has ended; containerd's log says why");
	fd_close(ready[0]);
	return r;
}

static int start(const struct shim_args *a, struct err *e)
{
	char path[PATH_MAX], address[PATH_MAX + sizeof("unix://")];
	int r = listener_path(a->address, a->ns, a->id, path);
	if (r < 0)
		return err_sys(e, r, "address");
	r = make_socket_dir(e);
	cleanup_fd int fd = r < 0 ? r : listener_open(path, e);
	if (fd < 0)
		return fd;
	snprintf(address, sizeof(address), "unix://%s", path);
	r = file_save_path(ADDRESS_FILE, address, strlen(address), 0644);
	r = r < 0 ? err_sys(e, r, ADDRESS_FILE) : start_server(a, fd, path, e);
	if (r < 0)
		unlink(path);
	else
		fputs(address, stdout);
	return r;
}

/* The content of a file of the bundle, the caller's; NULL if there is none. */
static char *read_text(const char *bundle, const char *name)
{
	char path[PATH_MAX], *text = NULL;
	size_t len = 0;
	int n = snprintf(path, sizeof(path), "%s/%s", bundle, name);
	bool there = n > 0 && (size_t)n < sizeof(path) &&
		     file_read_at(AT_FDCWD, path, PATH_MAX, &text, &len) == 0;
	return there ? text : NULL;
}

/* What a container has left, which may be nothing. */
static void clear_away(const char *bundle)
{
	cleanup_free char *uuid = read_text(bundle, BUNDLE_POD_FILE);
	cleanup_free char *config = read_text(bundle, BUNDLE_CONFIG_FILE);
	const struct husk_place place = { .config = config };
	struct err e = ERR_INIT;
	if (uuid && uuid_is_valid(uuid) && husk_end_pod(&place, uuid, &e) < 0)
		fprintf(stderr, "husk: %s\n", e.text);
}

/* What the child has said so far, to where containerd reads errors. */
static void pass_on_errors(int fd)
{
	char text[ERR_TEXT_MAX];
	ssize_t n = read(fd, text, sizeof(text));
	if (n > 0)
		fd_write_all(STDERR_FILENO, text, (size_t)n);
}

/*
 * Clears away in a child, which goes on if it takes longer than containerd waits for us, and has
 * none of our descriptors, of which that waits for the end.
 */
static void clear_away_in_time(const char *bundle)
{
	int ends[2] = { -EBADF, -EBADF };
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = null < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -1 : fork();
	if (pid == 0) {
		bool apart = setsid() >= 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR &&
			     dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
			     dup2(ends[1], STDERR_FILENO) >= 0;
		if (apart)
			clear_away(bundle);
		_exit(apart ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	fd_close(ends[1]);
	if (pid > 0) {
		struct pollfd p = { .fd = ends[0] }; /* hung up when the child has ended */
		poll(&p, 1, CLEAR_WAIT_MS);
		pass_on_errors(ends[0]);
	} else {
		fputs("husk: cannot create a process; husk list shows what is left\n", stderr);
	}
	fd_close(ends[0]);
}

static int delete (const struct shim_args *a, struct err *e)
{
	char path[PATH_MAX];
	uint8_t bytes[128];
	Task__Timestamp at = proto_timestamp(clock_realtime_ns());
	Task__DeleteResponse m;
	task__delete_response__init(&m);
	/* containerd may have given up on one that goes on, and makes what is cleared away here. */
	if (listener_path(a->address, a->ns, a->id, path) == 0)
		listener_end(path);
	clear_away_in_time(*a->bundle ? a->bundle : ".");
	m.exit_status = 128 + SIGKILL;
	m.exited_at = &at;
	size_t len = task__delete_response__pack(&m, bytes);
	int r = fd_write_all(STDOUT_FILENO, bytes, len);
	return r < 0 ? err_sys(e, r, "standard output") : 0;
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	struct shim_args a;
	if (fd_fill_stdio() < 0)
		return EXIT_FAILURE;
	int r = argc > 0 ? shim_args_parse(argv + 1, &a, &e) : -EINVAL;
	if (r == 0 && a.action == SHIM_VERSION)
		printf("containerd-shim-husk-v2 %s\n", HUSK_VERSION);
	else if (r == 0)
		r = a.action == SHIM_START ? start(&a, &e) : delete (&a, &e);
	if (r < 0)
		fprintf(stderr, "containerd-shim-husk-v2: %s\n", e.text);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
