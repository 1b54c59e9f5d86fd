/* SPDX-License-Identifier: Apache-2.0 */
#include "images/render/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static int run(confine_fn fn, void *ctx, const int *fds, size_t n_fds, struct buf *result,
	       struct err *e)
{
	*e = ERR_INIT;
	return confine_run("testing", fn, ctx, fds, n_fds, result, e);
}

static int report(void *ctx, struct buf *result, struct err *e)
{
	(void)e;
	size_t len = *(size_t *)ctx;
	for (size_t i = 0; i < len; i++)
		if (buf_append(result, "r", 1) < 0)
			return -EMSGSIZE;
	return 0;
}

static void test_result(void **state)
{
	(void)state;
	struct err e;
	for (size_t len = 0; len <= CONFINE_RESULT_MAX; len += CONFINE_RESULT_MAX / 2) {
		CLEANUP(buf_deinit) struct buf result;
		buf_init(&result, CONFINE_RESULT_MAX);
		assert_int_equal(run(report, &len, NULL, 0, &result, &e), 0);
		assert_int_equal(buf_len(&result), len);
	}
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	size_t len = CONFINE_RESULT_MAX + 1;
	assert_int_equal(run(report, &len, NULL, 0, &result, &e), -EMSGSIZE);
}

static int report_failure(void *ctx, struct buf *result, struct err *e)
{
	(void)ctx;
	buf_puts(result, "ignored");
	return err_set(e, -EBADMSG, "the cause");
}

static void test_failure(void **state)
{
	(void)state;
	struct err e;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	assert_int_equal(run(report_failure, NULL, NULL, 0, &result, &e), -EBADMSG);
	assert_string_equal(e.text, "the cause");
	assert_int_equal(e.code, -EBADMSG);
	assert_int_equal(buf_len(&result), 0);
}

static int die(void *ctx, struct buf *result, struct err *e)
{
	(void)result;
	(void)e;
	/* kill(2) is not allowed, so the system calls themselves are the way to die. */
	switch (*(int *)ctx) {
	case 0:
		return socket(AF_INET, SOCK_STREAM, 0);
	case 1:
		return openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC);
	case 2:
		return execl("/bin/true", "true", (char *)NULL);
	case 3:
		return fork();
	case 4:
		return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0) == MAP_FAILED;
	default:
		syscall(SYS_exit_group, 0); /* without a report */
	}
	return 0;
}

static void test_death(void **state)
{
	(void)state;
	struct err e;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	for (int way = 0; way < 5; way++) {
		assert_int_equal(run(die, &way, NULL, 0, &result, &e), -EIO);
		if (!strstr(e.text, "died of signal 31"))
			fail_msg("%d: %s", way, e.text);
	}
	int way = 5;
	assert_int_equal(run(die, &way, NULL, 0, &result, &e), -EIO);
	assert_string_equal(e.text,
			    "testing: the helper process failed (its memory may have been short)");
}

struct descriptors {
	int kept;
	int other;
};

static int use_descriptors(void *ctx, struct buf *result, struct err *e)
{
	const struct descriptors *d = ctx;
	(void)result;
	if (write(d->kept, "x", 1) != 1)
		return err_sys(e, -errno, "kept");
	if (write(d->other, "x", 1) != -1 || errno != EBADF)
		return err_set(e, -EINVAL, "the other is open");
	char c;
	if (read(0, &c, 1) != 0)
		return err_set(e, -EINVAL, "standard input is not null");
	return 0;
}

static void test_descriptors(void **state)
{
	(void)state;
	struct err e;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	cleanup_fd int kept = memfd_create("kept", MFD_CLOEXEC);
	cleanup_fd int other = memfd_create("other", MFD_CLOEXEC);
	struct descriptors d = { kept, other };
	if (run(use_descriptors, &d, &kept, 1, &result, &e) < 0)
		fail_msg("%s", e.text);
	int many[CONFINE_FDS_MAX + 1];
	for (size_t i = 0; i <= CONFINE_FDS_MAX; i++)
		many[i] = kept;
	assert_int_equal(run(use_descriptors, &d, many, CONFINE_FDS_MAX, &result, &e), 0);
	assert_int_equal(run(use_descriptors, &d, many, CONFINE_FDS_MAX + 1, &result, &e), -E2BIG);
}

struct meeting {
	int ready[2]; /* the confined child says that it runs */
	int go[2];    /* and waits for this to be closed */
};

static int meet(void *ctx, struct buf *result, struct err *e)
{
	const struct meeting *m = ctx;
	char c;
	(void)result;
	if (write(m->ready[1], "x", 1) != 1 || read(m->go[0], &c, 1) < 0)
		return err_sys(e, -errno, "pipe");
	return 0;
}

