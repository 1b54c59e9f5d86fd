/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: standard input is a file without a name that has the document already, so
 * nobody waits for a plugin that does not read; standard output and error output are pipes; the end
 * is seen on a pidfd. Whatever ends the waiting, the process group is killed before the plugin is
 * reaped, while its number cannot be another's. What is then still in the pipes is read, but not
 * waited for: a child of the plugin may keep them open.
 */
#include "stage1/net/cni/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/os/trusted.h"
#include "stage1/net/cni/result.h"

#define READ_CHUNK  4096
#define PIPE_CHUNKS 17 /* of a pipe's 64 KiB, and the end of the file */

struct job {
	const struct cni_plugin_run *run;
	struct err *e;
	int out_fd, log_fd; /* our ends; -EBADF behind the end of the file */
	struct buf *out;
	struct buf log;
	pid_t pid;
	int pidfd;
};

int cni_plugin_check(const char *path, struct err *e)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return err_sys(e, -errno, "\"%s\"", path);
	int r = trusted_path(path, geteuid(), e);
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IXUSR))
		return err_set(e, -EACCES, "\"%s\" is not an executable file", path);
	return 0;
}

int cni_plugin_find(const char *type, const struct strv *dirs, char *out, size_t size,
		    struct err *e)
{
	struct err passed_over = ERR_INIT;
	for (size_t i = 0; i < dirs->n; i++) {
		struct err why = ERR_INIT;
		int n = snprintf(out, size, "%s/%s", dirs->v[i], type);
		if (n < 0 || (size_t)n >= size)
			return err_set(e, -ENAMETOOLONG, "\"%s/%s\": this path is too long",
				       dirs->v[i], type);
		int r = cni_plugin_check(out, &why);
		if (r == 0 || r == -EPERM || r == -ELOOP)
			return r < 0 ? err_set(e, r, "%s", why.text) : 0;
		if (r == -EACCES && !passed_over.code)
			passed_over = why;
	}
	if (passed_over.code)
		return err_set(e, passed_over.code, "%s", passed_over.text);
	return err_set(e, -ENOENT,
		       "not found in %s (install CNI plugins: the package "
		       "containernetworking-plugins)",
		       dirs->n > 0 ? dirs->v[0] : "any directory");
}

/* Takes what a plugin printed. 0 or -errno and @e. */
static int take(struct job *j, struct buf *to, const char *data, size_t len)
{
	if (to == &j->log && len > buf_room(to))
		buf_consume(to, MIN(buf_len(to), len - buf_room(to)));
	if (to == &j->log && len > buf_room(to)) {
		data += len - buf_room(to);
		len = buf_room(to);
	}
	int r = buf_append(to, data, len);
	if (r == -EMSGSIZE)
		return err_set(j->e, -EFBIG, "prints more than %zu KiB", CNI_OUTPUT_MAX / 1024);
	return r < 0 ? err_set(j->e, r, "out of memory") : 0;
}

