/* SPDX-License-Identifier: Apache-2.0 */
/* check-style allows mirror: one property of appfs.c, whose other tests look from inside an app */
/*
 * What an app finds is mounted and protected in some sixty steps. Here each of them fails in turn:
 * none may be passed over, or the app would run with less protection than it was promised. Linked
 * with wrappers around mount(2) and syscall(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest-agent/app/appfs.h"
#include "guest-agent/app/protect.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static unsigned calls, failing_call; /* 0: none fails */
static bool more;                    /* paths are protected beside the usual ones */
static bool beside;                  /* the root is one that others may change */

int __real_mount(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data);
long __real_syscall(long nr, ...);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data);
long __wrap_syscall(long nr, ...);

static bool fails(void)
{
	if (++calls != failing_call)
		return false;
	errno = EPERM;
	return true;
}

int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data)
{
	return fails() ? -1 : __real_mount(source, target, type, flags, data);
}

long __wrap_syscall(long nr, ...)
{
	long a[5];
	va_list ap;
	va_start(ap, nr);
	for (size_t i = 0; i < 5; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return fails() ? -1 : __real_syscall(nr, a[0], a[1], a[2], a[3], a[4]);
}

/* What the pod has for its apps, in the form in which it comes: attached nowhere. */
static int make_shm(void)
{
	int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	return context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0
		       ? -1
		       : fsmount(context, FSMOUNT_CLOEXEC, 0);
}

static int enter(const char *root, struct appfs_plan *plan, struct fault *f)
{
	int *old_root = plan->old_root < 0 ? NULL : &plan->old_root;
	return beside ? appfs_enter_beside(root, "/mnt", old_root, f)
		      : appfs_enter(root, old_root, f);
}

struct outcome {
	int result;
	unsigned calls;
	struct fault fault;
};

/*
 * In a process and a mount namespace of its own, the call number @failing fails. The old root is
 * kept until the end if @plan has some descriptor for it.
 */
static struct outcome mount_all(const char *root, const struct appfs_plan *plan, unsigned failing)
{
	char self[] = "/proc/self", task[] = "/proc/1", info[] = "/proc/meminfo";
	char core[] = "/proc/kcore", no[] = "/no";
	char *paths[] = { self, info, task, core, no };
	const struct strv masked = { .v = paths, .n = 5 }, read_only = { .v = paths + 1, .n = 3 };
	struct appfs_plan mine = *plan;
	struct outcome o = { .result = -1 };
	int fds[2], status;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    __real_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    __real_mount("tmpfs", root, "tmpfs", 0, NULL) < 0 ||
		    appfs_unshare(false, &o.fault) != 0 ||
		    (!beside && enter(root, &mine, &o.fault) != 0))
			_exit(1);
		mine.shm_fd = make_shm();
		calls = 0;
		failing_call = failing;
		o.result = beside ? enter(root, &mine, &o.fault) : 0;
		if (o.result == 0)
			o.result = appfs_mount(&mine, &o.fault);
		int null = open("/dev/null", O_PATH | O_CLOEXEC);
		if (o.result == 0 && more)
			o.result = protect_paths(&mine, PROTECT_ALL, null, &read_only, &masked,
						 &o.fault);
		if (o.result == 0 && beside)
			o.result = appfs_settle(&o.fault);
		o.calls = calls;
		_exit(write(fds[1], &o, sizeof(o)) != sizeof(o));
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &o, sizeof(o)), sizeof(o));
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return o;
}

static void check_each(const char *root, const struct appfs_plan *plan, unsigned least)
{
	const struct outcome all = mount_all(root, plan, 0);
	if (all.result != 0)
		fail_msg("%s", all.fault.text);
	assert_in_range(all.calls, least, 200);
	for (unsigned i = 1; i <= all.calls; i++) {
		const struct outcome o = mount_all(root, plan, i);
		if (o.result != FAULT_SET || o.fault.code != AGENT_E_INTERNAL)
			fail_msg("call %u of %u failed, and it went on", i, all.calls);
		if (o.calls != i)
			fail_msg("call %u of %u failed, and %u came after it", i, all.calls,
				 o.calls - i);
	}
}

static void test_each_step(void **state)
{
	check_each(fixture_path(state), &(struct appfs_plan){ .devpts_fd = -1, .old_root = -1 },
		   50);
}

/* Without a VM: devices are the host's, and the old root is left in the end. */
static void test_without_vm(void **state)
{
	check_each(fixture_path(state), &(struct appfs_plan){ .devpts_fd = -1 }, 50);
}