/* Starts a process that runs a confined child, and waits until that runs. Yields both. */
static pid_t start_meeting(struct meeting *m, pid_t *ret_confined)
{
	assert_int_equal(pipe2(m->ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(m->go, O_CLOEXEC), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const int fds[] = { m->ready[1], m->go[0] };
		struct buf result;
		struct err e = ERR_INIT;
		buf_init(&result, 0);
		fd_close(m->go[1]);
		_exit(confine_run("meeting", meet, m, fds, 2, &result, &e) == 0 ? 0 : 1);
	}
	char c, path[64], text[32] = "";
	assert_int_equal(read(m->ready[0], &c, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	*ret_confined = (pid_t)strtol(text, NULL, 10);
	return pid;
}

static void end_meeting(struct meeting *m)
{
	for (int i = 0; i < 2; i++) {
		fd_close(m->ready[i]);
		fd_close(m->go[i]);
	}
}

/* The value of a field of /proc/PID/status. */
static void check_status(const char *status, const char *field, const char *want)
{
	char line[128];
	snprintf(line, sizeof(line), "\n%s:\t%s", field, want);
	if (!strstr(status, line))
		fail_msg("no line \"%s\" in %s", line + 1, status);
}

static void test_privileges(void **state)
{
	(void)state;
	struct meeting m;
	pid_t confined, pid = start_meeting(&m, &confined);
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d", confined);
	cleanup_fd int proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(proc >= 0);
	cleanup_fd int fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);
	char status[8192] = "";
	assert_true(read(fd, status, sizeof(status) - 1) > 0);
	check_status(status, "CapEff", "0000000000000000");
	check_status(status, "CapPrm", "0000000000000000");
	check_status(status, "CapInh", "0000000000000000");
	check_status(status, "CapAmb", "0000000000000000");
	check_status(status, "NoNewPrivs", "1");
	check_status(status, "Seccomp", "2");
	check_status(status, "Threads", "1");
	if (geteuid() ==
	    0) { /* others cannot shrink their bounding set: no_new_privs makes it moot */
		check_status(status, "CapBnd", "0000000000000000");
		check_status(status, "Uid", "65534\t65534\t65534\t65534");
		check_status(status, "Gid", "65534\t65534\t65534\t65534");
	}
	end_meeting(&m);
	int result;
	assert_int_equal(waitpid(pid, &result, 0), pid);
	assert_int_equal(result, 0);
}

/* Whoever kills the caller kills the child. */
static void test_dies_with_parent(void **state)
{
	(void)state;
	struct meeting m;
	pid_t confined, pid = start_meeting(&m, &confined);
	cleanup_fd int child = (int)syscall(SYS_pidfd_open, confined, 0);
	assert_true(child >= 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	struct pollfd gone = { .fd = child, .events = POLLIN };
	assert_int_equal(poll(&gone, 1, 120000), 1);
	end_meeting(&m);
}

static int allocate(void *ctx, struct buf *result, struct err *e)
{
	(void)result;
	size_t size = *(size_t *)ctx;
	void *p = malloc(size);
	if (!p)
		return err_set(e, -ENOMEM, "out of memory");
	memset(p, 1, size);
	free(p);
	return 0;
}

static void test_memory_limit(void **state)
{
	(void)state;
	if (!CONFINE_HAS_MEMORY_LIMIT)
		return;
	static const size_t limits[] = { CONFINE_MEMORY_MAX, CONFINE_MEMORY_LARGE };
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct err e = ERR_INIT;
		CLEANUP(buf_deinit) struct buf result;
		buf_init(&result, CONFINE_RESULT_MAX);
		size_t size = limits[i] / 2;
		assert_int_equal(confine_run_within("testing", limits[i], allocate, &size, NULL, 0,
						    &result, &e),
				 0);
		size = limits[i];
		assert_int_equal(confine_run_within("testing", limits[i], allocate, &size, NULL, 0,
						    &result, &e),
				 -ENOMEM);
		assert_int_equal(run(allocate, &size, NULL, 0, &result, &e), i == 0 ? 0 : -ENOMEM);
	}
}

struct filling {
	int dir;
	bool root;
};

/* Fills the directory of @ctx, and escapes neither by ".." nor by an absolute path. */
static int fill(void *ctx, struct buf *result, struct err *e)
{
	const struct filling *f = ctx;
	int dir = f->dir;
	cleanup_fd int fd =
		openat(dir, "f", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_all(fd, "x", 1) < 0 || mkdirat(dir, "d", 0700) < 0)
		return err_sys(e, -errno, "making files");
	if (f->root && (fchown(fd, 1, 2) < 0 || fchmod(fd, 06755) < 0 ||
			mknodat(dir, "c", S_IFCHR | 0600, makedev(1, 3)) < 0))
		return err_sys(e, -errno, "what root can");
	if (openat(dir, "f", O_RDONLY | O_CLOEXEC) >= 0 && !f->root)
		return err_set(e, -EINVAL, "what it made can be read");
	if (openat(dir, "../outside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 && !f->root)
		return err_set(e, -EINVAL, "it made a file outside");
	if (openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		return err_set(e, -EINVAL, "it can read files of the system");
	return buf_puts(result, "done");
}

static void test_in_directory(void **state)
{
	struct err e = ERR_INIT;
	struct stat st;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	assert_int_equal(mkdirat(fixture_dir(state), "in", 0700), 0);
	cleanup_fd int dir = openat(fixture_dir(state), "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct filling f = { dir, geteuid() == 0 };
	if (confine_run_in("testing", dir, -EBADF, fill, &f, NULL, 0, &result, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(buf_len(&result), 4);
	assert_int_equal(fstatat(dir, "f", &st, AT_SYMLINK_NOFOLLOW), 0);
	if (geteuid() == 0) {
		assert_int_equal(st.st_uid, 1);
		assert_int_equal(st.st_mode & 07777, 06755);
	}
	assert_int_equal(faccessat(fixture_dir(state), "outside", F_OK, 0), -1);
}

static int remove_file(void *ctx, struct buf *result, struct err *e)
{
	(void)result;
	(void)e;
	return unlinkat(*(int *)ctx, "f", 0);
}

static void test_in_directory_only_makes(void **state)
{
	struct err e = ERR_INIT;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	int dir = fixture_dir(state);
	assert_int_equal(
		confine_run_in("testing", dir, -EBADF, remove_file, &dir, NULL, 0, &result, &e),
		-EIO);
	assert_non_null(strstr(e.text, "died of signal 31"));
}

/* Reads what @ctx, a directory, has closed to all, and nothing outside; writes nowhere. */
static int read_closed(void *ctx, struct buf *result, struct err *e)
{
	int dir = *(int *)ctx;
	char byte;
	cleanup_fd int below = openat(dir, "closed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int fd = openat(below, "f", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &byte, 1) != 1)
		return err_sys(e, -errno, "reading");
	if (openat(below, "f", O_WRONLY | O_CLOEXEC) >= 0 ||
	    openat(below, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0 ||
	    openat(dir, "open", O_WRONLY | O_CLOEXEC) >= 0)
		return err_set(e, -EINVAL, "it can write");
	if (openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		return err_set(e, -EINVAL, "it can read files of the system");
	if (openat(dir, "../outside", O_RDONLY | O_CLOEXEC) >= 0)
		return err_set(e, -EINVAL, "it can read what is beside");
	return buf_puts(result, "done");
}

static void test_reading(void **state)
{
	struct err e = ERR_INIT;
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdirat(fixture_dir(state), "in", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "in/closed", 0700), 0);
	fixture_write(state, "outside", "x", 1);
	fixture_write(state, "in/closed/f", "x", 1);
	fixture_write(state, "in/open", "x", 1);
	assert_int_equal(fchmodat(fixture_dir(state), "in/open", 0666, 0), 0);
	assert_int_equal(fchmodat(fixture_dir(state), "in/closed/f", 0, 0), 0);
	assert_int_equal(fchmodat(fixture_dir(state), "in/closed", 0, 0), 0);
	cleanup_fd int dir = openat(fixture_dir(state), "in", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (confine_run_reading("testing", dir, read_closed, &dir, NULL, 0, &result, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(buf_len(&result), 4);
	assert_int_equal(
		confine_run_reading("testing", dir, remove_file, &dir, NULL, 0, &result, &e), -EIO);
	assert_non_null(strstr(e.text, "died of signal 31"));
}

static int wait_for_ever(void *ctx, struct buf *result, struct err *e)
{
	char c;
	(void)result;
	(void)e;
	return (int)read(*(int *)ctx, &c, 1);
}

static void test_cancel(void **state)
{
	struct err e = ERR_INIT;
	int ends[2];
	CLEANUP(buf_deinit) struct buf result;
	buf_init(&result, CONFINE_RESULT_MAX);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	cleanup_fd int read_end = ends[0];
	cleanup_fd int write_end = ends[1];
	cleanup_fd int cancel = memfd_create("readable", MFD_CLOEXEC);
	assert_int_equal(confine_run_in("testing", fixture_dir(state), cancel, wait_for_ever,
					&read_end, &read_end, 1, &result, &e),
			 -EINTR);
	assert_string_equal(e.text, "testing: interrupted");
	assert_true(write_end >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_result),
		fixture_test(test_failure),
		fixture_test(test_death),
		fixture_test(test_descriptors),
		fixture_test(test_privileges),
		fixture_test(test_dies_with_parent),
		fixture_test(test_memory_limit),
		fixture_test(test_in_directory),
		fixture_test(test_in_directory_only_makes),
		fixture_test(test_reading),
		fixture_test(test_cancel),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
