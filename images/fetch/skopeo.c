/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the child's standard output and error output are pipes, its end is seen on a
 * pidfd, and every TICK_MS we look how far it is. Whatever goes wrong on our side is kept in
 * job.result and ends the waiting; then the child's whole session is killed, so that helpers which
 * it may have started (for credentials, for signatures) end with it. After an end of its own, what
 * is still in the pipes is read; a helper that keeps them open is not waited for.
 */
#include "images/fetch/skopeo.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/fetch/skopeo_args.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"

#define TICK_MS      200
#define READ_CHUNK   4096
#define PIPE_CHUNKS  17 /* of a pipe's 64 KiB, and the end of file */
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* One of the child's pipes. */
struct stream {
	int fd; /* our end; -EBADF behind the end of the file */
	struct buf *to;
	bool keep_end; /* forget the beginning instead of failing */
};

struct job {
	const struct skopeo_run *run;
	struct err *e;
	struct stream out, log;
	pid_t pid; /* 0 while there is none */
	int pidfd;
	int result; /* the first failure */
	uint64_t progress;
	int64_t progress_ns; /* when it last grew */
};

static void give_up(struct job *j, int result)
{
	if (j->result == 0)
		j->result = result;
}

/* Takes @len bytes that the child wrote. */
static int skopeo_take(struct job *j, struct stream *s, const char *data, size_t len)
{
	if (s->keep_end && len > buf_room(s->to))
		buf_consume(s->to, len - buf_room(s->to));
	int r = buf_append(s->to, data, len);
	if (r == -EMSGSIZE)
		return err_set(j->e, -EFBIG, "%s prints more than the %zu bytes allowed",
			       j->run->args->v[0], s->to->max);
	return r < 0 ? err_set(j->e, r, "out of memory") : 0;
}

/*
 * Reads what is there now: at most what a pipe holds, so that an endless writer does not keep us
 * here.
 */
static void skopeo_drain(struct job *j, struct stream *s)
{
	char chunk[READ_CHUNK];
	for (int i = 0; i < PIPE_CHUNKS && s->fd >= 0 && j->result == 0; i++) {
		ssize_t n = read(s->fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n > 0)
			give_up(j, skopeo_take(j, s, chunk, (size_t)n));
		else
			fd_replace(&s->fd, -EBADF);
	}
}

/* Asks how far the child is. */
static void skopeo_look(struct job *j)
{
	int64_t now = clock_monotonic_ns();
	uint64_t progress = j->progress;
	int r = j->run->tick ? j->run->tick(j->run->ctx, &progress, j->e) : 0;
	if (r < 0) {
		give_up(j, r);
		return;
	}
	if (progress > j->progress)
		j->progress_ns = now;
	j->progress = progress;
	if (j->run->stall_ms > 0 && now - j->progress_ns > j->run->stall_ms * NS_PER_MS)
		give_up(j, SKOPEO_E_STALLED);
}

/* Makes the pipe of @s, whose other end, *ret, is the caller's. */
static int open_stream(struct stream *s, int *ret)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	s->fd = fds[0];
	*ret = fds[1];
	return fd_set_nonblock(s->fd, true);
}

