/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call by which a file could get what it shall not have, in a process that has the
 * filter.
 */
#include "stage1-kvm/virtiofs/modes.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "tests/support/fixture.h"

static int dir;

#define TRY(call) ((call) < 0 ? errno : 0)

static int first_not_refused(void)
{
	struct open_how how = { .flags = O_CREAT | O_WRONLY, .mode = 04755 };
	const int results[][2] = {
		{ TRY(fchmodat(dir, "file", 04755, 0)), EPERM },
		{ TRY(fchmodat(dir, "file", 02755, 0)), EPERM },
		{ TRY(fchmodat(dir, "file", 06000, 0)), EPERM },
		{ TRY(chmod("file", 04755)), EPERM },
		{ TRY(fchmod(openat(dir, "file", O_RDONLY), 02755)), EPERM },
		{ TRY(syscall(SYS_openat, dir, "new", O_CREAT | O_WRONLY, 04755)), EPERM },
		{ TRY(syscall(SYS_openat, dir, "new", O_CREAT | O_WRONLY, 02755)), EPERM },
		{ TRY(syscall(SYS_openat, dir, ".", O_TMPFILE | O_WRONLY, 04755)), EPERM },
		{ TRY(syscall(SYS_open, "new", O_CREAT | O_WRONLY, 04755)), EPERM },
		{ TRY(syscall(SYS_creat, "new", 02755)), EPERM },
		{ TRY(mknodat(dir, "new", S_IFREG | 04755, 0)), EPERM },
		{ TRY(mknod("new", S_IFREG | 02755, 0)), EPERM },
		{ TRY(syscall(SYS_openat2, dir, "new", &how, sizeof(how))), ENOSYS },
		{ TRY(syscall(SYS_io_uring_setup, 1, NULL)), ENOSYS },
		{ TRY(syscall(SYS_setxattr, "file", "security.capability", "x", 1, 0)),
		  EOPNOTSUPP },
		{ TRY(syscall(SYS_fsetxattr, dir, "user.x", "x", 1, 0)), EOPNOTSUPP },
		{ TRY(syscall(452, dir, "file", 04755, 0)), EPERM }, /* fchmodat2 */
		{ TRY(syscall(463, dir, "file", 0, "user.x", NULL, 0)),
		  EOPNOTSUPP }, /* setxattrat */
	};
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		if (results[i][0] != results[i][1])
			return (int)i + 1;
	return 0;
}

/* What files are made and changed with otherwise. */
static int goes_on(void)
{
	if (openat(dir, "other", O_CREAT | O_WRONLY, 01777) < 0 ||
	    fchmodat(dir, "other", 01750, 0) < 0 || mkdirat(dir, "dir", 01777) < 0 ||
	    mknodat(dir, "fifo", S_IFIFO | 0644, 0) < 0 || setgroups(100000, NULL) < 0 ||
	    /* Without O_CREAT a mode is whatever is in the register. */
	    syscall(SYS_openat, dir, "other", O_RDONLY, 07777) < 0)
		return 101;
	return 0;
}

static void try_in_child(void)
{
	int r = fchdir(dir) < 0 || modes_forbid_set_ids(true) < 0 ? 100 : first_not_refused();
	_exit(r == 0 ? goes_on() : r);
}

static void test_modes(void **state)
{
	struct stat st;
	int status = 0;
	dir = fixture_dir(state);
	fixture_write(state, "file", "x", 1);
	pid_t pid = fork();
	if (pid == 0)
		try_in_child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(fstatat(dir, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 06000, 0);
	assert_true(fstatat(dir, "new", &st, 0) < 0 && errno == ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { fixture_test(test_modes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
