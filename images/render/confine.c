/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the child reports through a pipe: a fixed head, the text of its error, its
 * result. The parent believes none of it: lengths are checked, texts are cleaned by err_set(). A
 * pipe that ends early means that the child died, and waitpid(2) says of what.
 */
#include "images/render/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <iconv.h>
#include <langinfo.h>
#include <linux/capability.h>
#include <locale.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/sandbox.h"
#include "lib/os/spawn.h"

/* What the child sends first. */
struct head {
	int32_t code; /* 0 or -errno */
	uint32_t text_len;
	uint32_t result_len;
};

/* What the child does with a directory. */
enum dir_use {
	DIR_NONE, /* there is none */
	DIR_FILL,
	DIR_READ,
};

struct plan {
	confine_fn fn;
	void *ctx;
	const int *fds;
	size_t n_fds;
	int report; /* write end of the pipe */
	pid_t parent;
	size_t result_max;
	size_t memory_max;
	enum dir_use use;
	int dir_fd;
	int cancel_fd; /* for the parent, or -EBADF */
};

/*
 * What they are for: memory; reading layers; writing the image and the report; the tree's hash key.
 * glibc's qsort(3) asks sysinfo(2) how much memory there is.
 */
static const int allowed[] = {
	SCMP_SYS(brk),         SCMP_SYS(mmap),     SCMP_SYS(munmap),       SCMP_SYS(mremap),
	SCMP_SYS(madvise),     SCMP_SYS(mprotect), SCMP_SYS(futex),        SCMP_SYS(read),
	SCMP_SYS(pread64),     SCMP_SYS(write),    SCMP_SYS(pwrite64),     SCMP_SYS(ftruncate),
	SCMP_SYS(fstat),       SCMP_SYS(close),    SCMP_SYS(getrandom),    SCMP_SYS(clock_gettime),
	SCMP_SYS(exit_group),  SCMP_SYS(exit),     SCMP_SYS(rt_sigreturn), SCMP_SYS(newfstatat),
	SCMP_SYS(sched_yield), SCMP_SYS(sysinfo),
};

/* For filling a directory, besides. */
static const int allowed_in_dir[] = {
	SCMP_SYS(openat), SCMP_SYS(mkdirat),   SCMP_SYS(mknodat),   SCMP_SYS(linkat),
	SCMP_SYS(fchown), SCMP_SYS(symlinkat), SCMP_SYS(fchownat),  SCMP_SYS(fchmod),
	SCMP_SYS(umask),  SCMP_SYS(utimensat), SCMP_SYS(fsetxattr),
};

/* For reading one, besides. */
static const int allowed_from_dir[] = {
	SCMP_SYS(openat),   SCMP_SYS(getdents64), SCMP_SYS(lseek),     SCMP_SYS(fchdir),
	SCMP_SYS(readlink), SCMP_SYS(fstatfs),    SCMP_SYS(lgetxattr), SCMP_SYS(llistxattr),
};

