/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/base/str.h"
#include "lib/os/file.h"
#include "tests/support/fixture.h"

static const char *dir_path; /* of the running test, for its child */

/* Runs @fn in a child; the status as from waitpid(2). */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void assert_exit(int (*fn)(void), int code)
{
	int status = in_child(fn);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), code);
}

/* True if /proc/self/status has the line "KEY:\tVALUE". */
static bool status_says(const char *status, const char *key, const char *value)
{
	char line[100];
	snprintf(line, sizeof(line), "\n%s:\t%s\n", key, value);
	return strstr(status, line) != NULL;
}

static int drop_capabilities(void)
{
	static char status[8192];
	if (sandbox_drop_bounding_set() != 0 || sandbox_drop_capabilities() != 0)
		return 1;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, status, sizeof(status) - 1) <= 0)
		return 2;
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd" };
	/* Without CAP_SETPCAP the bounding set stays: nothing can be gained through it any more. */
	size_t n = getuid() == 0 ? 5 : 4;
	for (size_t i = 0; i < n; i++)
		if (!status_says(status, sets[i], "0000000000000000"))
			return 10 + (int)i;
	if (!status_says(status, "NoNewPrivs", "1"))
		return 3;
	if (prctl(PR_GET_DUMPABLE) != 0)
		return 4;
	/* A second time changes nothing. */
	return sandbox_drop_capabilities() == 0 ? 0 : 5;
}

static void test_drop_capabilities(void **state)
{
	(void)state;
	assert_exit(drop_capabilities, 0);
}

static int keep_capabilities(void)
{
	static char status[8192];
	static const int kept[] = { CAP_CHOWN, CAP_FOWNER };
	static const int none[] = { 64 };
	if (sandbox_keep_capabilities(none, 1) != -EINVAL)
		return 1;
	if (sandbox_keep_capabilities(kept, ARRAY_SIZE(kept)) != 0)
		return 2;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, status, sizeof(status) - 1) <= 0)
		return 3;
	const char *want = getuid() == 0 ? "0000000000000009" : "0000000000000000";
	if (!status_says(status, "CapEff", want) || !status_says(status, "CapPrm", want))
		return 4;
	if (!status_says(status, "CapInh", "0000000000000000"))
		return 5;
	if (getuid() == 0 && !status_says(status, "CapBnd", want))
		return 6;
	return status_says(status, "NoNewPrivs", "1") ? 0 : 7;
}

static void test_keep_capabilities(void **state)
{
	(void)state;
	assert_exit(keep_capabilities, 0);
}

static bool refused(long r)
{
	return r < 0 && errno == EACCES;
}

static int no_files(void)
{
	char file[200], other[200];
	snprintf(file, sizeof(file), "%s/f", dir_path);
	snprintf(other, sizeof(other), "%s/other", dir_path);
	int fd = open(file, O_RDWR | O_CLOEXEC);
	if (fd < 0 || sandbox_drop_capabilities() != 0 || sandbox_no_files() != 0)
		return 1;
	if (!refused(open(file, O_RDONLY | O_CLOEXEC)))
		return 2;
	if (!refused(open("/proc/self/status", O_RDONLY | O_CLOEXEC)))
		return 3;
	if (!refused(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)))
		return 4;
	if (!refused(unlink(file)) || !refused(mkdir(other, 0700)))
		return 5;
	if (!refused(execl("/bin/true", "true", (char *)NULL)))
		return 6;
	/* What is open stays usable. */
	return write(fd, "x", 1) == 1 ? 0 : 7;
}

static int no_truncate(void)
{
	char file[200];
	snprintf(file, sizeof(file), "%s/f", dir_path);
	if (sandbox_drop_capabilities() != 0 || sandbox_no_files() != 0)
		return 1;
	return refused(truncate(file, 0)) ? 0 : 2;
}

static void test_no_files(void **state)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 1) {
		print_message("skip: this kernel has no Landlock\n");
		skip();
	}
	fixture_write(state, "f", "content", 7);
	dir_path = fixture_path(state);
	assert_exit(no_files, 0);
	if (abi >= 3)
		assert_exit(no_truncate, 0);
}