/* Reads what is there: at most what a pipe holds, so that an endless writer does not keep us. */
static int drain(struct job *j, int *fd, struct buf *to)
{
	char chunk[READ_CHUNK];
	for (int i = 0; i < PIPE_CHUNKS && *fd >= 0; i++) {
		ssize_t n = read(*fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0) {
			fd_replace(fd, -EBADF);
			return 0;
		}
		int r = take(j, to, chunk, (size_t)n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A file without a name, open for reading at its start, that has the document. */
static int open_input(const struct buf *input)
{
	cleanup_fd int fd = memfd_create("husk-cni", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int r = fd_write_at(fd, buf_data(input), buf_len(input), 0);
	return r < 0 ? r : TAKE_FD(fd);
}

/* A pipe whose reading end does not block. */
static int open_pipe(int *ret_read, int *ret_write)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = fds[0];
	*ret_write = fds[1];
	return fd_set_nonblock(fds[0], true);
}

static int start(struct job *j)
{
	cleanup_strv struct strv argv;
	cleanup_fd int in = open_input(j->run->input);
	cleanup_fd int out = -EBADF;
	cleanup_fd int log = -EBADF;
	cleanup_fd int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct spawn_plan plan = { .program = j->run->path,
				   .envp = j->run->env->v,
				   .change_dir = true,
				   .dir_fd = root,
				   .die_with_parent = true,
				   .new_session = true };
	int r = root < 0 ? -errno : in < 0 ? in : 0;
	strv_init(&argv, 1);
	if (r == 0)
		r = strv_add(&argv, j->run->type);
	plan.argv = argv.v;
	if (r == 0)
		r = open_pipe(&j->out_fd, &out);
	if (r == 0)
		r = open_pipe(&j->log_fd, &log);
	if (r == 0)
		r = spawn_plan_fd(&plan, in, STDIN_FILENO);
	if (r == 0)
		r = spawn_plan_fd(&plan, out, STDOUT_FILENO);
	if (r == 0)
		r = spawn_plan_fd(&plan, log, STDERR_FILENO);
	return r < 0 ? r : spawn(&plan, &j->pid, &j->pidfd);
}

/* Until the plugin has ended (0), or there is a reason to end it (-errno and @e). */
static int watch(struct job *j)
{
	int64_t deadline = clock_monotonic_ns() + j->run->timeout_ms * NS_PER_MS;
	for (;;) {
		struct pollfd fds[] = { { j->pidfd, POLLIN, 0 },
					{ j->out_fd, POLLIN, 0 },
					{ j->log_fd, POLLIN, 0 },
					{ j->run->cancel_fd, POLLIN, 0 } };
		int64_t left = deadline - clock_monotonic_ns();
		if (left <= 0)
			return err_set(j->e, -ETIMEDOUT, "does not end within %lld s",
				       (long long)(j->run->timeout_ms + 999) / 1000);
		int n = poll(fds, ARRAY_SIZE(fds), (int)(left / NS_PER_MS) + 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(j->e, -errno, "cannot wait for it");
		if (fds[3].revents)
			return err_set(j->e, -ECANCELED, "interrupted");
		int r = fds[1].revents ? drain(j, &j->out_fd, j->out) : 0;
		if (r == 0 && fds[2].revents)
			r = drain(j, &j->log_fd, &j->log);
		if (r < 0 || fds[0].revents)
			return r;
	}
}

/* The last line of the error output, printable; empty if there is none. */
static void last_line(const struct buf *log, char out[CNI_STDERR_MAX + 1])
{
	const char *data = buf_data(log);
	char line[CNI_STDERR_MAX + 1];
	size_t end = buf_len(log);
	while (end > 0 && strchr(" \t\r\n", data[end - 1]) && data[end - 1])
		end--;
	size_t begin = end;
	while (begin > 0 && data[begin - 1] != '\n')
		begin--;
	size_t len = 0;
	for (; begin < end; begin++)
		line[len++] = data[begin] ? data[begin] : '?';
	line[len] = '\0';
	str_make_printable(line);
	str_copy_text(out, CNI_STDERR_MAX + 1, line);
}

/* Adds to what the error says what the plugin has said last, which may be the reason. -errno. */
static int quote(const struct job *j)
{
	char line[CNI_STDERR_MAX + 1];
	struct err said = *j->e;
	last_line(&j->log, line);
	return *line && !strstr(said.text, line)
		       ? err_set(j->e, said.code, "%s: %s", said.text, line)
		       : said.code;
}

/* What the end of the plugin means: what it says of a failure itself comes first. */
static int judge(struct job *j, int status)
{
	char message[CNI_MESSAGE_MAX], line[CNI_STDERR_MAX + 1];
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		err_set(j->e, -EIO, "killed by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else if (cni_error_parse(buf_data(j->out), buf_len(j->out), message) == 0)
		err_set(j->e, -EIO, "%s", message);
	else {
		last_line(&j->log, line);
		return *line ? err_set(j->e, -EIO, "%s", line)
			     : err_set(j->e, -EIO, "exit code %d, and it does not say why",
				       WEXITSTATUS(status));
	}
	return quote(j);
}

static void job_deinit(struct job *j)
{
	fd_close(j->out_fd);
	fd_close(j->log_fd);
	fd_close(j->pidfd);
	buf_deinit(&j->log);
}

int cni_plugin_run(const struct cni_plugin_run *run, struct buf *out, struct err *e)
{
	CLEANUP(job_deinit)
	struct job j = { .run = run, .e = e, .out_fd = -EBADF, .log_fd = -EBADF, .pidfd = -EBADF };
	int status = 0;
	buf_init(&j.log, CNI_STDERR_MAX);
	j.out = out;
	int r = start(&j);
	if (r < 0)
		return err_sys(e, r, "cannot execute \"%s\"", run->path);
	r = watch(&j);
	kill(-j.pid, SIGKILL);
	int waited = spawn_wait(j.pid, &status);
	if (r == 0 && waited < 0)
		r = err_sys(e, waited, "cannot wait for it");
	if (r == 0)
		r = drain(&j, &j.out_fd, j.out);
	if (r == 0)
		r = drain(&j, &j.log_fd, &j.log);
	if (r == -ETIMEDOUT) {
		drain(&j, &j.log_fd, &j.log);
		quote(&j);
	}
	return r < 0 ? r : judge(&j, status);
}