static int limit_memory(size_t max)
{
	if (!CONFINE_HAS_MEMORY_LIMIT)
		return 0;
	struct rlimit limit;
	if (getrlimit(RLIMIT_DATA, &limit) < 0)
		return -errno;
	if (limit.rlim_cur > (rlim_t)max)
		limit.rlim_cur = (rlim_t)max;
	return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

/* Leaves the standard descriptors pointing nowhere and closes all but those of the plan. */
static int keep_descriptors(const struct plan *plan)
{
	int keep[CONFINE_FDS_MAX + 2];
	size_t n = 0;
	while (n < plan->n_fds) {
		keep[n] = plan->fds[n];
		n++;
	}
	keep[n++] = plan->report;
	if (plan->use != DIR_NONE)
		keep[n++] = plan->dir_fd;
	return fd_keep_only(keep, n);
}

/* What is kept of root's capabilities: for filling a directory, or for reading one. */
static const int kept_to_fill[] = { CAP_CHOWN, CAP_FOWNER, CAP_FSETID, CAP_MKNOD, CAP_SETFCAP };
static const int kept_to_read[] = { CAP_DAC_READ_SEARCH };

static int become_nobody(const struct plan *plan)
{
	size_t n = plan->use == DIR_READ ? ARRAY_SIZE(kept_to_read) : 0;
	if (geteuid() != 0)
		return 0;
	int r = sandbox_keep_bounding_set(kept_to_read, n); /* nobody may not */
	if (r < 0)
		return r;
	if (prctl(PR_SET_KEEPCAPS, n > 0, 0, 0, 0) < 0)
		return -errno;
	if (setgroups(0, NULL) < 0 || setresgid(CONFINE_UID, CONFINE_UID, CONFINE_UID) < 0 ||
	    setresuid(CONFINE_UID, CONFINE_UID, CONFINE_UID) < 0)
		return -errno;
	return 0;
}

/*
 * Names in archives are bytes: the C locale makes libarchive leave them alone. Its first conversion
 * would have the C library read its table of character sets; that happens here instead.
 */
static void settle_locale(void)
{
	setlocale(LC_ALL, "C");
	iconv_t cd = iconv_open(nl_langinfo(CODESET), "UTF-8");
	iconv_close(cd); /* EBADF if there is no such conversion */
}

/* Room for a descriptor of each directory on the way to a file, as far as the hard limit allows. */
static int allow_descriptors(void)
{
	struct rlimit limit;
	const rlim_t want = CONFINE_LEVELS_MAX + CONFINE_FDS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -errno;
	if (limit.rlim_cur >= want)
		return 0;
	limit.rlim_cur = MIN(want, limit.rlim_max);
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

/* Others than root, and root of many a container, can only do without. */
static int enter_dir(int dir_fd)
{
	if (geteuid() != 0)
		return 0;
	if (fchdir(dir_fd) < 0)
		return -errno;
	return chroot(".") < 0 && errno != EPERM ? -errno : 0;
}

static int give_up_capabilities(const struct plan *plan)
{
	if (plan->use == DIR_READ)
		return sandbox_keep_capabilities(kept_to_read, ARRAY_SIZE(kept_to_read));
	return plan->use == DIR_NONE || geteuid() != 0
		       ? sandbox_drop_capabilities()
		       : sandbox_keep_capabilities(kept_to_fill, ARRAY_SIZE(kept_to_fill));
}

static int forbid_paths(const struct plan *plan)
{
	if (plan->use == DIR_NONE)
		return sandbox_no_files();
	return plan->use == DIR_FILL ? sandbox_only_below(plan->dir_fd)
				     : sandbox_only_read(plan->dir_fd);
}

static int filter_calls(const struct plan *plan)
{
	int all[ARRAY_SIZE(allowed) +
		MAX(ARRAY_SIZE(allowed_in_dir), ARRAY_SIZE(allowed_from_dir))];
	const int *more = plan->use == DIR_FILL ? allowed_in_dir : allowed_from_dir;
	size_t n = plan->use == DIR_NONE   ? 0
		   : plan->use == DIR_FILL ? ARRAY_SIZE(allowed_in_dir)
					   : ARRAY_SIZE(allowed_from_dir);
	memcpy(all, allowed, sizeof(allowed));
	memcpy(all + ARRAY_SIZE(allowed), more, n * sizeof(*more));
	return sandbox_seccomp(all, ARRAY_SIZE(allowed) + n);
}

static int confine_self(const struct plan *plan)
{
	settle_locale();
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of write(2) */
	int r = keep_descriptors(plan);
	if (r == 0 && plan->use != DIR_NONE)
		r = allow_descriptors();
	if (r == 0 && plan->use != DIR_NONE)
		r = enter_dir(plan->dir_fd);
	if (r == 0 && plan->use != DIR_FILL)
		r = become_nobody(plan);
	/* After the change of identity, which clears it. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		r = -errno;
	if (r == 0 && getppid() != plan->parent)
		r = -ESRCH;
	if (r == 0)
		r = limit_memory(plan->memory_max);
	if (r == 0)
		r = give_up_capabilities(plan);
	if (r == 0)
		r = forbid_paths(plan);
	return r < 0 ? r : filter_calls(plan);
}

static void run_child(const struct plan *plan)
{
	struct err e = ERR_INIT;
	struct buf result;
	buf_init(&result, plan->result_max);
	int r = confine_self(plan);
	if (r < 0)
		err_sys(&e, r, "cannot give up privileges");
	else
		r = plan->fn(plan->ctx, &result, &e);
	struct head head = {
		.code = r,
		.text_len = r < 0 ? (uint32_t)strlen(e.text) : 0,
		.result_len = r < 0 ? 0 : (uint32_t)buf_len(&result),
	};
	bool sent = fd_write_all(plan->report, &head, sizeof(head)) == 0 &&
		    fd_write_all(plan->report, e.text, head.text_len) == 0 &&
		    fd_write_all(plan->report, buf_data(&result), head.result_len) == 0;
	/* Not _exit(3): in a sanitized build that looks for leaks, with more system calls. */
	syscall(SYS_exit_group, sent ? 0 : 1);
	__builtin_unreachable();
}

/* Takes the report. *ret_code is the function's; its message is in @e already. */
static int read_report(int fd, struct buf *result, int *ret_code, struct err *e)
{
	struct head head;
	char text[ERR_TEXT_MAX];
	int r = fd_read_exactly(fd, &head, sizeof(head));
	if (r < 0)
		return r;
	if (head.code > 0 || head.code < -4095 || head.text_len >= sizeof(text))
		return -EPROTO;
	r = fd_read_exactly(fd, text, head.text_len);
	if (r < 0)
		return r;
	text[head.text_len] = '\0';
	char *where;
	r = buf_reserve(result, head.result_len, &where);
	if (r == 0)
		r = fd_read_exactly(fd, where, head.result_len);
	if (r < 0)
		return r;
	buf_commit(result, head.result_len);
	if (head.code < 0)
		err_set(e, head.code, "%s", text);
	*ret_code = head.code;
	return 0;
}

/* The message for a child that ended without a report. */
static int confine_died(const char *what, int status, struct err *e)
{
	if (!WIFSIGNALED(status))
		return err_set(e, -EIO,
			       "%s: the helper process failed (its memory may have been short)",
			       what);
	int signal_number = WTERMSIG(status);
	if (signal_number == SIGKILL)
		return err_set(e, -EIO,
			       "%s: the helper process was killed (is the machine out of memory?)",
			       what);
	return err_set(e, -EIO, "%s: the helper process died of signal %d (%s)", what,
		       signal_number, strsignal(signal_number));
}

/* Waits until the child has something to say. True if it was killed instead. */
static bool wait_or_kill(int report, int cancel_fd, pid_t pid)
{
	struct pollfd fds[] = {
		{ .fd = report, .events = POLLIN },
		{ .fd = cancel_fd, .events = POLLIN },
	};
	while (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		if (errno != EINTR)
			return false;
	if (fds[0].revents != 0 || fds[1].revents == 0)
		return false;
	kill(pid, SIGKILL);
	return true;
}

/* Runs the plan, which lacks what only this knows. */
static int run_plan(const char *what, struct plan *plan, struct buf *result, struct err *e)
{
	if (plan->n_fds > CONFINE_FDS_MAX)
		return err_set(e, -E2BIG, "%s: too many input files", what);
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "%s: cannot create a pipe", what);
	cleanup_fd int read_end = ends[0];
	cleanup_fd int write_end = ends[1];
	plan->report = write_end;
	plan->parent = getpid();
	plan->result_max = result->max;
	pid_t pid = fork();
	if (pid < 0)
		return err_sys(e, -errno, "%s: cannot create a process", what);
	if (pid == 0)
		run_child(plan);
	fd_replace(&write_end, -EBADF);
	int code = 0, status = 0;
	bool killed = plan->cancel_fd >= 0 && wait_or_kill(read_end, plan->cancel_fd, pid);
	int reported = killed ? -EINTR : read_report(read_end, result, &code, e);
	int r = spawn_wait(pid, &status);
	if (r < 0)
		return err_sys(e, r, "%s: cannot wait for the helper process", what);
	if (killed)
		return err_set(e, -EINTR, "%s: interrupted", what);
	return reported < 0 || status != 0 ? confine_died(what, status, e) : code;
}

int confine_run(const char *what, confine_fn fn, void *ctx, const int *fds, size_t n_fds,
		struct buf *result, struct err *e)
{
	return confine_run_within(what, CONFINE_MEMORY_LARGE, fn, ctx, fds, n_fds, result, e);
}

int confine_run_within(const char *what, size_t memory_max, confine_fn fn, void *ctx,
		       const int *fds, size_t n_fds, struct buf *result, struct err *e)
{
	struct plan plan = {
		.fn = fn,
		.ctx = ctx,
		.fds = fds,
		.n_fds = n_fds,
		.memory_max = memory_max,
		.dir_fd = -EBADF,
		.cancel_fd = -EBADF,
	};
	return run_plan(what, &plan, result, e);
}

int confine_run_in(const char *what, int dir_fd, int cancel_fd, confine_fn fn, void *ctx,
		   const int *fds, size_t n_fds, struct buf *result, struct err *e)
{
	struct plan plan = {
		.fn = fn,
		.ctx = ctx,
		.fds = fds,
		.n_fds = n_fds,
		.memory_max = CONFINE_MEMORY_LARGE,
		.use = DIR_FILL,
		.dir_fd = dir_fd,
		.cancel_fd = cancel_fd,
	};
	return run_plan(what, &plan, result, e);
}

int confine_run_reading(const char *what, int dir_fd, confine_fn fn, void *ctx, const int *fds,
			size_t n_fds, struct buf *result, struct err *e)
{
	struct plan plan = {
		.fn = fn,
		.ctx = ctx,
		.fds = fds,
		.n_fds = n_fds,
		.memory_max = CONFINE_MEMORY_LARGE,
		.use = DIR_READ,
		.dir_fd = dir_fd,
		.cancel_fd = -EBADF,
	};
	return run_plan(what, &plan, result, e);
}