/* Makes, writes and links in "in", and fails to do anything in its parent. */
static int only_below(void)
{
	int top = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int in = openat(top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (in < 0 || sandbox_drop_capabilities() != 0 || sandbox_only_below(in) != 0)
		return 1;
	int fd = openat(in, "f", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1 || ftruncate(fd, 1000) < 0)
		return 2;
	if (mkdirat(in, "d", 0700) < 0 || linkat(in, "f", in, "d/g", 0) < 0 ||
	    symlinkat("/", in, "l") < 0 || mknodat(in, "p", S_IFIFO | 0600, 0) < 0)
		return 3;
	int d = openat(in, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d < 0 || fchmod(d, 0500) < 0)
		return 4;
	if (!refused(openat(top, "f", O_WRONLY | O_CLOEXEC)) ||
	    !refused(openat(in, "../f", O_WRONLY | O_CLOEXEC)) ||
	    !refused(openat(top, "new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) ||
	    !refused(mkdirat(in, "../new", 0700)) || !refused(symlinkat("/", top, "new")))
		return 5;
	/* A link out of the directory; EXDEV says that Landlock does not allow it. */
	if (linkat(in, "f", top, "g", 0) == 0 || (errno != EXDEV && errno != EACCES))
		return 6;
	if (!refused(openat(in, "f", O_RDONLY | O_CLOEXEC)) || !refused(unlinkat(in, "f", 0)))
		return 7;
	return 0;
}

static void test_only_below(void **state)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 2) {
		print_message("skip: this kernel has no second version of Landlock\n");
		skip();
	}
	fixture_write(state, "f", "content", 7);
	dir_path = fixture_path(state);
	assert_int_equal(mkdirat(fixture_dir(state), "in", 0700), 0);
	assert_exit(only_below, 0);
}

/* sigaltstack: AddressSanitizer calls it in _exit(). */
static const int allowed[] = { SYS_exit_group, SYS_getpid,   SYS_mmap,
			       SYS_munmap,     SYS_mprotect, SYS_sigaltstack };

static int enter_filter(void)
{
	if (sandbox_drop_capabilities() != 0)
		return 1;
	return sandbox_seccomp(allowed, ARRAY_SIZE(allowed)) == 0 ? 0 : 2;
}

static int call_listed(void)
{
	int r = enter_filter();
	return r == 0 && syscall(SYS_getpid) > 0 ? r : 3;
}

static int call_unlisted(void)
{
	int r = enter_filter();
	syscall(SYS_getppid);
	return r;
}

static int call_unknown(void)
{
	int r = enter_filter();
	syscall(9999);
	return r;
}

static int map_data(void)
{
	int r = enter_filter();
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED || mprotect(p, 4096, PROT_READ) < 0 ? 3 : r;
}

static int map_code(void)
{
	int r = enter_filter();
	syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return r;
}

static int turn_data_into_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = enter_filter();
	syscall(SYS_mprotect, p, 4096, PROT_READ | PROT_EXEC);
	return r;
}

static void assert_killed(int (*fn)(void))
{
	int status = in_child(fn);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
}

static void test_seccomp(void **state)
{
	(void)state;
	assert_exit(call_listed, 0);
	assert_exit(map_data, 0);
	assert_killed(call_unlisted);
	assert_killed(call_unknown);
	assert_killed(map_code);
	assert_killed(turn_data_into_code);
}

static int filter_without_privilege(void)
{
	/* Neither CAP_SYS_ADMIN nor no_new_privs: libseccomp sets the latter itself. */
	if (getuid() == 0 && setuid(65534) < 0)
		return 1;
	return sandbox_seccomp(allowed, ARRAY_SIZE(allowed)) == 0 ? 0 : 2;
}

static void test_seccomp_unprivileged(void **state)
{
	(void)state;
	assert_exit(filter_without_privilege, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_drop_capabilities), fixture_test(test_keep_capabilities),
		fixture_test(test_no_files),          fixture_test(test_only_below),
		fixture_test(test_seccomp),           fixture_test(test_seccomp_unprivileged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
