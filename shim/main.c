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
#include "lib/os/unix.h"
#include "shim/args.h"
#include "shim/job/oom_score.h"
#include "shim/listener.h"
#include "shim/task/task.h"
#include "shim/task/task_int.h"

#define ADDRESS_FILE    "address"
#define CONFIG_FILE     "config.json"
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

/* At @path, which is not there any more afterwards. */
static int serve(const struct shim_args *a, int listen_fd, const char *path, struct err *e)
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
	if (r < 0) {
		unlink(path);
		return err_sys(e, r, "event loop");
	}
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
	unlink(path); /* while this listens there: a successor may do so as soon as nobody does */
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
		r = serve(a, listen_fd, path, &e);
	else
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

/* Whose shim serves the container: the sandbox that it is to be in, or itself. In the bundle. */
static int find_group(const struct shim_args *a, char ret[OCI_SPEC_ID_MAX + 1], struct err *e)
{
	cleanup_free char *text = NULL;
	struct oci_spec spec;
	size_t len = 0;
	int r = file_read_at(AT_FDCWD, CONFIG_FILE, OCI_SPEC_SIZE_MAX, &text, &len);
	if (r < 0)
		return r == -EFBIG ? err_set(e, r, CONFIG_FILE ": larger than %zu MiB",
					     OCI_SPEC_SIZE_MAX >> 20)
				   : err_sys(e, r, CONFIG_FILE);
	oci_spec_init(&spec);
	r = oci_annotations_parse(text, len, &spec, e);
	if (r == 0 && str_copy(ret, OCI_SPEC_ID_MAX + 1, spec.sandbox_id ? spec.sandbox_id : a->id))
		r = err_set(e, -ENAMETOOLONG, "the ID is too long");
	oci_spec_deinit(&spec);
	return r;
}

/* A shim of its own at @path. */
static int start_own(const struct shim_args *a, const char *path, struct err *e)
{
	int r = make_socket_dir(e);
	cleanup_fd int fd = r < 0 ? r : listener_open(path, e);
	if (fd < 0)
		return fd;
	r = start_server(a, fd, path, e);
	if (r < 0)
		unlink(path);
	return r;
}

/* The shim at @path serves it. */
static int join(const char *path, const char *sandbox, struct err *e)
{
	cleanup_fd int fd = unix_connect(path);
	return fd < 0 ? err_sys(e, fd, "the shim of sandbox \"%.255s\" does not answer", sandbox)
		      : 0;
}

static int start(const struct shim_args *a, struct err *e)
{
	char group[OCI_SPEC_ID_MAX + 1], path[PATH_MAX], address[PATH_MAX + sizeof("unix://")];
	int r = find_group(a, group, e);
	if (r < 0)
		return r;
	r = listener_path(a->address, a->ns, group, path);
	if (r < 0)
		return err_sys(e, r, "address");
	snprintf(address, sizeof(address), "unix://%s", path);
	bool is_own = strcmp(group, a->id) == 0;
	r = is_own ? 0 : join(path, group, e);
	if (r < 0)
		return r;
	r = file_save_path(ADDRESS_FILE, address, strlen(address), 0644);
	if (r < 0)
		return err_sys(e, r, ADDRESS_FILE);
	r = is_own ? start_own(a, path, e) : 0;
	if (r == 0)
		fputs(address, stdout);
	return r;
}

/* The content of a file of the bundle, the caller's. 0 or -errno. */
static int read_text(const char *bundle, const char *name, char **ret)
{
	char path[PATH_MAX];
	size_t len = 0;
	int n = snprintf(path, sizeof(path), "%s/%s", bundle, name);
	return n < 0 || (size_t)n >= sizeof(path)
		       ? -ENAMETOOLONG
		       : file_read_at(AT_FDCWD, path, PATH_MAX, ret, &len);
}

/* What a container has left, which may be nothing. */
static int clear_away(const char *bundle, struct err *e)
{
	cleanup_free char *uuid = NULL, *app = NULL, *config = NULL, *data = NULL;
	int r = read_text(bundle, BUNDLE_POD_FILE, &uuid);
	if (r < 0 || !uuid_is_valid(uuid))
		return r == -ENOENT || r == 0 ? 0 : err_sys(e, r, BUNDLE_POD_FILE);
	r = read_text(bundle, BUNDLE_CONFIG_FILE, &config);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, BUNDLE_CONFIG_FILE);
	r = read_text(bundle, BUNDLE_DATA_FILE, &data);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, r, BUNDLE_DATA_FILE);
	r = read_text(bundle, BUNDLE_APP_FILE, &app);
	if (r < 0 && r != -ENOENT) /* it may not be its own pod */
		return err_sys(e, r, BUNDLE_APP_FILE);
	const struct husk_place place = { .config = config, .data = data };
	return app ? husk_remove_app(&place, uuid, app, e) : husk_end_pod(&place, uuid, e);
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
	struct err e = ERR_INIT;
	int ends[2] = { -EBADF, -EBADF };
	cleanup_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = null < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -1 : fork();
	if (pid == 0) {
		bool apart = setsid() >= 0 && signal(SIGPIPE, SIG_IGN) != SIG_ERR &&
			     dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
			     dup2(ends[1], STDERR_FILENO) >= 0;
		if (apart && clear_away(bundle, &e) < 0)
			fprintf(stderr, "husk: %s\n", e.text);
		_exit(EXIT_SUCCESS);
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