/* A file without a name that holds the credentials, for reading. The descriptor or -errno. */
static int open_auth(const struct buf *auth)
{
	static const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	cleanup_fd int fd = memfd_create("husk-auth", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int r = fd_write_all(fd, buf_data(auth), buf_len(auth));
	if (r == 0 && fcntl(fd, F_ADD_SEALS, seals) < 0)
		r = -errno;
	return r < 0 ? r : TAKE_FD(fd);
}

static int plan_auth(const struct skopeo_run *run, struct spawn_plan *plan, int *ret)
{
	if (!run->auth)
		return 0;
	*ret = open_auth(run->auth);
	return *ret < 0 ? *ret : spawn_plan_fd(plan, *ret, SKOPEO_AUTH_FD);
}

/*
 * No file gets larger than @file_max, and nobody gets an image of the memory that has the
 * credentials. The child runs already, but it has not come as far as to connect to somebody.
 */
static int skopeo_limit(pid_t pid, uint64_t file_max)
{
	const struct rlimit none = { 0, 0 }, file = { file_max, file_max };
	if (prlimit(pid, RLIMIT_CORE, &none, NULL) < 0)
		return -errno;
	if (file_max > 0 && prlimit(pid, RLIMIT_FSIZE, &file, NULL) < 0)
		return -errno;
	return 0;
}

static int skopeo_start(struct job *j, const char *program)
{
	cleanup_fd int out = -EBADF;
	cleanup_fd int log = -EBADF;
	cleanup_fd int auth = -EBADF;
	cleanup_strv struct strv env;
	struct spawn_plan plan = { .program = program,
				   .argv = j->run->args->v,
				   .change_dir = j->run->dir_fd >= 0,
				   .dir_fd = j->run->dir_fd,
				   .die_with_parent = true,
				   .new_session = true,
				   .no_new_privs = true };
	char *nothing[] = { NULL };
	strv_init(&env, SKOPEO_ENV_MAX);
	int r = skopeo_env(environ, &env);
	plan.envp = env.v ? env.v : nothing;
	if (r == 0)
		r = open_stream(&j->out, &out);
	if (r == 0)
		r = open_stream(&j->log, &log);
	if (r == 0)
		r = spawn_plan_fd(&plan, out, STDOUT_FILENO);
	if (r == 0)
		r = spawn_plan_fd(&plan, log, STDERR_FILENO);
	if (r == 0)
		r = plan_auth(j->run, &plan, &auth);
	if (r == 0)
		r = spawn(&plan, &j->pid, &j->pidfd);
	return r < 0 ? r : skopeo_limit(j->pid, j->run->file_max);
}

/* Until the child ends, or there is a reason to end it. 0 or -errno. */
static int skopeo_watch(struct job *j)
{
	int64_t look_ns = 0; /* at once */
	j->progress_ns = clock_monotonic_ns();
	while (j->result == 0) {
		struct pollfd fds[] = { { j->pidfd, POLLIN, 0 },
					{ j->out.fd, POLLIN, 0 },
					{ j->log.fd, POLLIN, 0 } };
		if (clock_monotonic_ns() >= look_ns) {
			skopeo_look(j);
			look_ns = clock_monotonic_ns() + TICK_MS * NS_PER_MS;
		}
		if (poll(fds, ARRAY_SIZE(fds), TICK_MS) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents)
			return 0;
		if (fds[1].revents)
			skopeo_drain(j, &j->out);
		if (fds[2].revents)
			skopeo_drain(j, &j->log);
	}
	return 0;
}

/* What the end of the child means. */
static int skopeo_judge(const struct job *j, int status)
{
	const char *name = j->run->args->v[0];
	if (WIFSIGNALED(status))
		return err_set(j->e, -EIO, "%s was killed by signal %d (%s)", name,
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status) == 0 ? 0 : SKOPEO_E_FAILED;
}

static int run_started(struct job *j)
{
	int status = 0;
	int r = skopeo_watch(j);
	if (r < 0)
		give_up(j, err_sys(j->e, r, "cannot wait for %s", j->run->args->v[0]));
	skopeo_drain(j, &j->out);
	skopeo_drain(j, &j->log);
	if (j->result == 0)
		skopeo_look(j);
	kill(-j->pid, SIGKILL); /* and who is left of its session */
	r = spawn_wait(j->pid, &status);
	if (j->result != 0)
		return j->result;
	return r < 0 ? err_sys(j->e, r, "cannot wait for %s", j->run->args->v[0])
		     : skopeo_judge(j, status);
}

static void job_deinit(struct job *j)
{
	fd_close(j->out.fd);
	fd_close(j->log.fd);
	fd_close(j->pidfd);
}

static int find_program(const char *name, char *out, size_t size, struct err *e)
{
	const char *path = getenv("PATH");
	int r = path_find_program(name, path ? path : DEFAULT_PATH, out, size);
	if (r == -ENOENT)
		return err_set(e, r, "%s is not installed, or not in PATH (install the package %s)",
			       name, name);
	return r < 0 ? err_sys(e, r, "cannot find the program %s", name) : 0;
}

int skopeo_run(const struct skopeo_run *run, struct buf *out, struct buf *log, struct err *e)
{
	char program[PATH_MAX];
	const char *name = run->args->v[0];
	CLEANUP(job_deinit)
	struct job j = { .run = run,
			 .e = e,
			 .out = { -EBADF, out, false },
			 .log = { -EBADF, log, true },
			 .pidfd = -EBADF };
	int r = find_program(name, program, sizeof(program), e);
	if (r < 0)
		return r;
	r = skopeo_start(&j, program);
	if (r < 0 && j.pid == 0)
		return err_sys(e, r, "cannot start %s", name);
	if (r < 0)
		give_up(&j, err_sys(e, r, "cannot limit %s", name));
	return run_started(&j);
}