static void test_open_paths(void **state)
{
	const struct appfs_plan plan = { .devpts_fd = -1, .old_root = -1, .open_paths = true };
	check_each(fixture_path(state), &plan, 10);
	assert_true(mount_all(fixture_path(state), &plan, 0).calls < 30);
}

/* Two directories and a file that are hidden; what is protected anyway is not once more. */
static void test_more_paths(void **state)
{
	const struct appfs_plan plan = { .devpts_fd = -1, .old_root = -1 };
	unsigned before = mount_all(fixture_path(state), &plan, 0).calls;
	more = true;
	/* 2 * 3 for read-only paths, 7 for the first directory, 2 for each of the others. */
	assert_int_equal(mount_all(fixture_path(state), &plan, 0).calls, before + 17);
	check_each(fixture_path(state), &plan, 50);
	more = false;
}

/*
 * In a root directory of others it is one mount beside it, one of that, three that are moved, and
 * two changes of root.
 */
static void test_beside(void **state)
{
	const struct appfs_plan plan = { .devpts_fd = -1, .old_root = -1 };
	unsigned before = mount_all(fixture_path(state), &plan, 0).calls;
	beside = true;
	assert_int_equal(mount_all(fixture_path(state), &plan, 0).calls, before + 7);
	check_each(fixture_path(state), &plan, 50);
	check_each(fixture_path(state), &(struct appfs_plan){ .devpts_fd = -1 }, 50);
	beside = false;
}

/* ---- a root directory that changes ---- */

#define ROUNDS 100 /* where all paths are looked up in there one of four goes wrong */

/* Has @path be a link and a directory in turns, until it is killed. */
static pid_t start_changing(const char *root)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	if (chdir(root) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(1);
	for (;;)
		renameat2(AT_FDCWD, "proc", AT_FDCWD, "link", RENAME_EXCHANGE);
}

/* Whether the kernel's parameters can be written at @path; a directory or link without is fine. */
static bool is_open(const char *path)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0;
}

enum {
	ROUND_SAFE,
	ROUND_REFUSED, /* what is there is not what can be used */
	ROUND_OPEN,
	ROUND_BROKEN,
};

/* One start of an app, up to where its program would run. */
static int play_round(const char *root)
{
	struct appfs_plan plan = { .devpts_fd = -1, .old_root = -1, .shm_fd = make_shm() };
	struct fault f;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(root, root, NULL, MS_BIND, NULL) < 0 ||
	    appfs_enter_beside(root, "/mnt", NULL, &f) != 0 || appfs_mount(&plan, &f) != 0)
		return ROUND_BROKEN;
	if (appfs_settle(&f) != 0)
		return ROUND_REFUSED;
	for (int i = 0; i < 10; i++) /* wherever it is by now */
		if (is_open("/proc/sys/kernel/msgmax") || is_open("/link/sys/kernel/msgmax") ||
		    is_open("/place/sys/kernel/msgmax"))
			return ROUND_OPEN;
	return ROUND_SAFE;
}

static void test_changing_root(void **state)
{
	const char *root = fixture_path(state);
	int dir = fixture_dir(state), status, seen[ROUND_BROKEN + 1] = { 0 };
	assert_int_equal(mkdirat(dir, "proc", 0755), 0);
	assert_int_equal(mkdirat(dir, "place", 0755), 0);
	assert_int_equal(symlinkat("place", dir, "link"), 0);
	pid_t other = start_changing(root);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(play_round(root));
		bool ended = waitpid(pid, &status, 0) == pid && WIFEXITED(status);
		seen[ended ? MIN(WEXITSTATUS(status), ROUND_BROKEN) : ROUND_BROKEN]++;
	}
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_true(WIFSIGNALED(status)); /* it went on to the end */
	assert_int_equal(seen[ROUND_OPEN], 0);
	assert_int_equal(seen[ROUND_BROKEN], 0);
	assert_true(seen[ROUND_SAFE] > 0);
}

/* Its control group is one more. */
static void test_control_group(void **state)
{
	const struct appfs_plan plan = { .devpts_fd = -1, .old_root = -1, .with_cgroup = true };
	struct outcome o = mount_all(fixture_path(state), &plan, 0);
	if (o.result != 0)
		skip(); /* a kernel without version 2 */
	check_each(fixture_path(state), &plan, 50);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
	const struct CMUnitTest tests[] = {
		fixture_test(test_each_step),     fixture_test(test_without_vm),
		fixture_test(test_open_paths),    fixture_test(test_more_paths),
		fixture_test(test_control_group), fixture_test(test_beside),
		fixture_test(test_changing_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
